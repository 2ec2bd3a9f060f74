"""``viz.traceback``: an error taken apart, one's own lines marked, those of libraries folded away.

The error is read by `mlax_tutorial.inspection.failures`; the markup is made in `page`.
"""

from mlax_tutorial.inspection import failures
from mlax_tutorial.viz.figures.traceback import page


class Traceback:
    """An error that was taken apart; a notebook shows it as a list that unfolds, a terminal as a listing."""

    def __init__(self, failure):
        self.failure = failure

    def _repr_html_(self):
        return page.write(self.failure)

    def __repr__(self):
        return page.listing(self.failure)


def traceback(error) -> Traceback:
    """Show an error in the order in which it is best read.

    What is shown: the frames of the traceback, outermost first, one's own in full and those of libraries in groups
    to be unfolded; then, where the error comes from an operation that a transformation made, the frames of the
    operation it was made from, if JAX knows them; the last line of one's own marked; then the class with the classes above
    it, and the message without paths and addresses.

    Args:
      error: an exception, caught by ``except``, or what `mlax_tutorial.inspection.failures.fails` has caught. In a terminal JAX
        removes its own frames (``jax_traceback_filtering``), so that there are none to be shown.

    Returns:
      A `Traceback`: write it as the last expression of a cell.

    Raises:
      TypeError: if it is neither.

    Example:
      >>> from mlax_tutorial import viz
      >>> try:
      ...     abs("three")
      ... except TypeError as error:
      ...     figure = viz.traceback(error)
      >>> figure
      your code   line 2: abs("three")
      TypeError
        bad operand type for abs(): 'str'
    """
    if isinstance(error, BaseException):
        error = failures.read(error)
    if not isinstance(error, failures.Failure) or error.error is None:
        raise TypeError("an exception is asked for, or what `fails` has caught")
    return Traceback(error)
