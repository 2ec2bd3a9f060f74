"""Gradients of what is linear in each of its arguments, checked without finite differences."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Failed
from mlax_tutorial.checking.programs import under


def flow(function, **arguments):
    """Half of the squares of ``function``, which is linear in each argument: each argument times its gradient adds up to the
    sum of the squares (Euler), so a `stop_gradient` shows without another program."""

    @jax.jit
    def measured(arguments):
        loss, back = jax.vjp(lambda arguments: jnp.sum(function(**arguments) ** 2) / 2, arguments)
        [gradients] = back(jnp.ones_like(loss))
        return 2 * loss, jax.tree.map(jnp.vdot, arguments, gradients), gradients

    with under("`jax.jit`"):
        squares, products, gradients = measured(arguments)
    for name, product in products.items():
        if not np.allclose(product, squares, rtol=2e-2):
            none = "No gradient reaches" if not np.any(gradients[name]) else "The gradient is wrong for"
            raise Failed(
                f"The numbers are right, but not the gradients. {none} `{name}`: is there a `stop_gradient` too many?",
                got=gradients[name],
            )
