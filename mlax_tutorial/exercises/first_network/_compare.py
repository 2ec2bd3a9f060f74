"""Whether two results agree, but for rounding."""

from mlax_tutorial.checking import Failed, checks


def alike(one, two):
    try:
        checks.same(one, two, rtol=1e-4, atol=1e-5)
    except Failed:
        return False
    return True
