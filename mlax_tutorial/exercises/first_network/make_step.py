"""A jitted, donated step with momentum."""

import functools

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks, guarding


def solution(loss_fn):
    @functools.partial(jax.jit, donate_argnames=("params", "velocity"))
    def step(params, velocity, batch, learning_rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients)
        params = jax.tree.map(lambda p, v: p - learning_rate * v, params, velocity)
        return params, velocity, loss

    return step


def _line_loss(params, batch):
    x, y = batch
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


def _start():
    """Fresh arrays at each call, since a step may donate them."""
    params = {"w": np.array([1.0, -2.0, 0.5], np.float32), "b": np.array(0.25, np.float32)}
    velocity = {"w": np.array([0.5, 1.0, -1.0], np.float32), "b": np.array(-0.5, np.float32)}
    return jax.device_put((params, velocity))


def _line_batch(index):
    x = np.arange(12, dtype=np.float32).reshape(4, 3) / 4 - index
    return jax.device_put((x, np.array([1.0, -1.0, 0.5, 2.0], np.float32)))


def _in_numpy(tree):
    return jax.tree.map(np.float32, tree)


@functools.cache
def _reference_step():
    return solution(_line_loss)


def check(make_step):
    if hasattr(guarding.original(make_step), "lower"):
        raise Failed(
            "You jitted `make_step`, which takes a function and returns one: those are no arrays. `step` inside is what "
            "`jax.jit` is for."
        )
    traced = []

    def loss_fn(params, batch):  # called while JAX traces, and at each call of a step that is not jitted
        traced.append(True)
        return _line_loss(params, batch)

    loss_fn.__qualname__ = "loss_fn"  # as it stands in the reader's errors
    step = make_step(loss_fn)
    if step is None:
        raise Failed("`make_step` returned None: it should return the function `step`.")
    if not callable(step):
        raise Failed(
            f"`make_step` should return the function `step`, but it returned a {type(step).__name__}."
        )
    step = guarding.guard(step, "step")
    _right_step(step)
    _second_step(step)
    _one_trace(step, traced)
    _one_program(step)


def _right_step(step):
    params, velocity, batch, rate = *_start(), _line_batch(0), 0.1
    result = step(params, velocity, batch, rate)
    checks.returned(result, "params", "velocity", "loss", lists=True, by="`step`")
    if not isinstance(result[0], dict) and isinstance(result[2], dict):
        raise Failed("`step` should return params, velocity, loss, in this order.", got=result)
    slopes = jax.jit(jax.value_and_grad(_line_loss))
    expected = _reference_step()(*_start(), batch, rate)
    start, before, gradients, after = _in_numpy((*_start(), slopes(_start()[0], batch)[1], expected[1]))

    def move(direction):
        return tree(lambda p, d: p - rate * d, start, direction)

    def tree(f, *trees):
        return _in_numpy(jax.tree.map(f, *trees))

    recognise = [
        (
            (move(gradients), gradients),
            "The old velocity is forgotten: without it this is plain gradient descent.",
        ),
        (
            (move(gradients), expected[1]),
            "The weights move along the gradient, and the velocity is computed but not used.",
        ),
        (
            (move(before), expected[1]),
            "The weights move along the old velocity, before the gradient is added to it.",
        ),
        (
            (tree(lambda p, v: p + rate * v, start, after), after),
            "The weights go up the slope: subtract the learning rate times the velocity.",
        ),
        (
            (move(tree(lambda v, g: 0.9 * v + 0.1 * g, before, gradients)), None),
            "The new velocity should be 0.9 times the old one plus the whole gradient, not a tenth of it.",
        ),
        (
            (move(tree(lambda v, g: v + g, before, gradients)), None),
            "The velocity only grows: the old one must be multiplied by the momentum, 0.9.",
        ),
        (
            (move(tree(lambda v, g: 0.9 * v + g, after, gradients)), after),
            "This is Nesterov's step: it looks ahead along the velocity. The plain one is asked for.",
        ),
        (
            (expected[0], before),
            "The weights are right, but you return the old velocity: the next step would have nothing to build on.",
        ),
        (
            (expected[0], gradients),
            "The weights are right, but you return the gradients in the place of the velocity.",
        ),
        *[
            (
                (tree(lambda p, v, g, s=s: p + s * 0.9 * v - rate * g, start, before, gradients), None),
                "The learning rate is inside your velocity. There a new rate would act on new gradients only; it belongs "
                "to the move: weights minus learning rate times velocity.",
            )
            for s in (1, -1)
        ],
        (
            (tree(lambda p, v, g: p + rate * (0.9 * v - g), start, before, gradients), None),
            "Your velocity points down the slope: it subtracts the gradient, and the weights add it. The one that comes in "
            "is meant as the exercise says: the gradient is added to it, and the move subtracts it.",
        ),
        ((expected[1], expected[0]), "Weights and velocity are swapped in what you return."),
        ((start, None), "The weights that you return are the old ones."),
    ]
    _compare_step(result, expected, [*recognise, *_other_momentum(result, gradients, before, move)])
    if checks.agrees(result[2], gradients):
        raise Failed("The third thing should be the loss, a number; you return the gradients.")
    loss_after, _ = slopes(expected[0], batch)
    if (
        isinstance(result[2], jax.Array)
        and result[2].shape == ()
        and np.allclose(result[2], loss_after, rtol=1e-5)
    ):
        raise Failed(
            "The loss that you return is that of the new weights. It costs another forward pass: `value_and_grad` has the "
            "loss of the old ones at hand.",
            expected=expected[2],
            got=result[2],
        )
    checks.same(result[2], expected[2], where="for the loss")


def _other_momentum(result, gradients, before, move):
    """What the step would give with the momentum that can be read off the velocity."""
    try:
        momentum = float((np.asarray(result[1]["b"]) - gradients["b"]) / before["b"])
        velocity = _in_numpy(jax.tree.map(lambda v, g: momentum * v + g, before, gradients))
        yield (move(velocity), velocity), f"Your momentum is {momentum:.3g}; the exercise asks for 0.9."
    except (TypeError, KeyError, IndexError, ValueError):
        return


def _second_step(step):
    """Another batch, another rate, from where the first step led: nothing of the first call may have stuck."""
    params, velocity, _ = step(*_start(), _line_batch(0), 0.1)
    result = step(params, velocity, _line_batch(1), 0.25)
    params, velocity, _ = _reference_step()(*_start(), _line_batch(0), 0.1)
    halfway = jax.tree.map(jnp.copy, (params, velocity))
    expected = _reference_step()(params, velocity, _line_batch(1), 0.25)
    if not checks.agrees(result[:2], expected[:2]) and checks.agrees(
        result[0], _reference_step()(*halfway, _line_batch(1), 0.1)[0]
    ):
        raise Failed(
            "Your step moves by the same learning rate whatever it is given: the first call, with 0.1, is right, the "
            "second one, with 0.25, moves as if it had been 0.1."
        )
    where = "after a second step, with another batch and learning rate"
    with checks.says(
        "The first call is right, the second is not: does your step keep something of the first, outside of its "
        "arguments?"
    ):
        checks.same(tuple(result), expected, where=where, rtol=1e-4, atol=1e-5)


def _compare_step(result, expected, recognise):
    def known(_):
        for (params, velocity), text in recognise:
            if checks.agrees(result[0], params) and (velocity is None or checks.agrees(result[1], velocity)):
                return text
        return ""

    with checks.says(known):
        checks.same(result[0], expected[0], where="for the weights", rtol=1e-4, atol=1e-5)
        checks.same(result[1], expected[1], where="for the velocity", rtol=1e-4, atol=1e-5)


def _one_trace(step, traced):
    """By now there were calls; those that follow must leave the loss alone."""
    log = []
    for index, rate in enumerate((0.1, 0.05, 0.05, 0.2)):
        before = len(traced)
        step(*_start(), _line_batch(index), rate)
        log.append((rate, len(traced) > before))
    lines = [f"learning rate {rate}: {'traced' if new else 'from the cache'}" for rate, new in log]
    if log[2][1]:  # the same shapes and the same rate as just before
        raise Failed(
            "Python runs your loss again at each call, even where nothing is new: `step` is not jitted, or `jax.jit` is "
            "applied anew at each call, inside `step`. Jit it once, in `make_step`."
        )
    if any(again for _, again in log):
        raise Failed(
            "Your step is traced again for a batch of the same shape and another learning rate. What is static is part of "
            "the cache's key by its value; let the learning rate be an ordinary argument.",
            shown=[("calls", "\n".join(lines))],
        )


def _one_program(step):
    """All of the step is one jitted program. Params and velocity are given up to it, the batch is not."""
    arguments = (*_start(), _line_batch(0))
    program = jax.make_jaxpr(lambda *trees: step(*trees, 0.1))(*arguments)
    inputs_of, donated, outside = program.jaxpr.invars, set(), []
    for equation in program.jaxpr.eqns:
        given = [inputs_of.index(x) for x in equation.invars if x in inputs_of]
        if "donated_invars" not in equation.params:
            outside.extend([equation.primitive.name] if given else [])
            continue
        pairs = zip(equation.invars, equation.params["donated_invars"], strict=True)
        donated.update(inputs_of.index(x) for x, gone in pairs if gone and x in inputs_of)
    if outside:
        raise Failed(
            "A part of your step is jitted, but not all of it: some of the arithmetic on the weights is done one operation "
            "at a time, outside of the compiled program.",
            shown=[("outside", ", ".join(outside))],
        )
    names = [
        name for name, tree in zip(("params", "velocity", "batch"), arguments) for _ in jax.tree.leaves(tree)
    ]
    kept = {name for place, name in enumerate(names) if place not in donated}
    if "params" in kept:
        raise Failed(
            "The old `params` are still there after the step, so the new ones need memory of their own: donate what the "
            "step replaces."
        )
    if "velocity" in kept:
        raise Failed(
            "The weights are donated, the old velocity is not: it is as large, and the step replaces it, too."
        )
    if any(names[place] == "batch" for place in donated):
        raise Failed(
            "The batch is donated, too, but the step does not replace it, and the next epoch wants it again."
        )


exercise = Exercise(
    title="A jitted, donated step with momentum",
    stars=3,
    minutes=20,
    why=(
        "One compiled program for the whole training: no new trace for a new batch or learning rate, and no second copy of "
        "the weights."
    ),
    hints=(
        "Begin with `train_step` of the chapter. What changes is one more tree, which comes in and goes out.",
        "`jax.tree.map` takes a function of several arguments and as many trees: "
        "`jax.tree.map(lambda v, g: …, velocity, gradients)`.",
        "Put `@partial(jax.jit, donate_argnames=(…))` above `step`, inside `make_step`, and name both trees that are replaced. "
        "The learning rate is an ordinary argument: nothing static.",
    ),
    solution=solution,
    check=check,
)
