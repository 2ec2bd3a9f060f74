"""Numbers for any step."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.describe import describe
from mlax_tutorial.checking.guarding import bare
from mlax_tutorial.checking.programs import under
from mlax_tutorial.exercises.randomness._growth import does_not_grow, equations
from mlax_tutorial.exercises.randomness._keys import from_whole_keys, over_keys


def solution(key, start, count):
    def draw(step):
        return jax.random.normal(jax.random.fold_in(key, step))

    return jax.vmap(draw)(start + jnp.arange(count))


def check(draws):
    key = jax.random.key(0)
    checks.returns(draws, key, 0, 8, shape=(8,), dtype=jnp.float32)
    whole = np.asarray(draws(key, 0, 8))
    if len(np.unique(whole)) == 1:
        raise Failed("All steps get the same number: each needs a key of its own.", got=whole)
    for start, count in ((0, 4), (3, 4), (7, 1)):
        part = draws(key, start, count)
        name = f"draws(key, {start}, {count})"
        if part.shape != (count,):
            raise Failed(f"The shape of `{name}` is wrong: expected ({count},), got {part.shape}.")
        if not np.allclose(part, whole[start : start + count], rtol=1e-5):
            again = start > 0 and np.allclose(part, whole[:count], rtol=1e-5)
            reason = (
                "It does not depend on `start`: step 5 gets what step 0 should get."
                if again
                else "What a step gets depends on where one starts, or on how many are asked for."
            )
            raise Failed(
                reason,
                shown=[
                    ("draws(key, 0, 8)", describe(whole)),
                    (name, describe(part)),
                    ("expected", describe(whole[start : start + count])),
                ],
            )
    later = np.concatenate([whole, draws(key, 8, 8), draws(key, 1000, 8)])
    if len(np.unique(later)) < 24:
        raise Failed(
            "Of the steps 0 to 15 and 1000 to 1007 two get the same number: each step needs a key of its own."
        )
    with under("`jax.jit`, where `start` is traced"):
        four = jax.jit(lambda key, start: draws(key, start, 4))
        late = four(key, 3)
    checks.same(late, jax.device_put(whole[3:7]), where="under `jax.jit`", input="start = 3, count = 4")
    does_not_grow([equations(lambda key, n=n: draws(key, 0, n), key) for n in (4, 40)], "`count`")
    own = bare(draws)
    checks.keys(lambda key: own(key, 0, 8), key)
    from_whole_keys(draws, 0, 8)
    many = np.asarray(over_keys(draws, 400, 0, 8))
    if not (np.abs(many.mean(axis=0)) < 0.25).all() or not (np.abs(many.std(axis=0) - 1) < 0.2).all():
        raise Failed(
            "The numbers should be normal, with mean 0 and standard deviation 1.",
            shown=[("over 400 keys", f"mean {many.mean():.2f}, standard deviation {many.std():.2f}")],
        )
    near = np.abs(np.corrcoef(many.T) - np.eye(8)).max()
    if near > 0.35:
        raise Failed("The numbers of different steps are not independent of each other.")
    if abs((np.abs(many) > 2).mean() - 0.0455) > 0.02:
        raise Failed("The numbers should be normal: too many or too few of them are larger than 2.")
    far = [four(key, start) for start in (65_536, 2_000_000, 1_000_000_000)]
    if len(np.unique(np.concatenate([whole, *far]))) < 20:
        raise Failed(
            "Steps far from each other get the same number: a table comes to its end, and small integers wrap around. "
            "Make a step's key from its whole number."
        )


exercise = Exercise(
    title="Numbers for any step",
    stars=2,
    minutes=10,
    why="A key that belongs to a step by its number lets a run resume anywhere, and compiled loops need no chain of keys.",
    hints=(
        "Write the function of one step first: which key belongs to step 7, wherever one starts?",
        "`jax.random.fold_in(key, step)` makes it; `jax.vmap` maps the function over `start + jnp.arange(count)`.",
    ),
    solution=solution,
    check=check,
)
