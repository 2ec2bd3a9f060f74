"""Which exercise comes next, and why: on from where the reader was last, in the order of the book.

In each chapter first what they tried and have not solved, then what they have not tried. What they skipped waits until the rest of the
chapter, or of the book, is done.
"""

from mlax_tutorial.checking.outcome import FAILED, PASSED
from mlax_tutorial.exercises import catalog

BEGAN, SKIPPED = "you began it", "you skipped it"


def pick(noted):
    """``(exercise, reason)`` for what `progress.read` gives, or None if all exercises are done."""
    chapters = catalog.chapters()
    book = [exercise for chapter in chapters for exercise in catalog.of(chapter)]
    entries = {exercise: noted.get(f"{exercise.chapter}.{exercise.name}", {}) for exercise in book}
    tried = [exercise for exercise in book if entries[exercise]]
    # Where only the day is known, the reader has come as far as the book has come.
    last = max(reversed(tried), key=lambda exercise: _time(entries[exercise]), default=None)
    here = chapters.index(last.chapter) if last else 0
    for chapter in [*chapters[here:], *chapters[:here]]:
        exercises = catalog.of(chapter)
        began = [exercise for exercise in exercises if entries[exercise].get("status") == FAILED]
        if began:
            return max(began, key=lambda exercise: _time(entries[exercise])), BEGAN
        skipped = exercises.index(last) if last in exercises else 0
        for exercise in [*exercises[skipped:], *exercises[:skipped]]:
            if entries[exercise].get("status") != PASSED:
                before = book.index(exercise) < book.index(last) if last else False
                return exercise, SKIPPED if before else _reason(chapter, last)
    return None


def _reason(chapter, last):
    if last is None:
        return "the book begins with it"
    return (
        f"next in {catalog.title(chapter)}" if last.chapter == chapter else "the next chapter begins with it"
    )


def _time(entry):
    """When an exercise was last tried: to the second, or only to the day in a file of the first edition."""
    return str(entry.get("at") or entry.get("on") or "")
