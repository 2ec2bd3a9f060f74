"""The exercises of the chapter A first network."""

import functools
import inspect
import math

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, Mistake, checks, inputs, reader
from mlax_tutorial.inspection import jaxprs

# mse


def _mse(preds, targets):
    return jnp.mean((preds - targets) ** 2)


def _check_mse(mse):
    def pair(*shape):
        def draw_both(draw):
            preds = draw(inputs.arrays(*shape, sizes=(1, 2, 3, 5)))
            return preds, draw(inputs.arrays(*preds.shape))

        return inputs.together(draw_both)

    # All the wrong formulas below give different numbers here, so that none is taken for another.
    telling = (jnp.array([3.0, -1.0, 2.5]), jnp.array([1.0, 0.5, -2.0]))
    recognise = [
        (
            lambda p, t: jnp.sum(p - t) ** 2,
            "You sum first and square after, as the notes did: errors of opposite sign cancel.",
        ),
        (
            lambda p, t: jnp.mean(p - t) ** 2,
            "You average first and square after: errors of opposite sign cancel.",
        ),
        (
            lambda p, t: jnp.sum((p - t) ** 2),
            "This is the sum of the squares, not their mean: it grows with the number of predictions.",
        ),
        (lambda p, t: jnp.mean(p - t), "The differences are not squared, so errors of opposite sign cancel."),
        (
            lambda p, t: jnp.mean(jnp.abs(p - t)),
            "This is the mean of the absolute differences, not of their squares.",
        ),
        (lambda p, t: jnp.sqrt(_mse(p, t)), "This is the root of the mean squared error: one root too many."),
        (
            lambda p, t: _mse(p, t) / 2,
            "This is half of the mean squared error. Some textbooks write it so, to tidy up the gradient; here the "
            "plain mean is asked for.",
        ),
        (
            lambda p, t: jnp.mean(p - t**2),
            "`**` binds tighter than `-`, so this squares the targets only: put the difference in parentheses.",
        ),
        (
            lambda p, t: jnp.mean(p**2 - t**2),
            "These are differences of squares: subtract first, then square.",
        ),
        (
            lambda p, t: jnp.mean(p**2),
            "The targets are not used. (In the chapter's example they were all 0.)",
        ),
    ]
    by_rows = [
        (
            lambda p, t: jnp.sum((p - t) ** 2) / len(p),
            "You divide by the number of rows, `len(preds)`, not by the number of all predictions.",
        ),
        (
            lambda p, t: jnp.mean((p - t) ** 2, axis=0),
            "This averages over the first axis only; one number is asked for, whatever the shape.",
        ),
        (
            lambda p, t: jnp.mean((p - t) ** 2, axis=-1),
            "This averages over the last axis only; one number is asked for, whatever the shape.",
        ),
    ]
    table = (
        jnp.array([[3.0, -1.0], [2.0, 0.5], [1.0, 4.0]]),
        jnp.array([[1.0, 1.0], [-2.0, 0.0], [1.0, 1.0]]),
    )
    checks.values(mse, _mse, pair("n"), examples=[telling], recognise=recognise)
    checks.values(mse, _mse, pair("n", 2), examples=[table], recognise=by_rows)
    checks.works_under_jit(mse, *telling)
    checks.gradients(mse, _mse, *telling)


def _mse_notes(preds, targets):
    return jnp.sum(preds - targets) ** 2


def _mse_sum(preds, targets):
    return jnp.sum((preds - targets) ** 2)


def _mse_absolute(preds, targets):
    return jnp.abs(preds - targets).mean()


def _mse_first_axis(preds, targets):
    return jnp.mean((preds - targets) ** 2, axis=0)


def _mse_numpy(preds, targets):
    return np.mean((np.asarray(preds) - np.asarray(targets)) ** 2)


def _mse_by_rows(preds, targets):
    return jnp.sum((preds - targets) ** 2) / len(preds)


def _mse_no_parentheses(preds, targets):
    return jnp.mean(preds - targets**2)


def _mse_without_targets(preds, targets):
    return jnp.mean(preds**2)


def _mse_flat(preds, targets):
    return jnp.mean((jax.lax.stop_gradient(preds) - targets) ** 2)


mse = Exercise(
    title="Mend the loss",
    stars=1,
    minutes=5,
    why="A loss is the one thing that training believes. This one is zero only where every prediction is right.",
    hints=(
        "For one prediction, squaring the difference makes it positive. At which point must that happen?",
        "First the differences, then the square of each, then one mean over all of them, whatever the shape.",
        "`preds - targets` in parentheses, `** 2` right behind them, and `jnp.mean` around it all.",
    ),
    solution=_mse,
    check=_check_mse,
    mistakes=(
        Mistake(_mse_notes, says="sum first and square after"),
        Mistake(_mse_sum, says="grows with the number of predictions"),
        Mistake(_mse_absolute, says="mean of the absolute differences"),
        Mistake(_mse_first_axis, says="over the first axis only"),
        Mistake(_mse_by_rows, says="number of rows"),
        Mistake(_mse_no_parentheses, says="binds tighter than `-`"),
        Mistake(_mse_without_targets, says="targets are not used"),
        Mistake(_mse_flat, says="The gradient is wrong"),
        Mistake(_mse_numpy, says="NumPy"),
    ),
)


# binary_cross_entropy


def _binary_cross_entropy(logits, labels):
    m = jnp.maximum(logits, 0)  # the larger of the two exponents in log(e^0 + e^z)
    return m + jnp.log(jnp.exp(-m) + jnp.exp(logits - m)) - logits * labels


def _check_binary_cross_entropy(function):
    _not_ready_made(function)

    def pair(*shape):
        def draw_both(draw):
            logits = draw(inputs.arrays(*shape, sizes=(1, 2, 3)))
            return logits, draw(inputs.arrays(*logits.shape, low=0, high=1, dtype="int32")).astype("float32")

        return inputs.together(draw_both)

    telling = (jnp.array([2.0, 1.0, -3.0]), jnp.array([1.0, 0.0, 0.0]))
    recognise = [
        (lambda z, y: -_binary_cross_entropy(z, y), "The sign is wrong: a loss is minus the logarithm."),
        (
            lambda z, y: _binary_cross_entropy(-z, y),
            "This is the loss of the opposite label: the two cases are swapped.",
        ),
        (
            lambda z, y: jnp.mean(_binary_cross_entropy(z, y)),
            "This is the mean over the batch; here one loss for each example is asked for.",
        ),
        (
            lambda z, y: jnp.sum(_binary_cross_entropy(z, y)),
            "This is the sum over the batch; here one loss for each example is asked for.",
        ),
        (lambda z, y: -y * jax.nn.log_sigmoid(z), "The second half is missing: what if the label is 0?"),
        (lambda z, y: jax.nn.sigmoid(z), "This is the probability p; the loss is minus its logarithm."),
    ]
    checks.values(
        function,
        _binary_cross_entropy,
        pair("n"),
        examples=[telling],
        recognise=recognise,
        rtol=1e-4,
        atol=1e-5,
    )
    checks.values(function, _binary_cross_entropy, pair("n", 2), count=5, rtol=1e-4, atol=1e-5)
    one = (jnp.array(2.0), jnp.array(1.0))
    checks.values(function, _binary_cross_entropy, examples=[one], rtol=1e-4, atol=1e-5)
    grid = [(z, y) for z in (20.0, -20.0, 100.0, -100.0, 1000.0, -1000.0) for y in (0.0, 1.0)]
    for z, y in grid:
        _large_logit(function, z, y)
    _large_among_small(function)
    for z, y in [(3.0, 1.0), (-3.0, 0.0), *grid, (0.0, 0.0), (0.0, 1.0)]:
        _its_gradient(function, z, y)
    checks.works_under_jit(function, *telling)


def _not_ready_made(function):
    """The loss that Optax has is not called, under whatever name it was imported."""
    theirs = reader.underlying(reader.original(function))
    if not inspect.isfunction(theirs):
        return
    for name in theirs.__code__.co_names:
        value = theirs.__globals__.get(name)
        home = getattr(value, "__module__", None) or getattr(value, "__name__", "")
        if f"{name}.".startswith("optax.") or f"{home}.".startswith("optax."):
            raise Failed(
                "This is Optax's loss, ready-made. Later in the chapter you may call it; here, write what is inside."
            )


def _large_among_small(function):
    logits, labels = jnp.array([1000.0, -3.0, -1000.0, 3.0]), jnp.array([1.0, 0.0, 0.0, 1.0])
    expected, got = _binary_cross_entropy(logits, labels), function(logits, labels)
    if not jnp.allclose(got, expected, rtol=1e-3, atol=1e-6):
        raise Failed(
            "One logit at a time your loss is right, but not where large and small ones stand in one array: do you "
            "subtract the largest logit of *all* examples? Each example needs its own.",
            input={"logits": logits, "labels": labels},
            expected=expected,
            got=got,
        )


def _large_logit(function, z, y):
    logit, label = jnp.array([z]), jnp.array([y])
    expected, got = _binary_cross_entropy(logit, label), function(logit, label)
    shown = {"input": {"logits": logit, "labels": label}, "expected": expected, "got": got}
    if not jnp.all(jnp.isfinite(got)):
        raise Failed(
            "For small logits your loss is right, for large ones it is not finite: on the way to it an `exp` "
            "overflows, or a `log` gets a 0. Take the logarithm on paper first.",
            **shown,
        )
    if not jnp.allclose(got, expected, rtol=1e-3, atol=1e-6):
        if got[0] > 1e30:
            raise Failed(
                "For large logits your loss is a huge number in the place of an infinity, which hides it and does not "
                "mend it: an `exp` overflowed, or a `log` got a 0. Take the logarithm on paper first.",
                **shown,
            )
        if expected[0] > 1 and (got[0] < expected[0] or jnp.allclose(got, function(5 * logit, label))):
            raise Failed(
                "For a confident mistake your loss stops growing. That comes from clipping, or from rounding the "
                "probability to 0 or 1 and adding a small number: there the logit does not count any more, and where the "
                "loss is flat there is no gradient.",
                **shown,
            )
        raise Failed("For small logits your loss is right, for large ones it is not.", **shown)


def _its_gradient(function, z, y):
    logit, label = jnp.array([z]), jnp.array([y])
    expected = jax.nn.sigmoid(logit) - label
    got = jax.grad(lambda logit: function(logit, label).sum())(logit)
    shown = {"input": {"logits": logit, "labels": label}, "expected": expected, "got": got}
    if jnp.allclose(got, expected, rtol=1e-3, atol=1e-5):
        return
    if not jnp.all(jnp.isfinite(got)):
        raise Failed(
            "The loss is right, but its gradient is not finite. Both sides of a `jnp.where` are computed and "
            "differentiated: if the one that is not chosen overflows, 0 times infinity is NaN. Make the argument of `exp` "
            "safe, not only the result.",
            **shown,
        )
    if z == 0:
        raise Failed(
            "The loss is right everywhere, its gradient everywhere but at the logit 0, where `abs`, `maximum`, `relu` "
            "or a condition has a corner, for which JAX must choose a slope. The loss itself is smooth, so the corners must "
            "cancel. (All logits are 0 when the last layer starts from zeros.)",
            **shown,
        )
    raise Failed("The loss is right, but its gradient is not.", **shown)


def _bce_naive(logits, labels):
    p = 1 / (1 + jnp.exp(-logits))
    return -labels * jnp.log(p) - (1 - labels) * jnp.log(1 - p)


def _bce_clipped(logits, labels):
    p = jnp.clip(jax.nn.sigmoid(logits), 1e-7, 1 - 1e-7)
    return -labels * jnp.log(p) - (1 - labels) * jnp.log(1 - p)


def _bce_small_number(logits, labels):
    p = jax.nn.sigmoid(logits)
    return -labels * jnp.log(p + 1e-12) - (1 - labels) * jnp.log(1 - p + 1e-12)


def _bce_nan_to_num(logits, labels):
    return jnp.nan_to_num(_bce_naive(logits, labels))


def _bce_largest_of_all(logits, labels):
    m = jnp.maximum(jnp.max(logits), 0)
    return m + jnp.log(jnp.exp(-m) + jnp.exp(logits - m)) - logits * labels


def _bce_axis_1(logits, labels):
    both = jnp.stack([jnp.zeros_like(logits), logits], axis=1)
    return jax.nn.logsumexp(both, axis=1) - logits * labels


def _bce_probability(logits, labels):
    return jax.nn.sigmoid(logits)


def _bce_ready_made(logits, labels):
    import optax

    return optax.losses.sigmoid_binary_cross_entropy(logits, labels)


def _bce_half_way(logits, labels):
    return jnp.log1p(jnp.exp(logits)) - logits * labels


def _bce_where(logits, labels):
    softplus = jnp.where(logits > 0, logits + jnp.log1p(jnp.exp(-logits)), jnp.log1p(jnp.exp(logits)))
    return softplus - logits * labels


def _bce_abs(logits, labels):
    return jnp.maximum(logits, 0) - logits * labels + jnp.log1p(jnp.exp(-jnp.abs(logits)))


def _bce_relu(logits, labels):
    return (
        jax.nn.relu(logits)
        - logits * labels
        + jnp.log1p(jnp.exp(-jax.nn.relu(logits) - jax.nn.relu(-logits)))
    )


def _bce_mean(logits, labels):
    return jnp.mean(_binary_cross_entropy(logits, labels))


def _bce_swapped(logits, labels):
    return _binary_cross_entropy(logits, 1 - labels)


def _bce_if(logits, labels):
    if logits > 0:
        return logits + jnp.log1p(jnp.exp(-logits)) - logits * labels
    return jnp.log1p(jnp.exp(logits)) - logits * labels


binary_cross_entropy = Exercise(
    title="A cross-entropy that survives",
    stars=2,
    minutes=15,
    why=(
        "A confident mistake now costs what it should and pulls as hard as it should, and no batch can turn the "
        "weights into NaN."
    ),
    hints=(
        "Put p = 1/(1 + e^-z) into the formula, on paper. Both labels together give log(1 + e^z) - z y.",
        "log(1 + e^z) overflows for large z. It is log(e^0 + e^z), a sum over two exponents: as in the chapter, take the "
        "larger of them, m, out of the logarithm.",
        "`m = jnp.maximum(z, 0)` is the larger one, and `m + jnp.log(jnp.exp(-m) + jnp.exp(z - m))` is the logarithm. (Well-known "
        "forms with `abs` have the right value, but JAX takes 1 for the slope of `abs` at 0.)",
    ),
    solution=_binary_cross_entropy,
    check=_check_binary_cross_entropy,
    mistakes=(
        Mistake(_bce_naive, says="for large ones it is not finite"),
        Mistake(_bce_clipped, says="stops growing"),
        Mistake(_bce_small_number, says="stops growing"),
        Mistake(_bce_nan_to_num, says="hides it and does not mend it"),
        Mistake(_bce_largest_of_all, says="Each example needs its own"),
        Mistake(_bce_axis_1, says="axis 1 is out of bounds"),
        Mistake(_bce_probability, says="This is the probability"),
        Mistake(_bce_ready_made, says="Optax's loss"),
        Mistake(_bce_half_way, says="for large ones it is not finite"),
        Mistake(_bce_where, says="0 times infinity is NaN"),
        Mistake(_bce_abs, says="at the logit 0"),
        Mistake(_bce_relu, says="at the logit 0"),
        Mistake(_bce_mean, says="mean over the batch"),
        Mistake(_bce_swapped, says="opposite label"),
        Mistake(_bce_if, says="truth value of an array"),
    ),
)


# init_mlp


def _init_mlp(key, sizes):
    params = []
    keys = jax.random.split(key, len(sizes) - 1)
    for layer_key, n_in, n_out in zip(keys, sizes[:-1], sizes[1:]):
        kernel = jax.random.normal(layer_key, (n_in, n_out)) * jnp.sqrt(2 / n_in)
        params.append({"kernel": kernel, "bias": jnp.zeros(n_out)})
    return params


def _check_init_mlp(init_mlp):
    sizes, large = (4, 3, 3, 3), (300, 100, 60)  # few shapes: each compiles its random numbers anew
    for one in (sizes, large):
        _structure_of_params(init_mlp(jax.random.key(0), one), one)
    theirs = reader.original(init_mlp)
    names = list(inspect.signature(theirs).parameters)
    bound = (
        functools.partial(theirs, **{names[1]: sizes}) if len(names) == 2 else lambda key: theirs(key, sizes)
    )
    of_key = reader.guard(bound, "init_mlp")
    checks.pure(of_key, jax.random.key(0))
    checks.keys(of_key, jax.random.key(0))
    _, first, second = init_mlp(jax.random.key(1), sizes)
    if jnp.array_equal(first["kernel"], second["kernel"]):
        raise Failed(
            "Two layers of the same size get the same kernel: each layer must draw from a key of its own.",
            input={"sizes": sizes},
            shown=[("both kernels", str(first["kernel"]))],
        )
    _spread_of_kernels(init_mlp(jax.random.key(2), large), large)


def _structure_of_params(params, sizes):
    shown = {"input": {"sizes": sizes}}
    if params is None:
        raise Failed("Your function returned None: is a `return` missing?", **shown)
    if isinstance(params, tuple) and params and all(isinstance(layer, dict) for layer in params):
        raise Failed(
            "You return a tuple of dicts, and a list is asked for. To JAX they are different trees: `jax.tree.map` over "
            "one of each refuses.",
            **shown,
        )
    if not isinstance(params, list) or not all(isinstance(layer, dict) for layer in params):
        raise Failed(
            'A list is asked for, with a dict for each layer: `[{"kernel": …, "bias": …}, …]`.',
            got=jax.tree.structure(params) if not isinstance(params, jax.Array) else params,
            **shown,
        )
    if len(params) != len(sizes) - 1:
        raise Failed(
            f"Between {len(sizes)} sizes there are {len(sizes) - 1} layers, but you return {len(params)}.",
            **shown,
        )
    for index, (layer, n_in, n_out) in enumerate(zip(params, sizes[:-1], sizes[1:])):
        if set(layer) != {"kernel", "bias"}:
            raise Failed(
                f"Layer {index} should have the entries 'bias' and 'kernel', but it has {sorted(map(str, layer))}.",
                **shown,
            )
        _shape_of_kernel(index, layer, n_in, n_out, shown)
        if jnp.any(layer["bias"] != 0):
            raise Failed(f"The bias of layer {index} should be all 0.", got=layer["bias"], **shown)


def _shape_of_kernel(index, layer, n_in, n_out, shown):
    for name, shape in [("kernel", (n_in, n_out)), ("bias", (n_out,))]:
        got = layer[name]
        if not isinstance(got, jax.Array):
            raise Failed(
                f"The {name} of layer {index} should be a jax.Array, but it is a {type(got).__name__}.",
                **shown,
            )
        if got.shape == shape and got.dtype == jnp.float32:
            continue
        if name == "kernel" and got.shape == (n_out, n_in) != shape:
            raise Failed(
                f"The kernel of layer {index} lies on its side: it should be (inputs, outputs) = {shape}, so that "
                f"`x @ kernel` works, and it is {got.shape}.",
                **shown,
            )
        raise Failed(
            f"The {name} of layer {index} should have shape {shape} and dtype float32, but it has {got.shape} and "
            f"{got.dtype}.",
            **shown,
        )


def _spread_of_kernels(params, sizes):
    for index, (layer, n_in, n_out) in enumerate(zip(params, sizes[:-1], sizes[1:])):
        kernel, wanted = layer["kernel"], math.sqrt(2 / n_in)
        mean, spread = float(kernel.mean()), float(kernel.std())
        if abs(spread / wanted - 1) > 0.07:
            found = [
                (1, "The standard normal numbers are not scaled at all."),
                (
                    wanted**2,
                    "You multiplied by 2/n, which is the variance: the standard deviation is its root.",
                ),
                (1 / wanted, "You divided by the root of 2/n instead of multiplying by it."),
                (math.sqrt(1 / n_in), "This is the root of 1/n, as in the chapter; He's rule asks for 2/n."),
                (math.sqrt(2 / n_out), "n is the layer's number of inputs; you took that of its outputs."),
                (math.sqrt(2) / n_in, "The root is taken of the 2 only, not of the n."),
                (
                    math.sqrt(2 / sizes[0]),
                    "n is the number of inputs of *this* layer; you took that of the first one.",
                ),
                (
                    math.sqrt(2 / (n_in + n_out)),
                    "This is Glorot's rule, with inputs plus outputs; He's has the inputs only.",
                ),
            ]
            said = [text for value, text in found if abs(spread / value - 1) < 0.04]
            lead = f"{said[0]} " if len(said) == 1 else ""
            raise Failed(
                f"{lead}The standard deviation of the kernel of layer {index} is wrong.",
                input={"sizes": sizes},
                shown=[("expected", f"about {wanted:.4f}"), ("got", f"{spread:.4f}")],
            )
        if abs(mean) > 0.1 * wanted:
            raise Failed(
                f"The mean of the kernel of layer {index} should be about 0, but it is {mean:.4f}.",
                input={"sizes": sizes},
            )
        if float(abs(kernel).max()) < 2 * wanted:
            raise Failed(
                f"The kernel of layer {index} has the right spread, but it is not normally distributed: no entry is further "
                "than two standard deviations from 0.",
                input={"sizes": sizes},
            )


def _init_one_key(key, sizes):
    return [
        {"kernel": jax.random.normal(key, (m, n)) * jnp.sqrt(2 / m), "bias": jnp.zeros(n)}
        for m, n in zip(sizes[:-1], sizes[1:])
    ]


def _init_fixed_seed(key, sizes):
    return _init_mlp(jax.random.key(0), sizes)


def _init_numpy(key, sizes):
    return [
        {
            "kernel": jnp.asarray(np.random.normal(size=(m, n)), jnp.float32) * jnp.sqrt(2 / m),  # noqa: NPY002
            "bias": jnp.zeros(n),
        }
        for m, n in zip(sizes[:-1], sizes[1:])
    ]


def _init_key_used_and_split(key, sizes):
    params = []
    for m, n in zip(sizes[:-1], sizes[1:]):
        kernel = jax.random.normal(key, (m, n)) * jnp.sqrt(2 / m)
        key, _ = jax.random.split(key)
        params.append({"kernel": kernel, "bias": jnp.zeros(n)})
    return params


def _init_variance(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"kernel": jax.random.normal(k, (m, n)) * 2 / m, "bias": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes[:-1], sizes[1:])
    ]


def _init_sideways(key, sizes):
    return [{"kernel": layer["kernel"].T, "bias": layer["bias"]} for layer in _init_mlp(key, sizes)]


def _init_lecun(key, sizes):
    return [
        {"kernel": layer["kernel"] / jnp.sqrt(2.0), "bias": layer["bias"]} for layer in _init_mlp(key, sizes)
    ]


def _init_zip_too_far(key, sizes):
    return _init_mlp(key, (*sizes, 1))


def _init_tuple(key, sizes):
    return tuple(_init_mlp(key, sizes))


def _init_first_n(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"kernel": jax.random.normal(k, (m, n)) * jnp.sqrt(2 / sizes[0]), "bias": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes[:-1], sizes[1:])
    ]


def _init_uniform(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"kernel": jax.random.uniform(k, (m, n), minval=-1, maxval=1) * jnp.sqrt(6 / m), "bias": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes[:-1], sizes[1:])
    ]


def _init_pairs(key, sizes):
    return [(layer["kernel"], layer["bias"]) for layer in _init_mlp(key, sizes)]


init_mlp = Exercise(
    title="Weights for any number of layers",
    stars=2,
    minutes=10,
    why=(
        "Your `init` is pure: the same key gives the same network on every machine, and every layer has random numbers "
        "of its own."
    ),
    hints=(
        "There is one layer between two neighbouring sizes: `zip(sizes[:-1], sizes[1:])` gives their pairs.",
        "`jax.random.split(key, n)` gives n keys at once: one for each layer, and `key` itself is not used again.",
        "`jax.random.normal(layer_key, (n_in, n_out)) * jnp.sqrt(2 / n_in)` is one kernel.",
    ),
    solution=_init_mlp,
    check=_check_init_mlp,
    mistakes=(
        Mistake(_init_one_key, says="used twice"),
        Mistake(_init_fixed_seed, says="does not depend on the key"),
        Mistake(_init_numpy, says="another result when it is called again"),
        Mistake(_init_key_used_and_split, says="used twice"),
        Mistake(_init_variance, says="which is the variance"),
        Mistake(_init_sideways, says="lies on its side"),
        Mistake(_init_lecun, says="He's rule asks for 2/n"),
        Mistake(_init_zip_too_far, says="3 layers, but you return 4"),
        Mistake(_init_tuple, says="different trees"),
        Mistake(_init_first_n, says="inputs of *this* layer"),
        Mistake(_init_uniform, says="not normally distributed"),
        Mistake(_init_pairs, says="with a dict for each layer"),
    ),
)


# make_step


def _make_step(loss_fn):
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
    params = {"w": jnp.array([1.0, -2.0, 0.5]), "b": jnp.array(0.25)}
    velocity = {"w": jnp.array([0.5, 1.0, -1.0]), "b": jnp.array(-0.5)}
    return params, velocity


def _line_batch(index):
    x = jnp.arange(12.0).reshape(4, 3) / 4 - index
    return x, jnp.array([1.0, -1.0, 0.5, 2.0])


@functools.cache
def _reference_step():
    return _make_step(_line_loss)


def _check_make_step(make_step):
    if hasattr(reader.original(make_step), "lower"):
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
    step = reader.guard(step, "step")
    _right_step(step)
    _second_step(step)
    _one_trace(step, traced)
    _one_program(step)


def _right_step(step):
    params, velocity, batch, rate = *_start(), _line_batch(0), 0.1
    result = step(params, velocity, batch, rate)
    if not isinstance(result, (tuple, list)) or len(result) != 3:
        raise Failed("`step` should return three things: params, velocity, loss.", got=result)
    if not isinstance(result[0], dict) and isinstance(result[2], dict):
        raise Failed("`step` should return params, velocity, loss, in this order.", got=result)
    gradients = jax.grad(_line_loss)(_start()[0], batch)
    expected = _reference_step()(*_start(), batch, rate)
    start, before = _start()

    def move(direction):
        return jax.tree.map(lambda p, d: p - rate * d, start, direction)

    def tree(f, *trees):
        return jax.tree.map(f, *trees)

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
            (tree(lambda p, v: p + rate * v, start, expected[1]), expected[1]),
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
            (move(tree(lambda v, g: 0.9 * v + g, expected[1], gradients)), expected[1]),
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
    if _alike(result[2], gradients):
        raise Failed("The third thing should be the loss, a number; you return the gradients.")
    loss_after = _line_loss(expected[0], batch)
    if (
        isinstance(result[2], jax.Array)
        and result[2].shape == ()
        and jnp.allclose(result[2], loss_after, rtol=1e-5)
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
        momentum = float((result[1]["b"] - gradients["b"]) / before["b"])
        velocity = jax.tree.map(lambda v, g: momentum * v + g, before, gradients)
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
    if not _alike(result[:2], expected[:2]) and _alike(
        result[0], _reference_step()(*halfway, _line_batch(1), 0.1)[0]
    ):
        raise Failed(
            "Your step moves by the same learning rate whatever it is given: the first call, with 0.1, is right, the "
            "second one, with 0.25, moves as if it had been 0.1."
        )
    where = "after a second step, with another batch and learning rate"
    try:
        checks.same(tuple(result), expected, where=where, rtol=1e-4, atol=1e-5)
    except Failed as failure:
        failure.message = (
            "The first call is right, the second is not: does your step keep something of the first, outside of its "
            f"arguments?\n{failure.message}"
        )
        raise


def _compare_step(result, expected, recognise):
    try:
        checks.same(result[0], expected[0], where="for the weights", rtol=1e-4, atol=1e-5)
        checks.same(result[1], expected[1], where="for the velocity", rtol=1e-4, atol=1e-5)
    except Failed as failure:
        for (params, velocity), text in recognise:
            if _alike(result[0], params) and (velocity is None or _alike(result[1], velocity)):
                failure.message = f"{text}\n{failure.message}"
                break
        raise


def _alike(one, two):
    try:
        checks.same(one, two, rtol=1e-4, atol=1e-5)
    except Failed:
        return False
    return True


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


def _step_not_jitted(loss_fn):
    def step(params, velocity, batch, learning_rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients)
        return jax.tree.map(lambda p, v: p - learning_rate * v, params, velocity), velocity, loss

    return step


def _step_static_rate(loss_fn):
    return jax.jit(
        _step_not_jitted(loss_fn), static_argnames="learning_rate", donate_argnames=("params", "velocity")
    )


def _step_not_donated(loss_fn):
    return jax.jit(_step_not_jitted(loss_fn))


def _step_donates_half(loss_fn):
    return jax.jit(_step_not_jitted(loss_fn), donate_argnums=0)


def _step_donates_all(loss_fn):
    return jax.jit(_step_not_jitted(loss_fn), donate_argnums=(0, 1, 2))


def _step_rate_inside(loss_fn):
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, velocity, batch, learning_rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        velocity = jax.tree.map(lambda v, g: 0.9 * v - learning_rate * g, velocity, gradients)
        return jax.tree.map(lambda p, v: p + v, params, velocity), velocity, loss

    return step


def _step_without_momentum(loss_fn):
    @jax.jit
    def step(params, velocity, batch, learning_rate):
        loss, velocity = jax.value_and_grad(loss_fn)(params, batch)
        return jax.tree.map(lambda p, v: p - learning_rate * v, params, velocity), velocity, loss

    return step


def _step_old_velocity(loss_fn):
    @jax.jit
    def step(params, velocity, batch, learning_rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        new = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients)
        return jax.tree.map(lambda p, v: p - learning_rate * v, params, new), velocity, loss

    return step


def _step_uphill(loss_fn):
    @jax.jit
    def step(params, velocity, batch, learning_rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients)
        return jax.tree.map(lambda p, v: p + learning_rate * v, params, velocity), velocity, loss

    return step


def _step_jitted_inside(loss_fn):
    def step(params, velocity, batch, learning_rate):
        run = jax.jit(_step_not_jitted(loss_fn), donate_argnums=(0, 1))
        return run(params, velocity, batch, learning_rate)

    return step


def _step_jitted_gradient(loss_fn):
    value_and_grad = jax.jit(jax.value_and_grad(loss_fn))

    def step(params, velocity, batch, learning_rate):
        loss, gradients = value_and_grad(params, batch)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients)
        return jax.tree.map(lambda p, v: p - learning_rate * v, params, velocity), velocity, loss

    return step


_step_jitted_outside = jax.jit(_step_not_jitted)


def _step_fixed_rate(loss_fn):
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, velocity, batch, learning_rate):
        return _step_not_jitted(loss_fn)(params, velocity, batch, 0.1)

    return step


def _step_own_velocity(loss_fn):
    kept = {}

    def step(params, velocity, batch, learning_rate):
        results = _step_not_jitted(loss_fn)(
            params, kept.setdefault("velocity", velocity), batch, learning_rate
        )
        return results

    return step


def _step_downhill_velocity(loss_fn):
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, velocity, batch, learning_rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        velocity = jax.tree.map(lambda v, g: 0.9 * v - g, velocity, gradients)
        return jax.tree.map(lambda p, v: p + learning_rate * v, params, velocity), velocity, loss

    return step


def _step_other_momentum(loss_fn):
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, velocity, batch, learning_rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        velocity = jax.tree.map(lambda v, g: 0.99 * v + g, velocity, gradients)
        return jax.tree.map(lambda p, v: p - learning_rate * v, params, velocity), velocity, loss

    return step


def _step_loss_first(loss_fn):
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, velocity, batch, learning_rate):
        params, velocity, loss = _step_not_jitted(loss_fn)(params, velocity, batch, learning_rate)
        return loss, params, velocity

    return step


def _step_loss_after(loss_fn):
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, velocity, batch, learning_rate):
        params, velocity, _ = _step_not_jitted(loss_fn)(params, velocity, batch, learning_rate)
        return params, velocity, loss_fn(params, batch)

    return step


def _step_gradients_third(loss_fn):
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, velocity, batch, learning_rate):
        gradients = jax.grad(loss_fn)(params, batch)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients)
        return jax.tree.map(lambda p, v: p - learning_rate * v, params, velocity), velocity, gradients

    return step


def _step_whole_tree(loss_fn):
    @jax.jit
    def step(params, velocity, batch, learning_rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        velocity = 0.9 * velocity + gradients
        return params - learning_rate * velocity, velocity, loss

    return step


make_step = Exercise(
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
    solution=_make_step,
    check=_check_make_step,
    mistakes=(
        Mistake(_step_not_jitted, says="Python runs your loss again at each call"),
        Mistake(_step_static_rate, says="is traced again"),
        Mistake(_step_not_donated, says="still there after the step"),
        Mistake(_step_donates_half, says="the old velocity is not"),
        Mistake(_step_donates_all, says="The batch is donated"),
        Mistake(_step_rate_inside, says="inside your velocity"),
        Mistake(_step_without_momentum, says="plain gradient descent"),
        Mistake(_step_old_velocity, says="you return the old velocity"),
        Mistake(_step_uphill, says="up the slope"),
        Mistake(_step_whole_tree, says="Your code raised TypeError"),
        Mistake(_step_jitted_inside, says="Python runs your loss again at each call"),
        Mistake(_step_jitted_gradient, says="not all of it"),
        Mistake(_step_jitted_outside, says="You jitted `make_step`"),
        Mistake(_step_own_velocity, says="does your step keep something"),
        Mistake(_step_fixed_rate, says="moves by the same learning rate"),
        Mistake(_step_downhill_velocity, says="points down the slope"),
        Mistake(_step_other_momentum, says="Your momentum is 0.99"),
        Mistake(_step_loss_first, says="in this order"),
        Mistake(_step_loss_after, says="that of the new weights"),
        Mistake(_step_gradients_third, says="you return the gradients"),
    ),
)


# class_accuracy


def _class_accuracy(logits, labels):
    hits = jnp.argmax(logits, axis=-1) == labels  # (batch,)
    is_class = jax.nn.one_hot(labels, logits.shape[-1])  # (batch, classes)
    count = is_class.sum(axis=0)
    return jnp.where(hits[:, None], is_class, 0).sum(axis=0) / jnp.maximum(count, 1)


def _check_class_accuracy(function):
    def draw_both(draw):
        logits = draw(inputs.arrays("n", 4, sizes=(1, 4)))
        no_ties = np.array([0.03, 0.02, 0.01, 0.0], np.float32)  # who has the largest logit is beyond dispute
        return logits + no_ties, draw(inputs.arrays(len(logits), low=0, high=3, dtype="int32"))

    # Class 0: one of three. Class 1: one of one, and guessed once more. Class 2: two of three. Class 3: never.
    guesses = jnp.array([0, 1, 2, 1, 2, 2, 0])
    telling = (4.0 * jax.nn.one_hot(guesses, 4), jnp.array([0, 0, 0, 1, 2, 2, 2]))

    def counted(logits, labels):
        said = jax.nn.one_hot(jnp.argmax(logits, -1), logits.shape[-1])
        true = jax.nn.one_hot(labels, logits.shape[-1])
        return (said * true).sum(0), said.sum(0), true.sum(0)

    recognise = [
        (
            lambda z, y: (lambda hit, said, true: hit / jnp.maximum(said, 1))(*counted(z, y)),
            "You divide by how often the network *said* the class; the share of the pictures that *are* of the class is "
            "asked for.",
        ),
        (
            lambda z, y: counted(z, y)[0] / len(y),
            "You divide by the size of the whole batch, not by the number of pictures of each class.",
        ),
        (
            lambda z, y: counted(z, y)[0],
            "These are numbers of hits: divide by the number of pictures of each class.",
        ),
        (
            lambda z, y: jnp.mean(jnp.argmax(z, -1) == y),
            "This is one number for all classes together; one for each class is asked for.",
        ),
        (
            lambda z, y: (lambda hit, said, true: (true - hit) / jnp.maximum(true, 1))(*counted(z, y)),
            "This is the share that was *not* recognised.",
        ),
        (
            _class_accuracy_two_guesses,
            "A picture counts here as recognised if its class has one of the two largest logits; only the largest one is "
            "the network's guess.",
        ),
        (
            lambda z, y: (lambda hit, said, true: 1 - (said + true - 2 * hit) / len(y))(*counted(z, y)),
            "Pictures of other classes count here, too, where the network did not take them for this class. Only the "
            "pictures of the class are asked about.",
        ),
    ]
    got = function(*telling)
    if getattr(got, "shape", None) == (4,) and jnp.isnan(got[3]):
        raise Failed(
            "A class that does not occur in the batch gets NaN, which is 0 divided by 0; it should get 0.",
            input={"logits": telling[0], "labels": telling[1]},
            expected=_class_accuracy(*telling),
            got=got,
        )
    checks.values(
        function,
        _class_accuracy,
        inputs.together(draw_both),
        examples=[telling],
        recognise=recognise,
        count=12,
    )
    checks.works_under_jit(function, *telling)
    _no_loop_over_batch(function, lambda n: (jnp.zeros((n, 4)), jnp.zeros(n, jnp.int32)))


def _no_loop_over_batch(function, arguments):
    """With eight more examples the program has not eight more equations, and no loop has eight more rounds."""
    few, many = (jax.make_jaxpr(function)(*arguments(n)) for n in (4, 12))
    sizes = [sum(1 for _ in jaxprs.walk(program)) for program in (few, many)]
    if sizes[1] - sizes[0] >= 8:
        raise Failed(
            "There is a loop over the examples: the program grows with the batch. Work on the whole batch at once.",
            shown=[("equations", f"{sizes[0]} for 4 examples, {sizes[1]} for 12")],
        )
    rounds = [
        sum(e.params["length"] for _, e in jaxprs.walk(program) if e.primitive.name == "scan")
        for program in (few, many)
    ]
    if rounds[1] - rounds[0] >= 8 or any(e.primitive.name == "while" for _, e in jaxprs.walk(many)):
        raise Failed(
            "There is a loop over the examples in your jaxpr: one follows the other, instead of all at once. "
            "Work on the whole batch."
        )


def _class_accuracy_mask(logits, labels):
    hits = jnp.argmax(logits, axis=-1) == labels
    classes = range(logits.shape[-1])
    return jnp.nan_to_num(jnp.array([hits[labels == c].mean() for c in classes]))


def _class_accuracy_nan(logits, labels):
    hits = jnp.argmax(logits, axis=-1) == labels
    is_class = labels[:, None] == jnp.arange(logits.shape[-1])
    return (hits[:, None] & is_class).sum(0) / is_class.sum(0)


def _class_accuracy_precision(logits, labels):
    guesses = jax.nn.one_hot(jnp.argmax(logits, -1), logits.shape[-1])
    true = jax.nn.one_hot(labels, logits.shape[-1])
    return (guesses * true).sum(0) / jnp.maximum(guesses.sum(0), 1)


def _class_accuracy_share(logits, labels):
    hits = jnp.argmax(logits, axis=-1) == labels
    return (hits[:, None] * jax.nn.one_hot(labels, logits.shape[-1])).mean(axis=0)


def _class_accuracy_overall(logits, labels):
    return jnp.mean(jnp.argmax(logits, axis=-1) == labels)


def _class_accuracy_loop(logits, labels):
    hits, counts = jnp.zeros(logits.shape[-1]), jnp.zeros(logits.shape[-1])
    for i in range(len(labels)):
        counts = counts.at[labels[i]].add(1)
        hits = hits.at[labels[i]].add(jnp.argmax(logits[i]) == labels[i])
    return hits / jnp.maximum(counts, 1)


def _class_accuracy_scan(logits, labels):
    def one(counts, example):
        logits, label = example
        hit = jnp.argmax(logits) == label
        return counts.at[:, label].add(jnp.array([hit, 1])), None

    (hits, counts), _ = jax.lax.scan(one, jnp.zeros((2, logits.shape[-1])), (logits, labels))
    return hits / jnp.maximum(counts, 1)


def _class_accuracy_missed(logits, labels):
    is_class = jax.nn.one_hot(labels, logits.shape[-1])
    misses = jnp.argmax(logits, axis=-1) != labels
    return (misses[:, None] * is_class).sum(0) / jnp.maximum(is_class.sum(0), 1)


def _class_accuracy_one_against_rest(logits, labels):
    guesses = jnp.argmax(logits, axis=-1)
    return jnp.stack([jnp.mean((guesses == c) == (labels == c)) for c in range(logits.shape[-1])])


def _class_accuracy_two_guesses(logits, labels):
    hits = (jnp.argsort(logits, axis=-1)[:, -2:] == labels[:, None]).any(axis=-1)
    is_class = jax.nn.one_hot(labels, logits.shape[-1])
    return hits @ is_class / jnp.maximum(is_class.sum(0), 1)


def _class_accuracy_if(logits, labels):
    hits, shares = jnp.argmax(logits, axis=-1) == labels, []
    for c in range(logits.shape[-1]):
        count = jnp.sum(labels == c)
        shares.append(jnp.sum(hits & (labels == c)) / count if count > 0 else 0.0)
    return jnp.array(shares)


class_accuracy = Exercise(
    title="How well is each class recognised?",
    stars=2,
    minutes=10,
    why="Shapes that do not depend on values: that is what lets one compiled program serve every batch.",
    hints=(
        "Two counts are needed, each of shape (classes,): how many pictures of each class there are, and how many of them "
        "were hit.",
        "`labels[:, None] == jnp.arange(classes)` is a table (batch, classes) that says which picture is of which class. Its "
        "shape does not depend on values.",
        "Multiply the table by the hits, `hits[:, None]`, and sum both over the batch. Divide by "
        "`jnp.maximum(count, 1)`: where nothing was counted, 0 / 1 is 0.",
    ),
    solution=_class_accuracy,
    check=_check_class_accuracy,
    mistakes=(
        Mistake(_class_accuracy_mask, says="a mask as an index"),
        Mistake(_class_accuracy_nan, says="0 divided by 0"),
        Mistake(_class_accuracy_precision, says="how often the network *said*"),
        Mistake(_class_accuracy_share, says="size of the whole batch"),
        Mistake(_class_accuracy_overall, says="one number for all classes"),
        Mistake(_class_accuracy_loop, says="the program grows with the batch"),
        Mistake(_class_accuracy_scan, says="one follows the other"),
        Mistake(_class_accuracy_missed, says="*not* recognised"),
        Mistake(_class_accuracy_one_against_rest, says="Pictures of other classes"),
        Mistake(_class_accuracy_two_guesses, says="two largest logits"),
        Mistake(_class_accuracy_if, says="TracerBoolConversionError"),
    ),
)


# gradient_norms


def _gradient_norms(loss_fn, params, batch):
    gradients = jax.vmap(jax.grad(loss_fn), in_axes=(None, 0))(params, batch)

    def squares(leaf):  # (batch, ...) -> (batch,)
        return jnp.sum(leaf.reshape(len(leaf), -1) ** 2, axis=1)

    return jnp.sqrt(sum(squares(leaf) for leaf in jax.tree.leaves(gradients)))


def _example_loss(params, example):
    x, y = example  # (3,), ()
    hidden = jnp.tanh(x @ params[0]["kernel"] + params[0]["bias"])
    return (hidden @ params[1]["kernel"] - y) ** 2


def _example_params():
    kernel = jnp.array([[1.0, -0.5], [0.25, 1.0], [-1.0, 0.5]])
    return [{"kernel": kernel, "bias": jnp.array([0.5, -0.25])}, {"kernel": jnp.array([1.0, -1.5])}]


def _wrong_norms(leaves):
    """What wrong formulas give for gradients (leaves of shape (batch, numbers)), and what is wrong with them."""
    squares = sum((leaf**2).sum(1) for leaf in leaves)
    yield squares, "These are the squares of the lengths: the root is missing."
    yield (
        sum(np.sqrt((leaf**2).sum(1)) for leaf in leaves),
        "You add the lengths of the parts. Lengths do not add up: add the squares, and take one root at the end.",
    )
    yield (
        sum(np.abs(leaf).sum(1) for leaf in leaves),
        "These are sums of absolute values: take squares and a root.",
    )
    yield (
        np.sqrt(sum((leaf**2).mean(1) for leaf in leaves)),
        "You average the squares of each part; the length wants their sum.",
    )
    for leaf in leaves:
        yield (
            np.sqrt((leaf**2).sum(1)),
            "Only one part of the tree of gradients is counted; the length goes over all.",
        )
    yield (
        np.sqrt(sum((leaf.mean(0) ** 2).sum() for leaf in leaves)),
        "This is the length of the *average* gradient, one number; one for each example is asked for.",
    )
    yield (
        np.sqrt(sum((leaf.sum(0) ** 2).sum() for leaf in leaves)),
        "This is the length of the *summed* gradient, one number; one for each example is asked for.",
    )
    yield np.sqrt(squares.sum()), "This is one number for the whole batch; one for each example is asked for."
    yield (
        np.sqrt(squares) / len(squares),
        "You divide by the number of examples, as a mean would; the length of each example's own gradient is asked for.",
    )


def _check_gradient_norms(function):
    params = _example_params()

    def batch(n):
        x = jnp.sin(jnp.arange(3.0 * n)).reshape(n, 3)
        return x, jnp.cos(jnp.arange(1.0 * n)) * 2

    gradients = jax.jit(jax.vmap(jax.grad(_example_loss), (None, 0)))(params, batch(4))
    leaves = [np.asarray(leaf).reshape(4, -1) for leaf in jax.tree.leaves(gradients)]
    expected = jnp.asarray(np.sqrt(sum((leaf**2).sum(1) for leaf in leaves)))
    got = function(_example_loss, params, batch(4))
    by_example = jax.vmap(jax.grad(_example_loss, argnums=1), (None, 0))(params, batch(4))
    by_example = [np.asarray(leaf).reshape(4, -1) for leaf in by_example]
    other = [
        (
            jax.vmap(_example_loss, (None, 0))(params, batch(4)),
            "These are the losses, not lengths of gradients.",
        ),
        (
            np.sqrt(sum((leaf**2).sum(1) for leaf in by_example)),
            "This is the gradient by the example; the one by the weights is asked for.",
        ),
    ]
    try:
        checks.same(got, expected, rtol=1e-4)
    except Failed as failure:
        for wrong, text in [*_wrong_norms(leaves), *other]:
            if _alike(got, jnp.asarray(wrong)):
                failure.message = f"{text}\n{failure.message}"
                break
        raise
    checks.same(
        function(_example_loss, params, batch(1)), expected[:1], where="for a batch of one", rtol=1e-4
    )
    _other_trees(function)
    inner = reader.guard(functools.partial(reader.original(function), _example_loss), "gradient_norms")
    checks.works_under_jit(inner, params, batch(4))
    _no_loop_over_batch(inner, lambda n: (params, batch(n)))


def _other_trees(function):
    """A batch that is no pair, and weights that are no list of layers."""

    def loss(params, example):
        return (example["x"] * params["slope"] + params["offset"] - example["wanted"]["y"]) ** 2

    params = {"slope": jnp.array(2.0), "offset": jnp.array(-1.0)}
    batch = {"x": jnp.array([0.0, 1.0, 2.0]), "wanted": {"y": jnp.array([1.0, -1.0, 0.5])}}
    expected = _gradient_norms(loss, params, batch)
    try:
        checks.same(function(loss, params, batch), expected, where="for a batch that is a dict", rtol=1e-4)
    except reader.Raised as raised:
        raised.message = f"For weights and a batch that are dicts: {raised.message}"
        raise


def _norms_of_average(loss_fn, params, batch):
    def mean_loss(params):
        return jnp.mean(jax.vmap(loss_fn, (None, 0))(params, batch))

    leaves = jax.tree.leaves(jax.grad(mean_loss)(params))
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in leaves))


def _norms_added(loss_fn, params, batch):
    gradients = jax.vmap(jax.grad(loss_fn), in_axes=(None, 0))(params, batch)
    return sum(jnp.linalg.norm(leaf.reshape(len(leaf), -1), axis=1) for leaf in jax.tree.leaves(gradients))


def _norms_squared(loss_fn, params, batch):
    return _gradient_norms(loss_fn, params, batch) ** 2


def _norms_loop(loss_fn, params, batch):
    norms = []
    for i in range(len(jax.tree.leaves(batch)[0])):
        gradient = jax.grad(loss_fn)(params, jax.tree.map(lambda array, i=i: array[i], batch))
        norms.append(jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradient))))
    return jnp.stack(norms)


def _norms_one_leaf(loss_fn, params, batch):
    gradients = jax.vmap(jax.grad(loss_fn), in_axes=(None, 0))(params, batch)
    kernel = gradients[0]["kernel"]
    return jnp.linalg.norm(kernel.reshape(len(kernel), -1), axis=1)


def _norms_both_mapped(loss_fn, params, batch):
    gradients = jax.vmap(jax.grad(loss_fn))(params, batch)
    return jnp.sqrt(sum(jnp.sum(leaf**2, axis=-1) for leaf in jax.tree.leaves(gradients)))


def _norms_of_pairs(loss_fn, params, batch):
    x, y = batch
    gradients = jax.vmap(lambda x, y: jax.grad(loss_fn)(params, (x, y)))(x, y)
    return jnp.sqrt(sum(jnp.sum(leaf.reshape(len(leaf), -1) ** 2, 1) for leaf in jax.tree.leaves(gradients)))


def _norms_by_example(loss_fn, params, batch):
    gradients = jax.vmap(jax.grad(loss_fn, argnums=1), in_axes=(None, 0))(params, batch)
    return jnp.sqrt(sum(jnp.sum(leaf.reshape(len(leaf), -1) ** 2, 1) for leaf in jax.tree.leaves(gradients)))


def _norms_one_by_one(loss_fn, params, batch):
    def one(example):
        leaves = jax.tree.leaves(jax.grad(loss_fn)(params, example))
        return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in leaves))

    return jax.lax.map(one, batch)


def _norms_losses(loss_fn, params, batch):
    return jax.vmap(loss_fn, in_axes=(None, 0))(params, batch)


gradient_norms = Exercise(
    title="Which picture pulls hardest?",
    stars=2,
    minutes=15,
    why=(
        "One program computes all gradients at once. Clipping each example's gradient, private training and the search for "
        "wrong labels all begin like this."
    ),
    hints=(
        "`jax.grad(loss_fn)` gives the gradient of one example. Which transformation gives all, and which of its two arguments "
        "is the same for every example?",
        "`jax.vmap(jax.grad(loss_fn), in_axes=(None, 0))(params, batch)` is a tree like `params`, each leaf with a leading "
        "batch axis. `jax.tree.leaves` makes a list of it.",
        "For each leaf, sum the squares over all axes but the first: `leaf.reshape(len(leaf), -1)` helps. Add up the leaves, "
        "then one root.",
    ),
    solution=_gradient_norms,
    check=_check_gradient_norms,
    mistakes=(
        Mistake(_norms_of_average, says="*average* gradient"),
        Mistake(_norms_added, says="Lengths do not add up"),
        Mistake(_norms_squared, says="root is missing"),
        Mistake(_norms_loop, says="grows with the batch"),
        Mistake(_norms_one_leaf, says="Only one part"),
        Mistake(_norms_both_mapped, says="Your code raised ValueError"),
        Mistake(_norms_of_pairs, says="For weights and a batch that are dicts"),
        Mistake(_norms_by_example, says="gradient by the example"),
        Mistake(_norms_one_by_one, says="one follows the other"),
        Mistake(_norms_losses, says="These are the losses"),
    ),
)


# count_parameters


def _count_parameters(tree):
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(tree))


def _check_count_parameters(function):
    trees = [
        {"kernel": jnp.zeros((3, 5)), "bias": jnp.zeros(5)},
        (
            (),
            {"kernel": jnp.zeros((4, 6))},
            {"bias": jnp.zeros(6)},
            (),
            [jnp.zeros((2, 3, 4)), {"scale": jnp.ones(())}],
        ),
        [{"kernel": jnp.zeros((3, 4)), "bias": jnp.zeros(4)} for _ in range(2)],  # the same shapes twice
        (),
    ]
    for tree in trees:
        shapes = jax.tree.map(lambda leaf: leaf.shape, tree)
        _right_count(
            function, tree, f"a tree of arrays with the shapes {shapes}" if tree else "an empty tree, ()"
        )
    half = {"kernel": jnp.zeros((3, 5), jnp.bfloat16)}
    _right_count(function, half, "a tree with one array, a (3, 5) kernel in bfloat16")
    # More than any memory holds: shapes alone must do.
    abstract = {
        "kernel": jax.ShapeDtypeStruct((1_200_000, 1_000_003), jnp.float32),
        "bias": jax.ShapeDtypeStruct((1_000_003,), jnp.float32),
    }
    try:
        got = function(abstract)
    except reader.Raised as raised:
        raise Failed(
            "For a tree of `jax.ShapeDtypeStruct`, shapes without arrays as `jax.eval_shape` gives them, your code raised "
            f"{reader.describe_error(raised.error)}\nThe shape of a leaf is all that is needed.",
            shown=reader.lines_of(raised.error),
        ) from None
    _compare_count(got, abstract, "only shapes, no arrays: kernel (1200000, 1000003), bias (1000003,)")


def _right_count(function, tree, described):
    _compare_count(function(tree), tree, described)


def _compare_count(got, tree, described):
    leaves, expected = jax.tree.leaves(tree), _count_parameters(tree)
    shown = {"input": described, "expected": expected, "got": got}
    if got is None:
        raise Failed("Your function returned None: is a `return` missing?", **shown)
    if np.ndim(got) or not np.issubdtype(np.asarray(got).dtype, np.integer):
        raise Failed("One whole number is asked for, an integer.", **shown)
    if int(got) == expected:
        return
    if expected > 10**12 and abs(int(got) / expected - 1) < 1e-5:
        raise Failed(
            "Almost: the last digits are lost. A float32 holds about seven of them; Python's integers hold all.",
            **shown,
        )
    recognise = [
        (len(leaves), "This is the number of arrays, not of the numbers in them."),
        (
            sum(leaf.size * leaf.dtype.itemsize for leaf in leaves),
            "These are bytes: count numbers, whatever their size.",
        ),
        (
            sum(sum(leaf.shape) for leaf in leaves),
            "An array has the *product* of its axes' sizes in numbers, not the sum.",
        ),
        (
            sum(leaf.shape[0] for leaf in leaves if leaf.shape),
            "`len` of an array is the size of its first axis only.",
        ),
        (
            sum(math.prod(leaf.shape) for leaf in leaves if len(leaf.shape) > 1),
            "Only arrays with two axes or more are counted: a bias is a parameter, too.",
        ),
        (
            sum(math.prod(leaf.shape) for leaf in leaves if leaf.shape),
            "An array of shape () holds one number, not none.",
        ),
        (
            sum(math.prod(shape) for shape in {leaf.shape for leaf in leaves}),
            "Each shape is counted once, however many arrays have it.",
        ),
    ]
    said = [text for wrong, text in recognise if wrong == int(got)]
    lead = f"{said[0]}\n" if len(said) == 1 else ""
    raise Failed(f"{lead}The count is wrong.", **shown)


def _count_arrays(tree):
    return len(jax.tree.leaves(tree))


def _count_bytes(tree):
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))


def _count_axes(tree):
    return sum(sum(leaf.shape) for leaf in jax.tree.leaves(tree))


def _count_raveled(tree):
    return jax.flatten_util.ravel_pytree(tree)[0].size


def _count_first_axis(tree):
    return sum(len(leaf) for leaf in jax.tree.leaves(tree))


def _count_float32(tree):
    return int(jnp.sum(jnp.array([float(leaf.size) for leaf in jax.tree.leaves(tree)])))


def _count_each_shape_once(tree):
    return sum(math.prod(shape) for shape in {leaf.shape for leaf in jax.tree.leaves(tree)})


def _count_no_scalars(tree):
    return sum(math.prod(leaf.shape) if leaf.shape else 0 for leaf in jax.tree.leaves(tree))


def _count_makes_arrays(tree):
    return sum(jnp.zeros(leaf.shape).size for leaf in jax.tree.leaves(tree))


def _count_flat_dict(tree):
    return sum(leaf.size for leaf in tree.values())


count_parameters = Exercise(
    title="How large is it?",
    stars=1,
    minutes=5,
    why="Shapes are known before there is any memory for the arrays: so you can size up a network that fits nowhere.",
    hints=(
        "`jax.tree.leaves(tree)` is a list of all arrays in a tree, however deep they are.",
        "An array of shape (3, 5) holds 3 times 5 numbers: `math.prod(shape)`. Of shape (), it holds one.",
    ),
    solution=_count_parameters,
    check=_check_count_parameters,
    mistakes=(
        Mistake(_count_arrays, says="number of arrays"),
        Mistake(_count_bytes, says="These are bytes"),
        Mistake(_count_axes, says="*product*"),
        Mistake(_count_raveled, says="The shape of a leaf is all"),
        Mistake(_count_first_axis, says="first axis only"),
        Mistake(_count_flat_dict, says="Your code raised AttributeError"),
        Mistake(_count_float32, says="the last digits are lost"),
        Mistake(_count_each_shape_once, says="Each shape is counted once"),
        Mistake(_count_no_scalars, says="holds one number, not none"),
        Mistake(_count_makes_arrays, says="The shape of a leaf is all"),
    ),
)
