"""Read, count and reinterpret jaxprs: the programs that JAX records.

A jaxpr is a list of equations. Some equations hold further jaxprs in their parameters: ``jit``, ``scan``,
``cond``, ``while``, the custom derivative rules. Whoever reads only the outer list misses most of a program.

- `walk` yields every equation, however deep; `count` counts them by name; `subjaxprs` is the step that both take;
  `lines` adds the line of Python that asked for each.
- `interpret` runs a function equation by equation and lets you replace any primitive by a rule of your own.
- `round_products` and `limit_loops` are two such interpreters: the first rehearses the default precision of
  a TPU, the second stops loops that never end.
"""

import collections
import functools
import linecache
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core, source_info_util

CUSTOM = ("custom_jvp_call", "custom_vjp_call")
CHECKPOINT = ("checkpoint", "remat", "remat2")  # one primitive, whose name has changed often
ShapedArray = type(jax.typeof(np.float32(0)))


class LoopLimitError(RuntimeError):
    """A loop went on after the number of iterations that `limit_loops` allows."""


# Reading


def subjaxprs(equation):
    """Yields ``(name, jaxpr)`` for each jaxpr that an equation holds in its parameters.

    The name is the parameter's, with an index where the parameter is a tuple: ``branches[1]``.

    >>> import jax
    >>> jaxpr = jax.make_jaxpr(lambda x: jax.lax.cond(x > 0, jax.numpy.sin, jax.numpy.cos, x))(1.0)
    >>> [name for equation in jaxpr.eqns for name, _ in subjaxprs(equation)]
    ['branches[0]', 'branches[1]']
    """
    for name, value in equation.params.items():
        if _is_jaxpr(value):
            yield name, value
        elif isinstance(value, (tuple, list)):
            for index, item in enumerate(value):
                if _is_jaxpr(item):
                    yield f"{name}[{index}]", item


def walk(jaxpr, path=()):
    """Yields ``(path, equation)`` for each equation of a jaxpr, those of inner jaxprs included.

    An equation comes before the equations inside it. The path is a tuple of strings, one for each level that
    was entered: the primitive (for ``jit`` also the function's name) and the parameter.

    >>> import jax
    >>> jaxpr = jax.make_jaxpr(lambda x: jax.nn.relu(x) + 1.0)(2.0)
    >>> for path, equation in walk(jaxpr):
    ...     print("/".join(path), equation.primitive.name)
     custom_jvp_call
    custom_jvp_call.call_jaxpr jit
    custom_jvp_call.call_jaxpr/jit[relu].jaxpr max
     add
    """
    for equation in _equations(jaxpr):
        yield path, equation
        for name, inner in subjaxprs(equation):
            yield from walk(inner, (*path, f"{_label(equation)}.{name}"))


def count(fun, *args, **kwargs):
    """Counts the primitives in the jaxpr of ``fun(*args, **kwargs)``, at any depth, by name.

    The body of a loop is counted once, as it is recorded once; so is each branch of a ``cond``. Arguments may be
    arrays or ``jax.ShapeDtypeStruct``: nothing is computed.

    >>> import jax
    >>> count(lambda x, y: jax.numpy.tanh(x @ y) @ y, jax.numpy.ones((2, 2)), jax.numpy.ones((2, 2)))
    Counter({'dot_general': 2, 'tanh': 1})
    """
    jaxpr = jax.make_jaxpr(fun)(*args, **kwargs)
    return collections.Counter(equation.primitive.name for _, equation in walk(jaxpr))


def lines(jaxpr, path=(), line=""):
    """As `walk`, but yields ``(path, equation, line)``, with the line of Python that asked for the equation.

    A line of JAX's own code does not count; then it is the line around it that called JAX. Equations of a backward
    pass have the line of what they differentiate. Where the source is not known, the line is an empty string.

    >>> import jax
    >>> def f(x):
    ...     y = jax.nn.relu(x)
    ...     return y + 1.0
    >>> for path, equation, line in lines(jax.make_jaxpr(f)(2.0)):
    ...     print(equation.primitive.name, "|", line)
    custom_jvp_call | y = jax.nn.relu(x)
    jit | y = jax.nn.relu(x)
    max | y = jax.nn.relu(x)
    add | return y + 1.0
    """
    for equation in _equations(jaxpr):
        here = _line(equation) or line  # what JAX has cached, the inside of its own functions, has none
        yield path, equation, here
        for name, inner in subjaxprs(equation):
            yield from lines(inner, (*path, f"{_label(equation)}.{name}"), here)


def _line(equation):
    where = re.match(r"(.+?):(\d+)(?::\d+)?(?:\s|$)", source_info_util.summarize(equation.source_info))
    return linecache.getline(where[1], int(where[2])).strip() if where else ""


def _scopes(equation):
    """The names that ``jax.named_scope`` gave, from the outside in; those of an inner jaxpr begin anew."""
    stack = equation.source_info.name_stack.stack
    return [entry.name for entry in stack if type(entry).__name__ == "Scope"]  # not a Transform, such as vmap


def _is_jaxpr(value):
    return isinstance(value, (core.ClosedJaxpr, core.Jaxpr))


def _open(jaxpr):
    """The bare jaxpr and its constants, whether ``jaxpr`` is closed or open. (Since 0.12 they are one class.)"""
    return getattr(jaxpr, "jaxpr", jaxpr), getattr(jaxpr, "consts", ())


def _equations(jaxpr):
    return _open(jaxpr)[0].eqns


def _label(equation):
    name = equation.primitive.name
    if "name" in equation.params and name in ("jit", "pjit", "closed_call", "core_call"):
        return f"{name}[{equation.params['name']}]"
    return name


# Interpreting


def interpret(fun, rules):
    """Returns a function like ``fun`` that is evaluated equation by equation, with rules in place of primitives.

    Args:
      fun: a function of pytrees of arrays.
      rules: a dict from the name of a primitive to ``rule(bind, *inputs, **params)``. The rule gets the
        equation's inputs and parameters, and returns what the equation returns: one array, or a list of
        arrays for a primitive with several results. ``bind(*inputs, **params)`` applies the primitive itself.
        Shapes and dtypes of the results must be those of the primitive.

    The rules also reach the equations inside ``jit``, ``scan``, ``while``, ``cond``, ``checkpoint``,
    ``shard_map`` and functions with rules of their own (``custom_jvp``, ``custom_vjp``). A rule for a primitive
    that holds jaxprs, ``while`` say, gets them with the rules already put in. A rule may be traced once and
    used many times, so it must be a pure function of its inputs.

    The result can be jitted, differentiated and batched in its turn. Mind the order:

    - ``interpret(jax.grad(f), rules)`` interprets the forward and the backward pass, whatever rules for
      derivatives ``f`` has.
    - ``jax.grad(interpret(f, rules))`` differentiates *through your rules*: the gradient is that of the
      interpreted function. Where ``f`` has a ``custom_jvp`` or ``custom_vjp``, it keeps it, interpreted like all else.

    Every call goes through the equations in Python: wrap the result in ``jax.jit`` if it is called often.

    Raises:
      NotImplementedError: if a rule would apply in a jaxpr that cannot be exchanged, since an object holds it, as that of
        ``lax.custom_root`` (from JAX 0.12).
      TypeError: if a rule returns other shapes or dtypes than the primitive.

    >>> import jax, jax.numpy as jnp
    >>> def minus(bind, x, **params):
    ...     return -bind(x, **params)
    >>> float(interpret(jax.jit(lambda x: jnp.exp(x) + 1.0), {"exp": minus})(0.0))
    0.0
    """

    @functools.wraps(fun)
    def interpreted(*args, **kwargs):
        jaxpr, shapes = jax.make_jaxpr(fun, return_shape=True)(*args, **kwargs)
        outputs = _evaluate(*_open(jaxpr), jax.tree.leaves((args, kwargs)), rules)
        return jax.tree.unflatten(jax.tree.structure(shapes), outputs)

    return interpreted


def _evaluate(jaxpr, consts, inputs, rules):
    """Runs a bare jaxpr: an environment from variables to values, and one equation after the other."""
    environment = dict(zip(jaxpr.constvars, consts, strict=True))
    environment.update(zip(jaxpr.invars, inputs, strict=True))

    def read(atom):
        return atom.val if isinstance(atom, core.Literal) else environment[atom]

    for equation in jaxpr.eqns:
        with equation.ctx.manager:  # where it was traced: inside jax.enable_x64, say
            outputs = _apply(equation, [read(atom) for atom in equation.invars], rules)
        environment.update(zip(equation.outvars, outputs, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _apply(equation, inputs, rules):
    primitive, params = equation.primitive, equation.params
    if primitive.name == "shard_map":
        return _shard_map(equation, inputs, rules)
    if primitive.name in CUSTOM and primitive.name not in rules:
        return _custom_rule(equation, inputs, rules)
    for name, inner in subjaxprs(equation):
        if any(_affected(inside, rules) for inside in _equations(inner)):
            new = _rewrite(inner, rules, where=f"{_label(equation)}.{name}")
            if primitive.name in CHECKPOINT:  # its jaxpr may hold no constants: they become its first inputs
                new, consts = _hoist(new)
                inputs = [*consts, *inputs]
            params = _replace(params, name, new if isinstance(inner, core.ClosedJaxpr) else new.jaxpr)
    if primitive.name not in rules and _hides(equation, rules):
        raise NotImplementedError(
            f"cannot interpret {_label(equation)}: it holds a jaxpr out of reach, and a rule would apply there. Interpret a "
            "function without it (custom_root and its like), or give a rule for it."
        )
    bind = functools.partial(_bind, primitive)
    if primitive.name in rules:
        inputs = [x if hasattr(x, "shape") else jnp.asarray(x) for x in inputs]  # numbers in the jaxpr's text
        outputs = _listed(rules[primitive.name](bind, *inputs, **params))
        _check(primitive.name, outputs, equation.outvars)
        return outputs
    return _listed(bind(*inputs, **params))


def _bind(primitive, *inputs, **params):
    # What a custom rule's equation holds must be made functions again: positional ones before jax 0.12.
    params = primitive.get_bind_params(params)
    functions, params = params if isinstance(params, tuple) else ((), params)
    return primitive.bind(*functions, *inputs, **params)


def _listed(outputs):
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def _affected(equation, rules):
    """Whether a rule may apply to an equation or inside it. What is not affected is left as it is."""
    name = equation.primitive.name  # the derivatives of a custom function are seen only when they are needed
    return (
        name in rules
        or name in CUSTOM
        or any(_affected(inside, rules) for _, inner in subjaxprs(equation) for inside in _equations(inner))
        or _hides(equation, rules)
    )


def _hides(equation, rules):
    """Whether a rule may apply in a jaxpr that `subjaxprs` does not see: an attribute of an object among the parameters."""
    return bool(rules) and any(
        _affected(inside, rules)
        for value in equation.params.values()
        if not _is_jaxpr(value)
        for inner in getattr(value, "__dict__", {}).values()
        if _is_jaxpr(inner)
        for inside in _equations(inner)
    )


def _check(name, outputs, variables):
    got = [(jax.typeof(value).shape, jax.typeof(value).dtype) for value in outputs]
    wanted = [(variable.aval.shape, variable.aval.dtype) for variable in variables]
    if got != wanted:
        raise TypeError(
            f"the rule for {name} must return {wanted} (shapes and dtypes), but it returned {got}"
        )


def _rewrite(jaxpr, rules, where):
    """The same jaxpr with the rules put in."""
    bare, consts = _open(jaxpr)
    if not all(type(variable.aval) is ShapedArray for variable in bare.invars):
        raise NotImplementedError(f"cannot interpret {where}: it takes references, not arrays")
    inputs = [_shape(variable.aval) for variable in bare.invars]
    return jax.make_jaxpr(lambda *inputs: _evaluate(bare, consts, inputs, rules))(*inputs)


def _hoist(jaxpr):
    """The same jaxpr with its constants as further inputs, in front, and those constants."""
    bare, consts = _open(jaxpr)
    size = len(consts)
    inputs = [*consts, *(_shape(variable.aval) for variable in bare.invars)]
    return jax.make_jaxpr(lambda *inputs: _evaluate(bare, inputs[:size], inputs[size:], {}))(*inputs), consts


def _shape(aval):
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=getattr(aval, "weak_type", False))


def _replace(params, name, jaxpr):
    name, _, index = name.removesuffix("]").partition("[")
    if not index:
        return {**params, name: jaxpr}
    items = list(params[name])
    items[int(index)] = jaxpr
    kind = type(params[name])
    return {**params, name: kind(*items) if hasattr(kind, "_fields") else kind(items)}


def _shard_map(equation, inputs, rules):
    """Maps anew: the body must be traced where its axis names are known."""
    params = equation.params
    body = functools.partial(_evaluate, *_open(params["jaxpr"]), rules=rules)
    return jax.shard_map(
        lambda *inputs: body(inputs=inputs),
        mesh=params["mesh"],
        in_specs=params["in_specs"],
        out_specs=list(params["out_specs"]),
        check_vma=params["check_vma"],
        axis_names=params.get("newly_manual_axes", params.get("manual_axes")),  # renamed in 0.12
    )(*inputs)


def _custom_rule(equation, inputs, rules):
    """Makes a function with its own rule for derivatives anew: function and rule are both interpreted."""

    def original(*inputs):
        return _listed(_bind(equation.primitive, *inputs, **equation.params))

    def function(*inputs):
        return _evaluate(*_open(equation.params["call_jaxpr"]), inputs, rules)

    if equation.primitive.name == "custom_jvp_call":
        new = jax.custom_jvp(function)
        new.defjvp(interpret(functools.partial(jax.jvp, original), rules))
    else:
        new = jax.custom_vjp(function)
        new.defvjp(
            interpret(functools.partial(jax.vjp, original), rules),
            lambda pullback, cotangents: interpret(pullback, rules)(cotangents),
        )
    return new(*inputs)


# Two interpreters


def round_products(fun, dtype=jnp.bfloat16):
    """Returns ``fun`` with the inputs of every product rounded to ``dtype``: a TPU's default, rehearsed.

    A TPU multiplies float32 matrices by rounding their entries to bfloat16 and adding up the products in
    float32, unless a product asks for more: ``precision="highest"``, or `jax.default_matmul_precision`. A CPU
    does not round. So does this function: inputs of each ``dot_general`` and ``conv_general_dilated`` in
    float32 (and float16) are rounded, but keep their dtype; a product at the highest precision, and any other dtype,
    is left alone.

    To rehearse a gradient, round the gradient's products: ``round_products(jax.grad(loss))``.

    >>> import jax.numpy as jnp
    >>> def product(x, y):
    ...     return jnp.dot(x, y)
    >>> x, y = jnp.float32([1.001]), jnp.float32([1.0])
    >>> print(product(x, y), round_products(product)(x, y))
    1.001 1.0
    """

    def rounded(bind, left, right, *, precision, **params):
        if not asks_for_highest(precision):
            left, right = round_to(left, dtype), round_to(right, dtype)
        return bind(left, right, precision=precision, **params)

    return interpret(fun, {"dot_general": rounded, "conv_general_dilated": rounded})


def asks_for_highest(precision):
    """Whether the ``precision`` of a product, in any form that an equation may hold, is the highest.

    >>> import jax
    >>> asks_for_highest((jax.lax.Precision.HIGHEST, jax.lax.Precision.HIGHEST)), asks_for_highest(None)
    (True, False)
    """
    pair = precision if isinstance(precision, tuple) else (precision, precision)
    exact = (jax.lax.Precision.HIGHEST, jax.lax.DotAlgorithmPreset.F32_F32_F32)
    return all(item in exact for item in pair)


def round_to(x, dtype):
    """Rounds float32 or float16 entries to the nearest number of ``dtype``, and keeps their own dtype."""
    if x.dtype not in (jnp.float32, jnp.float16) or jnp.finfo(x.dtype).nmant <= jnp.finfo(dtype).nmant:
        return x
    if x.dtype == jnp.float16:  # has fewer exponents than bfloat16: only the mantissa is rounded
        exponent_bits = 5
    else:
        exponent_bits = jnp.finfo(dtype).nexp
    # Not `x.astype(dtype).astype(x.dtype)`: XLA may drop such a pair, as it loses precision.
    return jax.lax.reduce_precision(x, exponent_bits, jnp.finfo(dtype).nmant)


def limit_loops(fun, limit):
    """Returns ``fun`` with loops that cannot run for ever.

    No ``while_loop`` runs for more than ``limit`` iterations; this holds also for a ``fori_loop`` and for a loop
    inside another, inside ``jit``, ``scan`` or a branch. Once a loop has reached the limit, all loops that begin
    later stop at once, and `LoopLimitError` is raised when the call is over. Python cannot interrupt XLA, so
    this is the only way to stop a compiled loop.

    Call the result with arrays. Inside another `jax.jit` its loops are limited, but nobody is told.

    >>> import jax
    >>> def endless(x):
    ...     return jax.lax.while_loop(lambda x: x < 1.0, lambda x: x / 2, x)
    >>> limit_loops(endless, 1000)(2.0)
    Array(2., dtype=float32, weak_type=True)
    >>> limit_loops(endless, 1000)(0.5)
    Traceback (most recent call last):
        ...
    mlax_tutorial.inspection.jaxprs.LoopLimitError: a loop did not end within 1,000 iterations
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    message = f"a loop did not end within {limit:,} iterations"

    @functools.wraps(fun)
    def limited(*args, **kwargs):
        stopped = []  # on the host: filled by the device through callbacks

        def allowance(going):
            return np.full(going.shape, 0 if stopped else limit, np.int32)

        def report(going):
            if np.any(going):
                stopped.append(True)

        def limited_while(bind, *inputs, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr, **params):
            # The carry gets two entries in front: iterations done, and iterations allowed. Both have the shape
            # of the condition: under vmap, each example counts for itself.
            cond = core.jaxpr_as_fun(cond_jaxpr)
            body = core.jaxpr_as_fun(body_jaxpr)
            cond_consts, body_consts, carry = _split(inputs, cond_nconsts, body_nconsts)
            (going,) = cond(*cond_consts, *carry)
            counter = jax.ShapeDtypeStruct(jnp.shape(going), jnp.int32)
            allowed = jax.pure_callback(allowance, counter, going, vmap_method="broadcast_all")

            def new_cond(*inputs):
                consts, (done, allowed), carry = _split(inputs, cond_nconsts, 2)
                return cond(*consts, *carry)[0] & (done < allowed)

            def new_body(*inputs):
                consts, (done, allowed), carry = _split(inputs, body_nconsts, 2)
                return [done + 1, allowed, *body(*consts, *carry)]

            def closed(function, inner, consts):
                inputs = [_shape(variable.aval) for variable in _open(inner)[0].invars]
                return jax.make_jaxpr(function)(*inputs[:consts], counter, counter, *inputs[consts:])

            _, _, *carry = bind(
                *[*cond_consts, *body_consts, jnp.zeros_like(allowed), allowed, *carry],
                cond_nconsts=cond_nconsts,
                cond_jaxpr=closed(new_cond, cond_jaxpr, cond_nconsts),
                body_nconsts=body_nconsts,
                body_jaxpr=closed(new_body, body_jaxpr, body_nconsts),
                **params,
            )
            (going,) = cond(*cond_consts, *carry)
            jax.debug.callback(report, going)
            return carry

        def limited_scan(bind, *inputs, length, jaxpr, **params):
            # A fori_loop with fixed bounds is recorded as a scan without inputs to scan over.
            body = _open(jaxpr)[0]
            sliced = any(jnp.shape(x) != v.aval.shape for x, v in zip(inputs, body.invars, strict=True))
            if length > limit and not sliced:
                raise LoopLimitError(f"a loop of {length:,} iterations goes over the limit of {limit:,}")
            return bind(*inputs, length=length, jaxpr=jaxpr, **params)

        outputs = interpret(fun, {"while": limited_while, "scan": limited_scan})(*args, **kwargs)
        jax.effects_barrier()
        if stopped:
            raise LoopLimitError(message)
        return outputs

    return limited


def _split(items, *sizes):
    """Cuts a list into pieces of the given sizes, and the rest."""
    pieces = []
    for size in sizes:
        pieces.append(items[:size])
        items = items[size:]
    return [*pieces, items]
