"""Runs what tests ask of a chapter that needs more devices than the process of the tests has."""

from mlax_tutorial.inspection import hosts


def ask(question, notebook: str, names: str, devices: int, quick: bool = True):
    """What ``question(code)`` returns in another process, with simulated devices.

    Args:
      question: a function, of what `assembled.definitions` finds; what it returns is sent back, so NumPy's arrays.
      notebook, names: of the definitions, the names in a row.
      devices: how many.
      quick: whether XLA optimizes little, which changes what devices send each other.
    """

    def program(question, notebook, names, quick):
        import jax

        from tests.chapters import assembled

        jax.config.update("jax_disable_most_optimizations", quick)
        return question(assembled.definitions(notebook, *names))

    (value,) = hosts.run(
        program, question, notebook, names.split(), quick, processes=1, devices=devices
    ).values
    return value
