"""The machinery behind the book's exercises: grade an answer, say what is wrong, give hints, keep progress.

How to write an exercise
------------------------
An exercise is a file, here ``mlax_tutorial/exercises/welcome/halve.py``::

    # Halve every element.

    import jax.numpy as jnp

    from mlax_tutorial.checking import Exercise, checks, inputs


    # The reader sees it as `def halve(x)`.
    def solution(x):
        return x / 2


    def check(halve):  # raises Failed, or returns None when all is well
        checks.values(halve, solution, inputs.arrays("n"), examples=[(jnp.array([1.0, -3.0]),)])
        checks.works_under_jit(halve, jnp.arange(3.0))


    exercise = Exercise(  # the last statement: the chapter's guards read it without importing the file
        title="Halve every element",  # at most 60 characters, no period
        stars=1,  # 1 to 3
        minutes=2,  # 1 to 30
        why="One sentence, shown when it is passed: why this matters in JAX.",  # 30 characters or more, with a period
        hints=("The first nudge.", "A stronger one; the last may almost give it away."),  # two or more, all different
        solution=solution,
        check=check,
    )

Its chapter's listing, ``mlax_tutorial/exercises/welcome/__init__.py``, has a line for it, in the order of the chapter::

    from mlax_tutorial.exercises.welcome.halve import exercise as halve

The answers that test it, wrong and right ones, lie in ``tests/exercises/welcome/halve.py``; how, `tests/exercises/answers.py` shows. A check
may do the following.

- The answer may be a value instead of a function (a number, a string, a tuple, a dict of predictions): then
  ``solution`` is that value and ``check`` gets what the reader gave. ``checks.answers`` grades a dict.
- ``check`` receives the reader's function wrapped: an error inside it becomes the reader's own error in the
  report, so call it freely. Everything runs at ``highest`` matrix precision, with x64, leak checks and
  key-reuse checks off (:func:`checks.keys` and :func:`checks.no_leaks` switch them on), under a time limit,
  with what it prints collected. Nothing is to be printed by a check.
- Raise ``Failed("what is wrong, in a sentence or two", input=…, expected=…, got=…)`` for a mistake that you
  recognise. The keywords are optional; arrays are shown with the places where they differ.
- All functions in :mod:`mlax_tutorial.checking.checks` take the reader's function first. Random inputs come
  from :mod:`mlax_tutorial.checking.inputs`, at check time, so that hypothesis is imported late.
- The answer may be a class: ``solution`` is one then, and ``check`` gets the reader's as it is. ``checks.make(cls, …)`` makes an
  instance with errors shown as theirs; `checks.obeys_laws` and `checks.obeys_optimizer_laws` hold it against the package's laws.
- A wrong answer that people often give can be recognised by what it computes: ``checks.values(…, recognise=[(wrong,
  "This averages before it squares.")])`` says so where the reader's function agrees with ``wrong`` on every input tried.
- ``checks.same`` takes ``recognise``, too, with wrong results in place of functions. ``with checks.says("For an empty array."):`` puts a sentence
  before whatever fails inside, ``checks.returned(got, "state", "result")`` says where a ``return`` or a part is missing, and
  ``checks.agrees(got, other)`` is the comparison, where a check needs to ask. What NumPy computes in float64 counts by its numbers.
- Of every function that passes, the program is looked at (:mod:`mlax_tutorial.checking.audit`): its derivative depends on what the
  solution's depends on, unless the exercise says ``differentiable=False``, and no float is rounded to fewer digits on the way.
- An exercise that needs longer than 20 seconds, or loops of JAX over 100,000 iterations, says so: ``seconds=…``,
  ``iterations=…``.
- An exercise that needs several devices says ``devices=8``. Then the answer and the check run in a process of their own, which
  simulates so many on the CPU and is kept for the next check (:mod:`mlax_tutorial.checking.devices`). The check is written as always, and
  ``jax.devices()`` has eight. What the answer refers to is sent along; a program that hangs ends after four times ``seconds``.
- One that needs several *processes* starts them in its check, by :func:`mlax_tutorial.inspection.hosts.run`;
  ``exercises/many_hosts/_two.py`` says what is wrong if one of them raises, waits or dies.
- ``exercise.grade(answer)`` gives the :class:`Outcome` without showing or recording it.
- What several exercises of a chapter share stands in a file beside them whose name begins with ``_``, such as ``_compare.py``.
- Keep a check under two seconds: few shapes, small arrays (each new shape compiles each operation anew).
"""

from mlax_tutorial.checking import checks, inputs
from mlax_tutorial.checking.exercise import Exercise
from mlax_tutorial.checking.outcome import Failed, Outcome

__all__ = ["Exercise", "Failed", "Outcome", "checks", "inputs"]
