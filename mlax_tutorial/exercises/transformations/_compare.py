"""Whether two results agree, but for rounding."""

from mlax_tutorial.checking import Failed, checks


def close(one, two):
    try:
        checks.same(one, two, rtol=1e-5, atol=1e-6)
    except Failed:
        return False
    return True
