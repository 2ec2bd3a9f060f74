"""The exercises of the chapter Autodiff."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, Failed, Mistake, checks
from mlax_tutorial.checking.programs import fresh, under
from mlax_tutorial.inspection import costs, jaxprs


def _matches(got, expected, rtol=1e-4, atol=1e-5):
    try:
        checks.same(got, expected, rtol=rtol, atol=atol)
    except Failed:
        return False
    return True


def _compare(got, expected, wrong, **options):
    """As `checks.same`, with a diagnosis in front where the result is one of the wrong ones."""
    shown = {name: options.pop(name) for name in ("rtol", "atol") if name in options}
    try:
        checks.same(got, expected, **shown, **options)
    except Failed as failure:
        for other, reason in wrong:
            if _matches(got, other() if callable(other) else other):
                failure.message = f"{reason}\n{failure.message}"
                break
        raise


# slopes

_slopes = {"a": 12.0, "b": 12.0, "c": 5.0, "d": (4.0, 6.0), "e": "error", "f": 0.5, "g": 24.0}


def _check_slopes(given):
    why = {
        "a": {
            4.0: "`argnums=1` is the second argument, counted from 0: the slope with respect to `y`.",
            (4.0, 12.0): "Only a tuple of `argnums` gives a tuple of slopes.",
        },
        "b": {8.0: "This is the value.", 6.0: "That is the third derivative."},
        "c": {
            2.0: "1 is not greater than 1, so Python takes the other side.",
            "error": "Without `jit`, the stand-in of `grad` knows its number, so that Python can choose.",
            3.5: "At a kink JAX does not average the sides: Python takes one.",
        },
        "d": {
            4.0: "With `has_aux=True` the second part of the result comes back as well.",
            (4.0, 3.0): "What `has_aux` hands through is the extra itself, not its slope.",
            (4.0, 4.0, 6.0): "`grad` drops the value; `value_and_grad` would return it.",
            ((4.0, 6.0), 4.0): "`grad` drops the value; `value_and_grad` would return it, in front.",
            "error": "The pair is allowed, because of `has_aux=True`.",
        },
        "e": {
            8.0: "4 is a whole number, and `grad` refuses to move it by a little.",
        },
        "f": {
            1.0: "At a tie `maximum` splits the slope evenly between its two inputs.",
            0.0: "At a tie `maximum` splits the slope evenly between its two inputs.",
            1.5: "`floor` is flat wherever it has a slope.",
            2.0: "`floor` is flat wherever it has a slope.",
            "error": "JAX gives a slope at kinks and steps, too.",
        },
        "g": {
            18.0: "The inner slope depends on `x`, too: at 3 it is `x * 6`.",
            12.0: "The inner slope depends on `x`, too; the product has two terms.",
            36.0: "The inner function is differentiated at 3, and the outer one at 2.",
        },
    }
    checks.answers(given, _slopes, why)


slopes = Exercise(
    title="Seven slopes, without running anything",
    stars=1,
    minutes=5,
    why="You know what `grad` returns before you run it: for which argument, what besides, and what it makes of kinks.",
    hints=(
        "`argnums` counts from 0. A whole number is no place to take a slope at.",
        "Which side does Python take in `c`? What is the slope of a staircase in `f`, and what do equals share?",
        "In `g` the inner derivative is `x * 2 * 3`: write the outer function without it, then differentiate.",
    ),
    solution=_slopes,
    check=_check_slopes,
    mistakes=(
        Mistake(_slopes | {"a": 4.0}, says="counted from 0"),
        Mistake(_slopes | {"b": 8.0}, says="This is the value"),
        Mistake(_slopes | {"c": 2.0}, says="takes the other side"),
        Mistake(_slopes | {"c": "error"}, says="knows its number"),
        Mistake(_slopes | {"d": 4.0}, says="comes back as well"),
        Mistake(_slopes | {"d": (4.0, 3.0)}, says="the extra itself"),
        Mistake(_slopes | {"e": 8.0}, says="refuses to move it"),
        Mistake(_slopes | {"f": 1.0}, says="splits the slope evenly"),
        Mistake(_slopes | {"f": 1.5}, says="`floor` is flat"),
        Mistake(_slopes | {"g": 18.0}, says="depends on `x`, too: at 3"),
        Mistake({"a": 12.0}, says="No answer for"),
        Mistake(list(_slopes.values()), says="a dict is asked for"),
    ),
)


# step


def _step(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)
    params = jax.tree.map(lambda p, slope: (p - rate * slope).astype(p.dtype), params, slopes)
    return params, value, extras


def _line(params, batch):
    x, y = batch
    error = x @ params["w"] + params["b"].astype(x.dtype) - y
    return jnp.mean(error**2), {"worst": jnp.max(jnp.abs(error)), "rows": jnp.float32(len(y))}


def _check_step(step):
    params = {"w": jnp.array([1.0, -0.5]), "b": jnp.bfloat16(0.25)}
    batch = jnp.array([[1.0, 2.0], [0.5, -1.0], [3.0, 1.0]]), jnp.array([0.0, 1.0, 2.0])
    calls = []

    def loss(params, batch):
        calls.append(1)
        return _line(params, batch)

    shown = {"input": "a `loss` of two parameters, `w` in float32 and `b` in bfloat16, and rate = 0.1"}
    value, extras = _line(params, batch)
    slopes = jax.grad(lambda p: _line(p, batch)[0])(params)
    expected = _step(_line, params, batch, 0.1)
    got = step(loss, params, batch, 0.1)
    if got is None:
        raise Failed("Your function returned None: is a `return` missing?", **shown)
    if not isinstance(got, (tuple, list)) or len(got) != 3:
        raise Failed("Three things are asked for: `(params, value, extras)`.", got=got, **shown)
    if not calls:
        raise Failed("Your function does not call `loss`.")
    if len(calls) > 1:
        raise Failed(
            f"`loss` was run {len(calls)} times for one step. `jax.value_and_grad` gives the value, and with "
            "`has_aux=True` the extras, in the run that it needs for the gradient.",
            **shown,
        )
    got = tuple(got)
    if jax.tree.structure(got[0]) == jax.tree.structure(params) and got[0]["b"].dtype != jnp.bfloat16:
        raise Failed(
            f"The parameter `b` came as bfloat16 and goes back as {got[0]['b'].dtype}. With the next step the program "
            "would be another one, and be traced anew: cast to the parameter's own dtype.",
            **shown,
        )

    def moved(by):
        return jax.tree.map(lambda p, g: (p + by * g).astype(p.dtype), params, slopes)

    wrong = [
        ((moved(0.1), value, extras), "This goes uphill: the slopes are to be subtracted."),
        ((moved(-1.0), value, extras), "The learning rate is missing."),
        ((params, value, extras), "The parameters are the old ones."),
        ((slopes, value, extras), "These are the slopes, not the new parameters."),
        ((expected[0], extras, value), "Value and extras are in the wrong order."),
        ((expected[0], *_line(expected[0], batch)), "The value is that of the new parameters."),
    ]
    _compare(got, expected, wrong, rtol=2e-3, atol=1e-4, **shown)
    other = step(_line, params, batch, jnp.float32(0.1))
    if other[0]["b"].dtype != jnp.bfloat16:
        raise Failed(
            "With a `rate` that is an array (float32), the parameter `b` comes back as float32. A Python number is "
            "weak, an array is not: cast to the parameter's own dtype.",
        )
    nested = {"layers": [jnp.ones(2), (jnp.ones(()),)]}

    def of_a_tree(params, batch):
        return sum(jnp.sum(p**3) for p in jax.tree.leaves(params)) * batch, (batch, None)

    with_tree = {"input": "parameters in nested dicts, lists and tuples, and extras in a tuple"}
    checks.same(step(of_a_tree, nested, 2.0, 0.5)[0], _step(of_a_tree, nested, 2.0, 0.5)[0], **with_tree)
    with under("`jax.jit`"):
        jitted = jax.jit(fresh(step), static_argnums=0)(_line, params, batch, 0.1)
    checks.same(tuple(jitted), expected, where="under `jax.jit`", rtol=1e-2, atol=1e-4)


def _step_uphill(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)
    return jax.tree.map(lambda p, g: (p + rate * g).astype(p.dtype), params, slopes), value, extras


def _step_without_rate(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)
    return jax.tree.map(lambda p, g: (p - g).astype(p.dtype), params, slopes), value, extras


def _step_twice(loss, params, batch, rate):
    value, extras = loss(params, batch)
    slopes = jax.grad(loss, has_aux=True)(params, batch)[0]
    return jax.tree.map(lambda p, g: (p - rate * g).astype(p.dtype), params, slopes), value, extras


def _step_promotes(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)
    return jax.tree.map(lambda p, g: p - jnp.float32(rate) * g, params, slopes), value, extras


def _step_promotes_by_array(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)
    return jax.tree.map(lambda p, g: p - rate * g, params, slopes), value, extras


def _step_forgets_aux(loss, params, batch, rate):
    value, slopes = jax.value_and_grad(loss)(params, batch)
    return jax.tree.map(lambda p, g: p - rate * g, params, slopes), value, None


def _step_swapped(loss, params, batch, rate):
    params, value, extras = _step(loss, params, batch, rate)
    return params, extras, value


def _step_old(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)
    jax.tree.map(lambda p, g: p - rate * g, params, slopes)
    return params, value, extras


def _step_pair(loss, params, batch, rate):
    return _step(loss, params, batch, rate)[:2]


def _step_on_the_tree(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)
    return params - rate * slopes, value, extras


step = Exercise(
    title="One step of gradient descent",
    stars=2,
    minutes=10,
    why="Value, extras and gradient from one run of the loss: this is the inner part of every training loop of the book.",
    hints=(
        "One transformation gives value and gradient together; one of its options lets extras through.",
        "`(value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)`",
        "`jax.tree.map` over parameters and slopes; `.astype(p.dtype)` keeps a bfloat16 what it is.",
    ),
    solution=_step,
    check=_check_step,
    mistakes=(
        Mistake(_step_uphill, says="goes uphill"),
        Mistake(_step_without_rate, says="learning rate is missing"),
        Mistake(_step_twice, says="was run 2 times"),
        Mistake(_step_promotes, says="came as bfloat16"),
        Mistake(_step_promotes_by_array, says="that is an array (float32)"),
        Mistake(_step_forgets_aux, says="Gradient only defined for scalar-output"),
        Mistake(_step_swapped, says="in the wrong order"),
        Mistake(_step_old, says="are the old ones"),
        Mistake(_step_pair, says="Three things are asked for"),
        Mistake(_step_on_the_tree, says="unsupported operand"),
    ),
)


# trace


def _trace(key, f, x, samples):
    signs = jax.random.rademacher(key, (samples, x.size), x.dtype)

    def one(v):
        return v @ jax.jvp(jax.grad(f), (x,), (v,))[1]

    return jnp.mean(jax.vmap(one)(signs))


def _separate(x):  # its Hessian is diagonal, so that every vector of signs gives the trace itself
    return jnp.sum(x**4) / 4


def _product(x):  # whatever the signs, a sample is -2 or 2, and the trace is 0
    return x[0] * x[1]


def _coupled(x):
    return jnp.sum(jnp.tanh(x[:-1] * x[1:])) + jnp.sum(x**2) * jnp.sum(jnp.sin(x))


def _check_trace(trace):
    x = jnp.array([1.0, -2.0, 0.5, 3.0])
    shown = {"input": "f(x) = sum(x**4) / 4 at x = [1, -2, 0.5, 3], 8 samples"}
    expected, gradient = jnp.sum(3 * x**2), x**3
    with under("`jax.jit`"):
        got = jax.jit(lambda key, x: trace(key, _separate, x, 8))(jax.random.key(0), x)
    wrong = [
        (expected * 8, "The samples are added up: their mean is asked for."),
        (
            expected / 4,
            "The mean over the entries was taken as well: of one vector it is the sum, $v^T H v$.",
        ),
        (
            jnp.sum(gradient),
            "This is made of first derivatives: the Hessian times `v` is the slope of the *gradient*.",
        ),
        (expected / 8, "Divided by the number of samples twice."),
    ]
    signs = (
        "The Hessian of this `f` is diagonal, so each vector of -1 and 1 gives the trace itself: are the entries of yours "
        "-1 and 1, and do they stand on both sides, $v^T H v$?"
    )
    wrong.append((got, signs))  # whatever else is wrong
    _compare(got, expected, wrong, rtol=1e-4, **shown)

    got = trace(jax.random.key(0), lambda x: -_separate(x), x, 3)
    checks.same(
        got, -expected, rtol=1e-4, input="f(x) = -sum(x**4) / 4, whose Hessian is diagonal and negative"
    )
    both = jax.jit(lambda key: trace(key, _product, x, 2))
    two = [float(both(jax.random.key(seed))) for seed in range(20)]
    if not np.allclose(np.abs(two), 2) and not set(np.round(two)) <= {-2.0, 0.0, 2.0}:
        raise Failed(
            "The result is wrong.", input="f(x) = x[0] * x[1], 2 samples: each is -2 or 2", got=two[0]
        )
    if np.allclose(np.abs(two), 2):
        raise Failed(
            "Of two samples the second always gives what the first gave. Is it a draw of its own? (`v` and `-v` are one and the same.)",
            input="f(x) = x[0] * x[1], 20 keys, 2 samples each",
        )
    odd = [float(trace(jax.random.key(seed), _product, x, 25)) for seed in range(2)]
    if np.allclose(np.abs(odd), 2):
        raise Failed(
            "The mean of the samples is asked for: of many that are -2 or 2, your result is always -2 or 2.",
            input="f(x) = x[0] * x[1], 25 samples",
            got=odd[0],
        )

    x = jnp.linspace(-1.0, 1.5, 6)
    hessian = np.asarray(jax.jit(jax.hessian(_coupled))(x), np.float64)
    samples = 100
    error = float(np.sqrt(2 * (np.sum(hessian**2) - np.sum(np.diag(hessian) ** 2)) / samples))
    run = jax.jit(lambda key: trace(key, _coupled, x, samples))
    with under("`jax.jit`"):
        found = [float(run(jax.random.key(seed))) for seed in range(4)]
    true = float(np.trace(hessian))
    off = max(abs(value - true) for value in found)
    seen = [("four keys", ", ".join(f"{value:.4g}" for value in found)), ("trace", f"{true:.4g}")]
    if max(found) == min(found):
        raise Failed("Four keys give the same estimate: it does not depend on the key.", shown=seen)
    if off > 6 * error:
        raise Failed(
            f"With {samples} samples the estimates are off by {off:.3g}, and {3 * error:.3g} would be much. Is every "
            "sample a draw of its own, and are its entries -1 and 1 with the same chance, each by itself?",
            shown=seen,
        )
    size = 40
    with under("`jax.make_jaxpr`"):
        program = jax.make_jaxpr(lambda key, x: trace(key, _coupled, x, 3))(jax.random.key(0), jnp.ones(size))
    for _, equation in jaxprs.walk(program):
        for out in equation.outvars:
            shape = getattr(out.aval, "shape", ())
            if np.prod(shape, dtype=int) >= size * size:
                itself = (
                    "the Hessian itself" if shape == (size, size) else "as large as the Hessian, or larger"
                )
                raise Failed(
                    f"For an `x` of {size} elements your function makes an array of shape {tuple(shape)}: {itself}. "
                    "For a million parameters nobody has the room. One `jax.jvp` of the gradient gives the "
                    "Hessian times a vector.",
                )
    checks.keys(lambda key, x: trace(key, _separate, x, 2), jax.random.key(3), x, depends=False)


def _trace_by_hessian(key, f, x, samples):
    signs = jax.random.rademacher(key, (samples, x.size), x.dtype)
    hessian = jax.hessian(f)(x)
    return jnp.mean(jax.vmap(lambda v: v @ hessian @ v)(signs))


def _samples_along(vectors, f, x):
    return jax.vmap(lambda v: v @ jax.jvp(jax.grad(f), (x,), (v,))[1])(vectors)


def _trace_normal(key, f, x, samples):
    vectors = jax.random.normal(key, (samples, x.size), x.dtype)
    return jnp.mean(_samples_along(vectors, f, x))


def _trace_same_draw(key, f, x, samples):
    v = jax.random.rademacher(key, x.shape, x.dtype)
    return jnp.mean(jnp.stack([v @ jax.jvp(jax.grad(f), (x,), (v,))[1]] * samples))


def _trace_sum(key, f, x, samples):
    return samples * _trace(key, f, x, samples)


def _samples(key, f, x, samples):
    return _samples_along(jax.random.rademacher(key, (samples, x.size), x.dtype), f, x)


def _trace_median(key, f, x, samples):
    return jnp.median(_samples(key, f, x, samples))


def _trace_absolute(key, f, x, samples):
    return jnp.mean(jnp.abs(_samples(key, f, x, samples)))


def _trace_twins(key, f, x, samples):
    half = jax.random.rademacher(key, ((samples + 1) // 2, x.size), x.dtype)
    signs = jnp.concatenate([half, -half])[:samples]
    return jnp.mean(_samples_along(signs, f, x))


def _trace_mean_of_entries(key, f, x, samples):
    signs = jax.random.rademacher(key, (samples, x.size), x.dtype)
    return jnp.mean(jax.vmap(lambda v: v * jax.jvp(jax.grad(f), (x,), (v,))[1])(signs))


def _trace_first_derivatives(key, f, x, samples):
    signs = jax.random.rademacher(key, (samples, x.size), x.dtype)
    return jnp.mean(jax.vmap(lambda v: jnp.sum(v * v * jax.grad(f)(x)))(signs))


def _trace_fixed_key(key, f, x, samples):
    return _trace(jax.random.key(1), f, x, samples)


def _trace_without_v(key, f, x, samples):
    signs = jax.random.rademacher(key, (samples, x.size), x.dtype)
    return jnp.mean(jax.vmap(lambda v: jnp.sum(jax.jvp(jax.grad(f), (x,), (v,))[1]))(signs))


def _trace_of_zeros_and_ones(key, f, x, samples):
    bits = jax.random.bernoulli(key, 0.5, (samples, x.size)).astype(x.dtype)
    return jnp.mean(_samples_along(bits, f, x))


def _trace_integers(key, f, x, samples):
    signs = jax.random.rademacher(key, (samples, x.size))
    return jnp.mean(_samples_along(signs, f, x))


def _trace_reuses(key, f, x, samples):
    total = 0.0
    for _ in range(samples):
        v = jax.random.rademacher(key, x.shape, x.dtype)
        total = total + v @ jax.jvp(jax.grad(f), (x,), (v,))[1]
    return total / samples


trace = Exercise(
    title="The trace of a Hessian that is never made",
    stars=2,
    minutes=15,
    why="Forward over reverse asks a Hessian of any size a question, for a few times the cost of the function.",
    hints=(
        "The Hessian times `v` is the move of the gradient when `x` moves along `v`: one `jax.jvp`.",
        "`jax.jvp(jax.grad(f), (x,), (v,))[1]` is $H v$; its dot product with `v` is one sample.",
        "`jax.random.rademacher(key, (samples, x.size), x.dtype)` draws all vectors at once, and `vmap` does the rest.",
    ),
    solution=_trace,
    check=_check_trace,
    mistakes=(
        Mistake(_trace_by_hessian, says="the Hessian itself"),
        Mistake(_trace_normal, says="are the entries of yours -1 and 1"),
        Mistake(_trace_same_draw, says="a draw of its own"),
        Mistake(_trace_sum, says="are added up"),
        Mistake(_trace_mean_of_entries, says="over the entries"),
        Mistake(_trace_first_derivatives, says="first derivatives"),
        Mistake(_trace_median, says="The mean of the samples is asked for"),
        Mistake(_trace_absolute, says="diagonal and negative"),
        Mistake(_trace_twins, says="a draw of its own"),
        Mistake(_trace_fixed_key, says="does not depend on the key"),
        Mistake(_trace_without_v, says="are the entries of yours -1 and 1"),
        Mistake(_trace_of_zeros_and_ones, says="are the entries of yours -1 and 1"),
        Mistake(_trace_integers, says="primal and tangent arguments"),
        Mistake(_trace_reuses, says="a draw of its own"),
    ),
)


# softplus


def _softplus(x):
    @jax.custom_jvp
    def softplus(x):
        return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))

    @softplus.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return softplus(x), jax.nn.sigmoid(x) * t

    return softplus(x)


def _check_softplus(softplus):
    points = np.array([-1000, -90, -30, -12, -1, 0, 1, 12, 20, 90, 1000], np.float32)
    wide = points.astype(np.float64)
    for x, exact in zip(points, np.logaddexp(0.0, wide), strict=True):
        got = softplus(jnp.float32(x))
        try:
            checks.same(got, jnp.float32(exact), input={"x": jnp.float32(x)}, rtol=1e-4, atol=1e-37)
        except Failed as failure:
            if got is not None and not isinstance(got, (tuple, list)) and not np.all(np.isfinite(got)):
                failure.message = (
                    f"The exponential overflows: $e^{{{x:g}}}$ is no float32.\n{failure.message}"
                )
            elif got is not None and jnp.shape(got) == () and x < -10 and float(got) == 0:
                failure.message = (
                    "The small values are lost: 1 plus something small is rounded to 1, and its logarithm is 0. "
                    f"`jnp.log1p(y)` is log(1 + y) without that sum.\n{failure.message}"
                )
            raise
    with under("`jax.make_jaxpr`"):
        program = jax.make_jaxpr(fresh(softplus))(jnp.float32(1.0))
    rules = [
        (str(equation.params.get("name", "")), _names_inside(equation))
        for _, equation in jaxprs.walk(program)
        if equation.primitive.name in ("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr")
    ]
    theirs = jax.make_jaxpr(lambda x: jnp.logaddexp(x, 0.0))(1.0)
    theirs = [_names_inside(e) for _, e in jaxprs.walk(theirs) if e.primitive.name == "custom_jvp_call"]
    if any(inside in theirs for _, inside in rules):
        raise Failed(
            "This is JAX's own function, with JAX's own rule. Write the value and the rule yourself."
        )
    if not {name for name, _ in rules} - {"relu"}:
        raise Failed("Your function has no rule of its own: put `@jax.custom_jvp` above it, and give it one.")
    for x in points:
        _check_softplus_slopes(softplus, jnp.float32(x))
    with under("`jax.jvp`"):
        _, forward = jax.jvp(fresh(softplus), (jnp.float32(1.0),), (jnp.float32(3.0),))
    checks.same(forward, 3 * jax.nn.sigmoid(jnp.float32(1.0)), where="in forward mode, for a tangent of 3")
    matrix = jnp.array([[1.0, -2.0, 30.0], [0.0, 100.0, -100.0]])
    checks.same(softplus(matrix), jnp.logaddexp(matrix, 0), input={"x": matrix}, rtol=1e-4)
    checks.returns(softplus, jnp.ones(3, jnp.bfloat16), shape=(3,), dtype=jnp.bfloat16)
    checks.gradients(softplus, lambda x: jnp.logaddexp(x, 0.0), jnp.array([-3.0, 0.5, 2.0]))
    checks.works_under_vmap(softplus, matrix)


def _names_inside(equation):
    return [e.primitive.name for _, jaxpr in jaxprs.subjaxprs(equation) for _, e in jaxprs.walk(jaxpr)]


def _check_softplus_slopes(softplus, x):
    wide = np.float64(x)
    first = 1 / (1 + np.exp(-wide)) if wide > -700 else 0.0
    for order, exact in ((1, first), (2, first * (1 - first))):
        slope = fresh(softplus)
        for _ in range(order):
            slope = jax.grad(slope)
        with under("`jax.grad`" if order == 1 else "`jax.grad` of `jax.grad`"):
            got = slope(x)
        if not np.isclose(got, exact, rtol=1e-3, atol=1e-20 if order == 1 else 1e-6):
            what = "slope" if order == 1 else "second derivative"
            hint = ""
            if order == 1 and np.isclose(got, 1.0) and x < 0:
                hint = " Does the rule multiply by the tangent, and with the slope at `x`?"
            raise Failed(
                f"The {what} is {'wrong' if np.isfinite(got) else 'not finite'}: {got:.3g} instead of {exact:.3g}.{hint}",
                input={"x": x},
                expected=jnp.float32(exact),
                got=got,
            )


def _with_rule(value, slope):
    def softplus(x):
        function = jax.custom_jvp(value)
        function.defjvp(lambda primals, tangents: (function(*primals), slope(primals[0], tangents[0])))
        return function(x)

    return softplus


def _stable(x):
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


def _softplus_naive(x):
    return jnp.log(1 + jnp.exp(x))


def _softplus_without_rule(x):
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


def _softplus_theirs(x):
    return jax.nn.softplus(x)


_softplus_log = _with_rule(
    lambda x: jnp.maximum(x, 0) + jnp.log(1 + jnp.exp(-jnp.abs(x))), lambda x, t: jax.nn.sigmoid(x) * t
)
_softplus_overflowing_slope = _with_rule(_stable, lambda x, t: jnp.exp(x) / (1 + jnp.exp(x)) * t)
_softplus_no_tangent = _with_rule(_stable, lambda x, t: jax.nn.sigmoid(x) + 0 * t)
_softplus_of_tanh = _with_rule(_stable, lambda x, t: jnp.tanh(x) * t)
_softplus_step = _with_rule(_stable, lambda x, t: jnp.where(x > 0, 1.0, 0.0) * t)
_softplus_cut = _with_rule(
    _stable, lambda x, t: jnp.where(x < -20, 0.0, jnp.where(x > 20, 1.0, jax.nn.sigmoid(x))) * t
)
_softplus_float32 = _with_rule(
    lambda x: _stable(jnp.asarray(x, jnp.float32)),
    lambda x, t: jax.nn.sigmoid(jnp.float32(x)) * jnp.float32(t),
)


def _softplus_backward_only(x):
    function = jax.custom_vjp(_stable)
    function.defvjp(lambda x: (_stable(x), x), lambda x, c: (jax.nn.sigmoid(x) * c,))
    return function(x)


def _softplus_flat(x):
    return jnp.where(x > 20, x, jnp.log1p(jnp.exp(x)))


softplus = Exercise(
    title="A softplus that never overflows",
    stars=2,
    minutes=15,
    why="A rule of your own says what is true of the slope where the formula for the value has no numbers for it.",
    hints=(
        "The exponential of a number that is never positive cannot overflow.",
        "`jnp.log1p(y)` is log(1 + y), exact for small y, where 1 + y is rounded to 1.",
        "The rule gets `(x,)` and `(t,)`, and returns `softplus(x), jax.nn.sigmoid(x) * t`.",
    ),
    solution=_softplus,
    check=_check_softplus,
    mistakes=(
        Mistake(_softplus_naive, says="The small values are lost"),
        Mistake(_softplus_without_rule, says="no rule of its own"),
        Mistake(_softplus_theirs, says="JAX's own function"),
        Mistake(_softplus_log, says="The small values are lost"),
        Mistake(_softplus_overflowing_slope, says="The slope is not finite"),
        Mistake(_softplus_no_tangent, says="The slope is wrong"),
        Mistake(_softplus_of_tanh, says="The slope is wrong"),
        Mistake(_softplus_step, says="The slope is wrong"),
        Mistake(_softplus_cut, says="The slope is wrong"),
        Mistake(_softplus_backward_only, says="forward-mode"),
        Mistake(_softplus_float32, says="bfloat16"),
        Mistake(_softplus_flat, says="no rule of its own"),
    ),
)


# clip_slope


def _clip_slope(x, bound):
    @jax.custom_vjp
    def same(x, bound):
        return x

    def forward(x, bound):
        return x, bound

    def backward(bound, c):
        norm = jnp.sqrt(jnp.sum(c * c))
        scale = jnp.where(norm > bound, bound / jnp.where(norm > bound, norm, 1.0), 1.0)
        return (c * scale).astype(c.dtype), jnp.zeros_like(bound)

    same.defvjp(forward, backward)
    return same(x, bound)


def _check_clip_slope(clip_slope):
    x = jnp.array([[3.0, -1.0], [0.5, 20.0]])
    got = clip_slope(x, 1.0)
    try:
        checks.same(got, x, input={"x": x, "bound": 1.0}, rtol=0, atol=0)
    except Failed as failure:
        failure.message = f"On the way forward `x` is returned as it is.\n{failure.message}"
        raise
    with under("`jax.make_jaxpr`"):
        program = jax.make_jaxpr(lambda x: fresh(clip_slope)(x, 1.0))(x)
    rules = {equation.primitive.name for _, equation in jaxprs.walk(program)}
    if "custom_jvp_call" in rules and not any("custom_vjp" in name for name in rules):
        raise Failed(
            "A rule of `jax.custom_jvp` goes back transposed, so it has to be linear in the tangent, and clipping is not. Write the "
            "way back itself, with `jax.custom_vjp`."
        )
    large = jnp.array([[2.0, 2.0], [-4.0, 1.0]])
    cases = [
        (large, 1.0, large / 5, "a cotangent of norm 5, and bound 1"),
        (large, 2.5, large / 2, "a cotangent of norm 5, and bound 2.5"),
        (large / 10, 1.0, large / 10, "a cotangent of norm 0.5, and bound 1"),
        (jnp.zeros((2, 2)), 1.0, jnp.zeros((2, 2)), "a cotangent of zero"),
    ]
    for c, bound, expected, shown in cases:
        slope = _back_through(clip_slope, x, bound, c)
        norm = jnp.linalg.norm(c)
        wrong = [
            (c, "The cotangent goes through unclipped. Where is your rule used?"),
            (
                jnp.clip(c, -bound, bound),
                "Each entry is clipped by itself: that bends the direction. Scale the whole.",
            ),
            (
                lambda c=c, bound=bound: (
                    c * jnp.minimum(1, bound / jnp.linalg.norm(c, axis=1, keepdims=True))
                ),
                "Each row is clipped by itself: the norm is over all entries.",
            ),
            (
                lambda c=c, norm=norm, bound=bound: c * bound / norm,
                "A cotangent that is short already is made longer: the factor is at most 1.",
            ),
            (lambda c=c, norm=norm: c / norm, "The bound is missing: the norm becomes `bound`, not 1."),
            (
                lambda c=c, norm=norm, bound=bound: c * jnp.minimum(1, bound / norm**2),
                "The norm is the root of the sum of squares; here the root is missing.",
            ),
            (jnp.zeros_like(c), "Nothing goes back."),
        ]
        if not np.all(np.isfinite(slope)):
            raise Failed(
                "The slope is not finite: 0 / 0 is NaN, and a `where` round it would not help the factor."
                if not np.any(c)
                else "The slope is not finite.",
                input=shown,
                got=slope,
            )
        _compare(slope, expected, wrong, input=shown)
    with under("`jax.grad`"):
        inside = jax.grad(lambda x: jnp.sum(large * clip_slope(3 * x, 1.0)))(x)
    checks.same(
        inside, 3 * large / 5, input="the slope of sum(c * clip_slope(3 * x, 1)), |c| = 5: clipped, times 3"
    )
    try:
        with under("`jax.grad`"):
            by_bound = jax.grad(lambda bound: jnp.sum(large * clip_slope(x, bound)))(1.0)
    except Failed as failure:
        if "nondiff_argnums" in failure.message:
            failure.message = (
                "`nondiff_argnums` is for what is never traced, such as a function. The bound may be: let it be an argument like "
                f"any other, and give it a cotangent of 0.\n{failure.message}"
            )
        raise
    checks.same(
        jnp.asarray(by_bound, jnp.float32), jnp.float32(0.0), input="the slope with respect to `bound`"
    )
    with under("`jax.jit`"):
        jitted = jax.jit(lambda bound: _back_through(clip_slope, x, bound, large))(2.5)
    checks.same(jitted, large / 2, where="under `jax.jit`, with a traced bound")
    with under("`jax.vmap`"):
        each = jax.vmap(lambda c: _back_through(clip_slope, x[0], 1.0, c))(large)
    checks.same(
        each,
        large / jnp.linalg.norm(large, axis=1, keepdims=True),
        where="under `jax.vmap`, for each row by itself",
    )
    half = jnp.ones(3, jnp.bfloat16)
    checks.returns(lambda x: _back_through(clip_slope, x, 1.0, x), half, shape=(3,), dtype=jnp.bfloat16)


def _back_through(clip_slope, x, bound, c):
    with under("`jax.vjp`"):
        _, pullback = jax.vjp(lambda x: clip_slope(x, bound), x)
        return pullback(c)[0]


def _clipping(factor, forward=lambda x: x):
    def clip_slope(x, bound):
        same = jax.custom_vjp(lambda x, bound: forward(x))
        same.defvjp(
            lambda x, bound: (forward(x), bound),
            lambda bound, c: ((c * factor(c, bound)).astype(c.dtype), jnp.zeros_like(bound)),
        )
        return same(x, bound)

    return clip_slope


def _norm(c):
    return jnp.sqrt(jnp.sum(c * c))


_clip_slope_nan = _clipping(
    lambda c, bound: jnp.where(_norm(c) > bound, bound / _norm(c), _norm(c) / _norm(c))
)
_clip_slope_always = _clipping(lambda c, bound: bound / jnp.maximum(_norm(c), 1e-6))
_clip_slope_to_one = _clipping(lambda c, bound: jnp.minimum(1.0, 1 / jnp.maximum(_norm(c), 1e-6)))
_clip_slope_squares = _clipping(lambda c, bound: jnp.minimum(1.0, bound / jnp.maximum(jnp.sum(c * c), 1e-6)))
_clip_slope_rows = _clipping(
    lambda c, bound: jnp.minimum(
        1.0, bound / jnp.maximum(jnp.sqrt(jnp.sum(c * c, axis=-1, keepdims=c.ndim > 1)), 1e-6)
    )
)


def _clip_slope_forward(x, bound):
    return x * jnp.minimum(1.0, bound / jnp.linalg.norm(x))


def _clip_slope_entries(x, bound):
    same = jax.custom_vjp(lambda x, bound: x)
    same.defvjp(
        lambda x, bound: (x, bound), lambda bound, c: (jnp.clip(c, -bound, bound), jnp.zeros_like(bound))
    )
    return same(x, bound)


def _clip_slope_identity(x, bound):
    return x


def _clip_slope_stopped(x, bound):
    return lax.stop_gradient(x)


def _clip_slope_one_cotangent(x, bound):
    same = jax.custom_vjp(lambda x, bound: x)
    same.defvjp(lambda x, bound: (x, bound), lambda bound, c: (c * jnp.minimum(1.0, bound / _norm(c)),))
    return same(x, bound)


def _clip_slope_forward_rule(x, bound):
    same = jax.custom_jvp(lambda x: x)
    same.defjvp(lambda p, t: (p[0], t[0] * jnp.minimum(1.0, bound / _norm(t[0]))))
    return same(x)


def _clip_slope_not_traced(x, bound):
    same = jax.custom_vjp(lambda x, bound: x, nondiff_argnums=(1,))
    same.defvjp(
        lambda x, bound: (x, None),
        lambda bound, _, c: (c * jnp.minimum(1.0, bound / jnp.maximum(_norm(c), 1e-9)),),
    )
    return same(x, bound)


def _clip_slope_python_if(x, bound):
    same = jax.custom_vjp(lambda x, bound: x)

    def backward(bound, c):
        return (c * bound / _norm(c) if _norm(c) > bound else c), jnp.zeros_like(bound)

    same.defvjp(lambda x, bound: (x, bound), backward)
    return same(x, bound)


clip_slope = Exercise(
    title="Clip a gradient where it passes",
    stars=2,
    minutes=15,
    why="A backward pass of your own need not be a derivative: here it is a guard in the middle of a network.",
    hints=(
        "Clipping is not linear in the cotangent, and a rule of `custom_jvp` has to be, since it is transposed: it is `jax.custom_vjp`.",
        "Forward keeps the bound, `return x, bound`; backward gets it and the cotangent, and returns a pair.",
        "Make the norm harmless where it is not above the bound, before you divide by it; `bound` gets `jnp.zeros_like`.",
    ),
    solution=_clip_slope,
    check=_check_clip_slope,
    mistakes=(
        Mistake(_clip_slope_forward, says="On the way forward"),
        Mistake(_clip_slope_entries, says="Each entry is clipped"),
        Mistake(_clip_slope_rows, says="Each row is clipped"),
        Mistake(_clip_slope_identity, says="goes through unclipped"),
        Mistake(_clip_slope_stopped, says="Nothing goes back"),
        Mistake(_clip_slope_nan, says="0 / 0 is NaN"),
        Mistake(_clip_slope_always, says="is made longer"),
        Mistake(_clip_slope_to_one, says="The bound is missing"),
        Mistake(_clip_slope_squares, says="the root is missing"),
        Mistake(_clip_slope_one_cotangent, says="Custom VJP bwd rule"),
        Mistake(_clip_slope_forward_rule, says="has to be linear in the tangent"),
        Mistake(_clip_slope_not_traced, says="is for what is never traced"),
        Mistake(_clip_slope_python_if, says="an `if`, `while` or `and`"),
    ),
)


# fixed_point


def _fixed_point(f, a, x):
    def settle(step, x):
        def going(state):
            x, before, rounds = state
            return (jnp.max(jnp.abs(x - before)) > 1e-6) & (rounds < 1000)

        def body(state):
            x, before, rounds = state
            return step(x), x, rounds + 1

        return lax.while_loop(going, body, (step(x), x, 1))[0]

    @jax.custom_vjp
    def solve(a, x):
        return settle(lambda x: f(a, x), x)

    def forward(a, x):
        solution = solve(a, x)
        return solution, (a, solution)

    def backward(kept, c):
        a, solution = kept
        _, pullback = jax.vjp(f, a, solution)
        u = settle(lambda u: c + pullback(u)[1], c)
        return pullback(u)[0], jnp.zeros_like(solution)

    solve.defvjp(forward, backward)
    return solve(a, x)


def _linear(a, x):
    return a["matrix"] @ x + a["offset"]


def _curved(a, x):
    return jnp.tanh(a * jnp.roll(x, 1) + 0.5)


def _check_fixed_point(fixed_point):
    # Not symmetric, so that a transposition that is missing shows.
    a = {"matrix": jnp.array([[0.3, 0.4], [-0.1, 0.2]]), "offset": jnp.array([1.0, -2.0])}
    start, c = jnp.array([0.5, 0.5]), jnp.array([1.0, 3.0])
    system = np.eye(2) - np.asarray(a["matrix"], np.float64)
    solution = jnp.asarray(np.linalg.solve(system, a["offset"]), jnp.float32)
    shown = {"input": "f(a, x) = a['matrix'] @ x + a['offset'], which has one fixed point"}
    got = fixed_point(_linear, a, start)
    if isinstance(got, (tuple, list)):
        raise Failed("Only the last `x` is asked for.", got=got, **shown)
    checks.same(got, solution, rtol=1e-4, atol=1e-5, **shown)

    def gradient(f, a, start, c):
        try:
            with under("`jax.grad`"):
                return jax.grad(lambda a, x: jnp.vdot(c, fixed_point(f, a, x)), (0, 1))(a, start)
        except Failed as failure:
            if "UnexpectedTracerError" in failure.message:
                failure.message = (
                    "The function that has the rule takes an array from outside, and it is differentiated: `a` and `x` have to be "
                    "arguments of that function."
                )
            raise

    slopes, by_start = gradient(_linear, a, start, c)
    u = jnp.asarray(np.linalg.solve(system.T, c), jnp.float32)

    def from_u(u, x=solution):
        return {"matrix": jnp.outer(u, x), "offset": u}

    forwards = jnp.asarray(np.linalg.solve(system, c), jnp.float32)
    minus = jnp.asarray(np.linalg.solve(2 * np.eye(2) - system.T, c), jnp.float32)
    wrong = [
        (from_u(c), "This is the slope of one round alone, $u = c$: the equation for $u$ is not solved."),
        (from_u(c + a["matrix"].T @ c), "Only one step towards $u$ was taken: it is a fixed point, too."),
        (from_u(forwards), "The matrix is not transposed: `jax.vjp` goes backwards, `jax.jvp` forwards."),
        (from_u(minus), "The sign is wrong: $u$ is the cotangent *plus* what comes back through `x`."),
        (from_u(u, start), "The slopes are those at the first guess: take them at the solution."),
        (jax.tree.map(jnp.zeros_like, a), "Nothing goes back to `a`."),
    ]
    _compare(
        slopes, from_u(u), wrong, rtol=1e-3, atol=1e-4, input="the slope of c @ fixed_point(f, a, x) in `a`"
    )
    if not _matches(by_start, jnp.zeros_like(start)):
        raise Failed(
            "The first guess has a slope. Wherever the loop starts, it comes to the same solution: the slope is 0.",
            expected=jnp.zeros_like(start),
            got=by_start,
        )
    # At the solution already: a loop that is differentiated round by round would know one round only.
    slopes, _ = gradient(_linear, a, solution, c)
    checks.same(
        slopes, from_u(u), rtol=1e-3, atol=1e-4, input="the first guess is the solution: the slope in `a`"
    )

    x = jnp.array([0.1, 0.2, 0.3])
    weight, c = jnp.float32(0.6), jnp.array([1.0, -2.0, 0.5])
    solution = x
    for _ in range(200):
        solution = _curved(weight, solution)
    checks.same(
        fixed_point(_curved, weight, x), solution, input="f(a, x) = tanh(a * roll(x, 1) + 0.5)", atol=1e-5
    )
    by_a, by_x = (np.asarray(jax.jacobian(_curved, i)(weight, solution), np.float64) for i in (0, 1))
    expected = jnp.float32(np.asarray(c) @ np.linalg.solve(np.eye(3) - by_x, by_a))
    slope, _ = gradient(_curved, weight, x, c)
    checks.same(slope, expected, rtol=1e-3, atol=1e-4, input="f(a, x) = tanh(a * roll(x, 1) + 0.5), a = 0.6")

    def both(a, x):
        return jax.value_and_grad(lambda a: jnp.vdot(c, fixed_point(_curved, a, x)))(a)

    if "scan" in jaxprs.count(both, weight, x):
        raise Failed(
            "The jaxpr of your function holds `scan`: a `lax.scan`, or a `fori_loop` of known length, which turns as often as it was "
            "told. A `while_loop` stops when nothing moves any more."
        )
    slow = fixed_point(lambda a, x: a * x + 0.03, jnp.float32(0.97), jnp.zeros(2))
    checks.same(
        slow, jnp.ones(2), rtol=0, atol=1e-4, input="f(a, x) = 0.97 x + 0.03, which takes some hundred rounds"
    )
    with under("`jax.jit`"):
        # Not by the jaxpr, which does not show what is inside of a `lax.custom_root`.
        lowered = jax.jit(both).lower(weight, x).as_text()
    if "stablehlo.while" not in lowered:
        raise Failed("Your function has no `while_loop`.")
    with under("`jax.jit`"):
        jitted = jax.jit(both)(weight, x)
    checks.same(jitted[1], expected, where="under `jax.jit`", rtol=1e-3, atol=1e-4)
    # Turns for ever: the loop must end all the same. How often it turned is not asked.
    turned = fixed_point(lambda a, x: a * jnp.array([-x[1], x[0]]), jnp.float32(1.0), jnp.array([1.0, 0.0]))
    checks.same(jnp.abs(turned[0]) + jnp.abs(turned[1]), jnp.float32(1.0), input="f turns x by a right angle")


def _settled(step, x, rounds=1000):
    def body(state):
        x, before, count = state
        return step(x), x, count + 1

    def going(state):
        return (jnp.max(jnp.abs(state[0] - state[1])) > 1e-6) & (state[2] < rounds)

    return lax.while_loop(going, body, (step(x), x, 1))[0]


def _with_backward(backward):
    def fixed_point(f, a, x):
        solve = jax.custom_vjp(lambda a, x: _settled(lambda x: f(a, x), x))

        def forward(a, x):
            solution = solve(a, x)
            return solution, (a, x, solution)

        solve.defvjp(forward, lambda kept, c: backward(f, *kept, c))
        return solve(a, x)

    return fixed_point


def _one_round(f, a, x, solution, c):
    return jax.vjp(f, a, solution)[1](c)[0], jnp.zeros_like(x)


def _one_step_of_u(f, a, x, solution, c):
    pullback = jax.vjp(f, a, solution)[1]
    return pullback(c + pullback(c)[1])[0], jnp.zeros_like(x)


def _solved(f, a, at, c, sign=1.0):
    pullback = jax.vjp(f, a, at)[1]
    return pullback(_settled(lambda u: c + sign * pullback(u)[1], c))


_fixed_point_one_round = _with_backward(_one_round)
_fixed_point_one_step = _with_backward(_one_step_of_u)
_fixed_point_minus = _with_backward(lambda f, a, x, s, c: (_solved(f, a, s, c, -1.0)[0], jnp.zeros_like(x)))
_fixed_point_at_guess = _with_backward(
    lambda f, a, x, s, c: (
        jax.vjp(lambda a: f(a, x), a)[1](_settled(lambda u: c + jax.vjp(f, a, x)[1](u)[1], c))[0],
        jnp.zeros_like(x),
    )
)
_fixed_point_forwards = _with_backward(
    lambda f, a, x, s, c: (
        jax.vjp(f, a, s)[1](_settled(lambda u: c + jax.jvp(lambda x: f(a, x), (s,), (u,))[1], c))[0],
        jnp.zeros_like(x),
    )
)
_fixed_point_guess_slope = _with_backward(lambda f, a, x, s, c: _solved(f, a, s, c))
_fixed_point_one_cotangent = _with_backward(lambda f, a, x, s, c: _solved(f, a, s, c)[:1])


def _fixed_point_plain(f, a, x):
    return _settled(lambda x: f(a, x), x)


def _fixed_point_scan(f, a, x):
    return lax.scan(lambda x, _: (f(a, x), None), x, length=1000)[0]


def _fixed_point_stopped(f, a, x):
    return _settled(lambda x: f(lax.stop_gradient(a), x), lax.stop_gradient(x))


def _fixed_point_closes_over(f, a, x):
    solve = jax.custom_vjp(lambda x: _settled(lambda x: f(a, x), x))
    solve.defvjp(lambda x: (solve(x), None), lambda kept, c: (jnp.zeros_like(c),))
    return solve(x)


def _fixed_point_few(f, a, x):
    solve = jax.custom_vjp(lambda a, x: _settled(lambda x: f(a, x), x, 100))
    solve.defvjp(
        lambda a, x: (solve(a, x), (a, solve(a, x))),
        lambda kept, c: (_solved(f, *kept, c)[0], jnp.zeros_like(kept[1])),
    )
    return solve(a, x)


def _fixed_point_endless(f, a, x):
    solve = jax.custom_vjp(lambda a, x: _settled(lambda x: f(a, x), x, 10**9))
    solve.defvjp(
        lambda a, x: (solve(a, x), (a, solve(a, x))),
        lambda kept, c: (_solved(f, *kept, c)[0], jnp.zeros_like(kept[1])),
    )
    return solve(a, x)


fixed_point = Exercise(
    title="The gradient of a fixed point",
    stars=3,
    minutes=25,
    why="The slope of a solution comes from its equation: no rounds are stored, however many were needed.",
    hints=(
        "A function inside, `solve(a, x)`, gets the rule by `jax.custom_vjp`; it may use `f` from outside, but no array that is differentiated.",
        "The forward pass keeps `a` and the solution. The backward pass calls `jax.vjp(f, a, solution)` once.",
        "Its pullback gives two cotangents: the second one is $(\\partial f/\\partial x)^T u$, for the loop over `u`, "
        "the first, at the end, is the result.",
        "Write the loop as a function of a step and a start, and use it for both: `settle(lambda u: c + pullback(u)[1], c)`.",
    ),
    solution=_fixed_point,
    check=_check_fixed_point,
    mistakes=(
        Mistake(_fixed_point_plain, says="Reverse-mode differentiation does not work"),
        Mistake(_fixed_point_scan, says="holds `scan`"),
        Mistake(_fixed_point_one_round, says="the slope of one round alone"),
        Mistake(_fixed_point_one_step, says="Only one step towards"),
        Mistake(_fixed_point_minus, says="The sign is wrong"),
        Mistake(_fixed_point_forwards, says="The matrix is not transposed"),
        Mistake(_fixed_point_at_guess, says="at the first guess"),
        Mistake(_fixed_point_guess_slope, says="The first guess has a slope"),
        Mistake(_fixed_point_one_cotangent, says="Custom VJP bwd rule"),
        Mistake(_fixed_point_stopped, says="Nothing goes back to"),
        Mistake(_fixed_point_closes_over, says="takes an array from outside"),
        Mistake(_fixed_point_few, says="some hundred rounds"),
        Mistake(_fixed_point_endless, says="limit of iterations"),
    ),
)


# pieces


def _pieces(layer, weights, x):
    def piece(x, some):
        return lax.scan(lambda x, w: (layer(w, x), None), x, some)

    return lax.scan(jax.checkpoint(piece), x, weights)[0]


def _smooth_layer(w, x):
    return x + jnp.tanh(x @ w)


def _all_layers(layer, weights, x):
    for w in weights.reshape(-1, *weights.shape[2:]):
        x = layer(w, x)
    return x


def _check_pieces(pieces):
    from mlax_tutorial.viz.reverse import record

    count, each, width, rows = 4, 8, 4, 256
    weights = jnp.sin(jnp.arange(float(count * each * width * width))).reshape(count, each, width, width) / 4
    x = jnp.cos(jnp.arange(float(rows * width))).reshape(rows, width)
    few = x[:3]
    shown = {"input": "4 pieces of 8 layers, `layer(w, x) = x + tanh(x @ w)`"}
    wrong = [
        (
            lambda: _all_layers(_smooth_layer, jnp.swapaxes(weights, 0, 1), few),
            "The layers are in the wrong order.",
        ),
        (lambda: _all_layers(_smooth_layer, weights[::-1, ::-1], few), "The layers run from last to first."),
        (lambda: _all_layers(_smooth_layer, weights[:1], few), "Only the first piece is run."),
        (
            lambda: _all_layers(_smooth_layer, weights[:, :1], few),
            "Only the first layer of each piece is run.",
        ),
    ]
    _compare(pieces(_smooth_layer, weights, few), _all_layers(_smooth_layer, weights, few), wrong, **shown)

    def loss(weights, x):
        return jnp.sum(pieces(_smooth_layer, weights, x) ** 2)

    def reference(weights, x):
        return jnp.sum(_all_layers(_smooth_layer, weights, x) ** 2)

    with under("`jax.grad`"):
        slopes = jax.grad(loss, (0, 1))(weights, few)
    checks.same(
        slopes, jax.grad(reference, (0, 1))(weights, few), where="of the gradient", rtol=1e-3, atol=1e-2
    )

    found = record(loss, weights, x, argnums=(0, 1))
    one, room = x.nbytes, weights.nbytes
    seen = [
        ("held between the passes", f"{found.kept / one:.1f} times `x`"),
        ("held at most", f"{found.peak / one:.1f} times `x`"),
    ]
    if found.kept > (count + 2) * one + 2 * room:
        layers = count * each
        much, advice = "every layer", "Nothing was saved: is `jax.checkpoint` round what is run?"
        if found.kept <= 1.5 * layers * one:
            advice = "A checkpoint stores its inputs: put it round a whole piece, not round each layer."
        if found.kept <= 0.9 * layers * one:
            much, advice = "more than the inputs of the pieces", "How many layers has each piece?"
        raise Failed(f"Between the passes, values of {much} wait. {advice}", shown=seen)
    own = record(
        lambda weights, x: jnp.sum(_pieces(_smooth_layer, weights, x) ** 2), weights, x, argnums=(0, 1)
    )
    if found.peak > 1.3 * own.peak:
        raise Failed(
            "Little waits between the passes, but then too much comes back at once: whatever a checkpoint is round is "
            "computed again before the first step backwards through it. One for each piece, please.",
            shown=seen,
        )
    work = costs.cost(jax.value_and_grad(loss, (0, 1)), weights, x).flops
    once = costs.cost(reference, weights, x).flops
    if work > 4.6 * once:
        raise Failed(
            "The gradient costs more than a second run of the layers: checkpoints inside of checkpoints run some layers "
            "three times. They hold less, but that is not the bargain here.",
            shown=[*seen, ("operations", f"{work / once:.1f} times those of the function")],
        )
    checks.works_under_jit(lambda weights, x: pieces(_smooth_layer, weights, x), weights, few)


def _pieces_plain(layer, weights, x):
    return _all_layers(layer, weights, x)


def _pieces_scans(layer, weights, x):
    def piece(x, some):
        return lax.scan(lambda x, w: (layer(w, x), None), x, some)

    return lax.scan(piece, x, weights)[0]


def _pieces_each_layer(layer, weights, x):
    step = jax.checkpoint(lambda x, w: (layer(w, x), None))
    return lax.scan(lambda x, some: lax.scan(step, x, some), x, weights)[0]


def _pieces_whole(layer, weights, x):
    return jax.checkpoint(lambda weights, x: _pieces_scans(layer, weights, x))(weights, x)


def _pieces_nested(layer, weights, x):
    step = jax.checkpoint(lambda x, w: (layer(w, x), None))
    piece = jax.checkpoint(lambda x, some: lax.scan(step, x, some))
    return lax.scan(piece, x, weights)[0]


def _pieces_everything(layer, weights, x):
    keep = jax.checkpoint_policies.everything_saveable
    piece = jax.checkpoint(lambda x, some: lax.scan(lambda x, w: (layer(w, x), None), x, some), policy=keep)
    return lax.scan(piece, x, weights)[0]


def _pieces_another_cut(layer, weights, x):
    return _pieces(layer, weights.reshape(weights.shape[1], weights.shape[0], *weights.shape[2:]), x)


def _pieces_swapped(layer, weights, x):
    return _pieces(layer, jnp.swapaxes(weights, 0, 1), x)


def _pieces_reversed(layer, weights, x):
    return _pieces(layer, weights[::-1, ::-1], x)


def _pieces_pair(layer, weights, x):
    def piece(x, some):
        return lax.scan(lambda x, w: (layer(w, x), None), x, some)

    return lax.scan(jax.checkpoint(piece), x, weights)


def _pieces_bare_body(layer, weights, x):
    def piece(x, some):
        return lax.scan(lambda x, w: layer(w, x), x, some)[0]

    return lax.scan(jax.checkpoint(piece), x, weights)[0]


def _pieces_first_layers(layer, weights, x):
    return _pieces(layer, weights[:, :1], x)


pieces = Exercise(
    title="Store a few, compute the rest again",
    stars=2,
    minutes=15,
    why="Memory that grows with the root of the depth, for one more run forward: so deep models are trained.",
    hints=(
        "Two loops, one inside the other: over the pieces, and over the layers of a piece.",
        "The body of the outer loop runs a whole piece. That body is what the checkpoint goes round.",
        "`lax.scan(jax.checkpoint(piece), x, weights)[0]`, where `piece(x, some)` is itself a scan.",
    ),
    solution=_pieces,
    check=_check_pieces,
    mistakes=(
        Mistake(_pieces_plain, says="is `jax.checkpoint` round what is run"),
        Mistake(_pieces_scans, says="is `jax.checkpoint` round what is run"),
        Mistake(_pieces_each_layer, says="not round each layer"),
        Mistake(_pieces_whole, says="too much comes back at once"),
        Mistake(_pieces_nested, says="checkpoints inside of checkpoints"),
        Mistake(_pieces_everything, says="is `jax.checkpoint` round what is run"),
        Mistake(_pieces_another_cut, says="more than the inputs of the pieces"),
        Mistake(_pieces_swapped, says="in the wrong order"),
        Mistake(_pieces_reversed, says="from last to first"),
        Mistake(_pieces_first_layers, says="first layer of each piece"),
        Mistake(_pieces_pair, says="one jax.Array is asked for"),
        Mistake(_pieces_bare_body, says="must be a pair"),
    ),
)
