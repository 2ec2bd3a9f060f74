"""An exercise: what it asks, how it is graded, its hints, and its solution."""

import contextlib
import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

import jax

from mlax_tutorial.checking import audit, guarding, inputs, limits, progress, settings, show
from mlax_tutorial.checking import devices as simulated
from mlax_tutorial.checking.describe import describe
from mlax_tutorial.checking.outcome import (
    FAILED,
    NOT_ATTEMPTED,
    NOT_GRADED,
    PASSED,
    Failed,
    NotAttempted,
    Outcome,
)
from mlax_tutorial.checking.programs import forget


class Exercise:
    """One exercise of a chapter; see `mlax_tutorial.checking` for how to write one.

    The reader calls `check`, `hint` and `solution`. Its name and its chapter's are those of the file that defines its check,
    ``mlax_tutorial/exercises/CHAPTER/NAME.py``.
    """

    def __init__(
        self,
        *,
        title: str,
        stars: int,
        minutes: int,
        why: str,
        hints: tuple[str, ...],
        solution: Any,
        check: Callable[[Any], None],
        seconds: float = limits.SECONDS,
        iterations: int = limits.ITERATIONS,
        devices: int = 1,
        differentiable: bool = True,
    ):
        self.title = title
        self.stars = stars
        self.minutes = minutes
        self.why = why
        self.hints = tuple(hints)
        self.answer = solution
        self.seconds = seconds
        self.iterations = iterations
        self.devices = devices
        self.differentiable = differentiable
        self._check = check
        self._hints_given = 0

    @property
    def chapter(self):
        return self._check.__module__.split(".")[-2]

    @property
    def name(self):
        return self._check.__module__.split(".")[-1]

    def __repr__(self):
        return f"<exercise {self.chapter}.{self.name}: {self.title}>"

    # For the reader

    def check(self, answer):
        """Grades your answer, shows what is found, and notes it in your progress file."""
        outcome = self.grade(answer)
        note = progress.record(self.chapter, self.name, outcome.status)
        show.show(outcome, note)

    def hint(self):
        """Shows one more hint at each call."""
        total = len(self.hints)
        if self._hints_given < total:
            self._hints_given += 1
            rest = total - self._hints_given
            left = f"{rest} more hint{'s' if rest > 1 else ''}" if rest else "that was the last hint"
            show.show(
                show.Page(f"Hint {self._hints_given} of {total}", self.hints[self._hints_given - 1], left)
            )
        else:
            self._hints_given = 0
            hints = "\n".join(f"{i}. {hint}" for i, hint in enumerate(self.hints, 1))
            show.show(show.Page("All hints", hints, "then there is `.solution()`"))

    def solution(self):
        """Shows a solution."""
        show.show(show.Page(f"A solution of {self.name}", "", "", code=self.solution_text()))

    def solution_text(self):
        """The source of the solution, under the exercise's name; or the value, where that is the solution."""
        if isinstance(self.answer, type):
            return textwrap.dedent(inspect.getsource(self.answer)).rstrip()
        function = guarding.underlying(self.answer)
        if not inspect.isfunction(function):
            return describe(self.answer) if not isinstance(self.answer, dict) else _listed(self.answer)
        source = textwrap.dedent(inspect.getsource(function)).rstrip()
        return re.sub(rf"\b{re.escape(function.__name__)}\b", self.name, source)

    # For `check` and for the tests

    def grade(self, answer, seconds=None):
        """The `Outcome` of an answer. Shows nothing, records nothing, and never raises (but for Ctrl-C)."""
        printed, seconds = show.Collected(), self.seconds if seconds is None else seconds
        if self.devices > 1 and not simulated.inside and not guarding.is_open(answer):
            return simulated.grade(self, answer, seconds)
        # Where a process may be killed no loop has to be limited, and the limit does not know the types inside ``shard_map``.
        loops = contextlib.nullcontext() if simulated.inside else limits.loop_limit(self.iterations)
        try:
            with settings.fixed(), loops, show.collected(printed):
                self._grade(answer, seconds)
        except NotAttempted:
            return self._outcome(
                NOT_ATTEMPTED, "Write your answer in place of the `...`, then run this again."
            )
        except Failed as failure:
            return self._outcome(FAILED, failure.message, failure.shown, printed.text)
        except limits.TimeUp as stop:
            waiting = ", or does a device wait for another that never comes" if simulated.inside else ""
            message = f"Your code was stopped after {seconds:g} seconds. Is there a loop in it that never ends{waiting}?"
            lines = guarding.lines_of(stop, self._check) or getattr(stop.__cause__, "shown", ())
            return self._outcome(FAILED, message, lines, printed.text, stopped=True)
        except Exception as error:
            return self._unexpected(error, printed.text)
        return self._outcome(PASSED, self.why, (), printed.text)

    def _grade(self, answer, seconds):
        if guarding.is_open(answer):
            raise NotAttempted
        if isinstance(answer, (list, tuple)) and any(item is ... for item in answer):
            raise Failed("A part of your answer is still `...`.", got=answer)
        guarding.admit(answer, self.answer)
        function = callable(self.answer) and not isinstance(self.answer, type)
        calls = audit.Calls()
        try:
            with limits.time_limit(seconds):
                self._check(guarding.guard(answer, self.name, calls.note) if function else answer)
                with show.collected(show.Collected()):  # it calls the function once more
                    audit.look(answer, self.answer, calls, self.differentiable)
        finally:
            if function:
                forget(answer)

    def _unexpected(self, error, printed):
        """What came past the guard: the reader's after all, if it went through their code or came out of XLA."""
        if (
            guarding.lines_of(error, self._check)
            or limits.is_loop_limit(error)
            or isinstance(error, jax.errors.JaxRuntimeError)
        ):
            theirs = guarding.as_theirs(error, self._check)
            if isinstance(theirs, Failed):
                return self._outcome(FAILED, theirs.message, theirs.shown, printed)
        if isinstance(error, RuntimeError) and "has been deleted" in str(error):
            message = "Your function donates its input (`donate_argnums`): the caller's array is gone after the call."
            return self._outcome(FAILED, message, (), printed)
        if isinstance(error, inputs.MissingPackage):
            return self._outcome(NOT_GRADED, str(error), (), printed, fault=error)
        message = (
            f"The check itself could not go on with your answer ({guarding.describe_error(error)}). "
            "This is a gap in the check: compare your answer with `.solution()`."
        )
        return self._outcome(NOT_GRADED, message, (), printed, fault=error)

    def _outcome(self, status, message, shown=(), printed="", **more):
        return Outcome(self.name, status, message, tuple(shown), printed, **more)


def _listed(answers):
    return "{\n" + "".join(f"    {key!r}: {value!r},\n" for key, value in answers.items()) + "}"
