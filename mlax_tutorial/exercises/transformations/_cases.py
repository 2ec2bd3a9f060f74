"""What a failure says of the case in which it happens."""

from mlax_tutorial.checking import checks
from mlax_tutorial.checking.outcome import NotAttempted


def for_this_case(reason):
    return f" For this case: {reason}" if reason else ""


def refused(name, reason):
    return f"It happens with {name}: your code raises `NotImplementedError`.{for_this_case(reason)}"


def refuses(call, *arguments):
    try:
        checks.refuses(call, *arguments, error=NotImplementedError)
    except NotAttempted:  # it was raised without a message, as stubs do
        pass
