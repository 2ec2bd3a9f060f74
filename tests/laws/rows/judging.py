"""Holds rows of the law table against the laws."""

import pytest

from mlax_tutorial.checking.outcome import Failed


def pairs(rows, laws):
    """A parameter for each row and each law that applies to it."""
    return [
        pytest.param(row, law, id=f"{law.name}-{row.id}")
        for row in rows
        for law in laws.values()
        if law.applies(row.subject)
    ]


def judge(law, subject):
    """Fails with all that the law says; an error in the subject's own code is shown with its way."""
    try:
        law(subject)
    except Failed as failure:
        said = [failure.message, *(f"{label}: {text}" for label, text in failure.shown)]
        raise AssertionError("\n".join(said)) from getattr(failure, "error", None)
