"""A function that copies nothing from the host when it is called."""

import jax
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.inspection import retracing


def solution(mean, deviation):
    placed = jax.device_put((mean, deviation))

    @jax.jit
    def standardized(images, mean, deviation):
        return (images - mean) / deviation

    return lambda images: standardized(images, *placed)


def check(standardizer):
    draw = np.random.default_rng(0)
    mean = draw.uniform(0, 1, (4, 5)).astype(np.float32)
    deviation = draw.uniform(1, 2, (4, 5)).astype(np.float32)
    kept = mean.copy(), deviation.copy()
    apply = standardizer(mean, deviation)
    if not callable(apply):
        raise Failed("Return a function of images.", got=apply)
    batches = [jax.device_put(draw.uniform(0, 1, (n, 4, 5)).astype(np.float32)) for n in (3, 3, 2)]
    for images in batches:
        expected = (np.asarray(images) - kept[0]) / kept[1]
        checks.same(
            apply(images), jax.numpy.asarray(expected), where="of `apply(images)`", rtol=1e-5, atol=1e-5
        )
    with retracing.compilations() as compiled:
        try:
            with jax.transfer_guard("disallow_explicit"):
                for images in batches:
                    apply(images)
        except Exception as error:
            said = str(getattr(error, "error", error))
            if "Disallowed" not in said and "transfer" not in said:
                raise
            raise Failed(
                "`apply` copies something from the host when it is called: a NumPy array, or in eager code a Python number. Put what does not change on the device once, before, and pass it on.",
                shown=[("transfer guard", said.splitlines()[0][:120])],
            ) from error
    if compiled:
        raise Failed(
            "`apply` compiles again for shapes that it has seen: is a new function jitted at each call?"
        )


exercise = Exercise(
    title="Standardize without a copy from the host",
    stars=2,
    minutes=10,
    why="What does not change is copied once; a guard around the training step says at once when something else creeps in.",
    hints=(
        "`jax.device_put((mean, deviation))`, once, outside of `apply`.",
        "Define one jitted function outside of `apply`, and pass the placed arrays as arguments. (As constants of the program they would do, too.)",
    ),
    solution=solution,
    check=check,
)
