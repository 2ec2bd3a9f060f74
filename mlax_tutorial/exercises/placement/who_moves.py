"""On which device does each of eight results live?"""

from mlax_tutorial.checking import Exercise, checks

solution = {
    "u + u": 0,
    "u + a": 1,
    "n + b": 2,
    "a + b": "error",
    "jax.device_put(a, jax.devices()[2]) + b": 2,
    "jnp.zeros_like(a) + u": 1,
    "jax.jit(jnp.zeros_like)(a) + b": 2,
    "jax.device_put(u, jax.devices()[0]) + a": "error",
}


def check(given):
    moves = "An uncommitted array goes to where a committed one is."
    why = {
        "u + u": {"error": "Two uncommitted arrays meet on the default device."},
        "u + a": {0: moves, "error": moves},
        "n + b": {0: "A NumPy array has no place of its own: it is copied to where the committed array is."},
        "a + b": {1: "Both are committed, and JAX does not choose between them.", 2: "Both are committed, and JAX does not choose between them."},
        "jax.device_put(a, jax.devices()[2]) + b": {"error": "`device_put` moves committed arrays, too: that is what it is for."},
        "jnp.zeros_like(a) + u": {0: "Eagerly, `zeros_like` sees the real array, and takes its device over."},
        "jax.jit(jnp.zeros_like)(a) + b": {"error": "What does the compiled program know of `a`? Its shape and dtype. So the zeros are on the default device, and uncommitted.", 1: "Under `jit`, `zeros_like` sees a tracer, which has no device."},
        "jax.device_put(u, jax.devices()[0]) + a": {1: "It was on device 0 before, too. But now somebody said so, and it is committed.", 0: "Nor does `a` move: it is committed."},
    }  # fmt: skip
    checks.answers(given, solution, why)


exercise = Exercise(
    title="On which device do eight sums live?",
    stars=1,
    minutes=8,
    why="Committed arrays stay, others come to them, and two that are committed to different places do not meet.",
    hints=(
        "Ask of each operand: did somebody place it? If nobody did, it comes to the other one.",
        "`device_put` commits, even to the device on which the array already was. Two of the eight are errors.",
    ),
    solution=solution,
    check=check,
)
