"""A result beside the right one, and beside wrong ones that are known."""

from mlax_tutorial.checking import Failed, checks


def matches(got, expected, rtol=1e-4, atol=1e-5):
    try:
        checks.same(got, expected, rtol=rtol, atol=atol)
    except Failed:
        return False
    return True


def compare(got, expected, wrong, **options):
    """As `checks.same`, with a diagnosis in front where the result is one of the wrong ones."""
    shown = {name: options.pop(name) for name in ("rtol", "atol") if name in options}
    try:
        checks.same(got, expected, **shown, **options)
    except Failed as failure:
        for other, reason in wrong:
            if matches(got, other() if callable(other) else other):
                failure.message = f"{reason}\n{failure.message}"
                break
        raise
