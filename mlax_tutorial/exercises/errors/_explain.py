"""A failure that says what is behind it."""

import jax

from mlax_tutorial.checking import Failed


def no_tracers(got, advice):
    """Fails where a result holds a tracer that outlived its trace."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(got)):
        raise Failed(f"A tracer got out of its trace, and stands in the result. {advice}")
