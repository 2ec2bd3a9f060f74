"""Classifier-free guidance: beyond the conditional denoiser, away from the unconditional one."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks, guarding

NONE = 10  # the label for "no class"


def solution(denoise, weight):
    def guided(x, sigma, label):
        without = denoise(x, sigma, jnp.full_like(label, NONE))
        return without + weight * (denoise(x, sigma, label) - without)

    return guided


X, LABEL = np.array([[1.0, 2.0], [-1.0, 0.5], [0.0, 4.0]], np.float32), np.array([3, 0, 9], np.int32)


def _denoise(x, sigma, label):
    label = jnp.asarray(label)
    if not jnp.issubdtype(label.dtype, jnp.integer):
        raise Failed(
            f"Labels are integers, and the denoiser got {label.dtype}: an embedding refuses it.", got=label
        )
    towards = jnp.broadcast_to(
        jnp.where(label == NONE, 0.25, label + 1.0), len(x)
    )  # as an embedding's row would be
    towards = towards[:, None] * jnp.array([1.0, -0.5])
    return (x + sigma**2 * towards) / (1 + sigma**2)


def check(guided):
    x, label, sigma = jnp.asarray(X), jnp.asarray(LABEL), jnp.float32(2.0)
    given = {"x": X, "sigma": 2.0, "label": LABEL}
    made = checks.returned(guided(_denoise, 3.0))
    if not callable(made):
        raise Failed("`guided` returns a denoiser: a function of `(x, sigma, label)`.", got=made)
    made = guarding.guard(made, "guided")
    conditional, without = (np.asarray(_denoise(x, sigma, which)) for which in (label, jnp.full(3, NONE)))
    expected = without + 3 * (conditional - without)
    got = made(x, sigma, label)
    zero = np.asarray(_denoise(x, sigma, jnp.zeros(3, jnp.int32)))
    for wrong, said in [
        (conditional + 3 * (conditional - without), "A weight of 1 must be the conditional denoiser itself. This adds the weight on top of it, as the first paper counts: theirs is one less than ours."),
        (conditional + 3 * (without - conditional), "This leads away from the class: conditional and unconditional are exchanged."),
        (conditional, "The weight has no effect: this is the conditional denoiser."),
        (without, "This is the unconditional denoiser."),
        (zero + 3 * (conditional - zero), "Label 0 is a class, T-shirt. The label for none is 10."),
        (3 * conditional - without, "At a weight of 1 this is not the conditional denoiser: the two weights must sum to 1."),
        (3 * conditional, "The weight scales the whole estimate, and not the step from the unconditional to the conditional one."),
    ]:  # fmt: skip
        if np.shape(got) == wrong.shape and np.allclose(got, wrong, rtol=1e-4, atol=1e-5):
            raise Failed(said, input=given | {"weight": 3.0}, expected=expected, got=got)
    checks.same(got, jnp.asarray(expected), input=given | {"weight": 3.0}, rtol=1e-4, atol=1e-4)
    for weight, same in [(1.0, conditional), (0.0, without)]:
        got = guided(_denoise, weight)(x, sigma, label)
        checks.same(got, jnp.asarray(same), where=f"with a weight of {weight:.0f}", rtol=1e-4, atol=1e-4)
    others = [
        ("x", x[::-1] + 1, sigma, label),
        ("sigma", x, jnp.float32(0.5), label),
        ("label", x, sigma, (label + 1) % 10),
    ]
    for name, *arguments in others:  # one estimate may be kept from the first call, or both
        wanted = solution(_denoise, 3.0)(*arguments)
        got = made(*arguments)
        if np.shape(got) == wanted.shape and not np.allclose(got, wanted, rtol=1e-4, atol=1e-4):
            raise Failed(
                f"The first call is right. The second, with another `{name}`, is not: an estimate is kept from the first one. Call "
                "`denoise` twice in each call.",
                expected=wanted,
                got=got,
            )
        checks.same(got, wanted, where=f"with another {name}", rtol=1e-4, atol=1e-4)

    def traced(weight, x):
        return guided(_denoise, weight)(x, sigma, label)

    checks.works_under_jit(traced, jnp.float32(1.5), x)


exercise = Exercise(
    title="Classifier-free guidance",
    stars=1,
    minutes=8,
    why="A denoiser made of denoisers: the sampler and its compiled loop need not know.",
    hints=(
        "Two estimates: with the label, and with 10 for every row, `jnp.full_like(label, 10)`.",
        "Begin at the one without a label, and go `weight` times the way to the one with it.",
    ),
    solution=solution,
    check=check,
)
