"""The machinery behind the book's exercises: grade an answer, say what is wrong, give hints, keep progress.

How to write an exercise
------------------------
A chapter's exercises live in one module, ``mlax_tutorial/exercises/CHAPTER.py``. An exercise is a value
in that module, and its name is the attribute's name::

    import jax.numpy as jnp
    import numpy as np

    from mlax_tutorial.checking import Exercise, Failed, Mistake, checks, inputs


    def _double(x):                                  # the solution: shown to the reader as `def double(x)`
        return 2 * x


    def _check_double(double):                       # raises Failed, or returns None when all is well
        checks.values(double, _double, inputs.arrays("n"))
        checks.works_under_jit(double, jnp.arange(3.0))


    def _in_place(x):                                # wrong answers are real code, like the reader's
        x *= 2


    def _power(x):
        return x**2


    def _list(x):
        return [2 * v for v in x]


    double = Exercise(
        title="Double every element",                # at most 60 characters
        stars=1,                                     # 1 to 3
        minutes=2,
        why="One sentence, shown when it is passed: why this matters in JAX.",
        hints=("The first nudge.", "A stronger one; the last may almost give it away."),
        solution=_double,
        check=_check_double,
        mistakes=(                                   # three or more, each with a part of its own diagnosis
            Mistake(_in_place, says="`return` missing"),
            Mistake(_power, says="expected"),
            Mistake(_list, says="returned a list"),
        ),
    )

The reader then writes, in the notebook::

    from mlax_tutorial.exercises import welcome as ex

    def double(x):
        ...  # your code

    ex.double.check(double)        # also ex.double.hint(), ex.double.solution()

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
- A wrong answer that people often give can be recognised by what it computes: ``checks.values(…, recognise=[(wrong,
  "This averages before it squares.")])`` says so where the reader's function agrees with ``wrong`` on every input tried.
- An exercise that needs longer than 20 seconds, or loops of JAX over 100,000 iterations, says so: ``seconds=…``,
  ``iterations=…``.
- ``exercise.grade(answer)`` gives the :class:`Outcome` without showing or recording it; the tests in
  ``tests/exercises`` run it over the stub, the solution and every mistake of every exercise they find.
- Keep a check under three seconds: few shapes, small arrays (each new shape compiles each operation anew).
"""

from mlax_tutorial.checking import checks, inputs
from mlax_tutorial.checking.exercise import Exercise
from mlax_tutorial.checking.outcome import Failed, Outcome

__all__ = ["Exercise", "Failed", "Outcome", "checks", "inputs"]
