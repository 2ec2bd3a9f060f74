"""Right answers of unusual style to the exercises of Welcome and Tracing: each of them passes."""

import collections
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.exercises import tracing, welcome
from mlax_tutorial.inspection import jaxprs

from .right_answers import PASSED, Answers

right = Answers(PASSED)


# double


@right(welcome.double)
def adds(x):
    return x + x


@right(welcome.double)
def writes_into_copies(x):
    for i in range(len(x)):
        x = x.at[i].multiply(2)  # NumPy arrays have no `at`
    return x


@right(welcome.double)
def stacks(x):
    return jnp.stack([x, x]).sum(0)


right(welcome.double)(jax.jit(lambda x: 2 * x))
right(welcome.double)(functools.wraps(adds)(functools.partial(jnp.multiply, 2)))


# recorded

COUNTS = {"a": 3, "b": 1, "c": 2, "d": 1, "e": 0}

right(tracing.recorded)({name: np.int64(count) for name, count in COUNTS.items()})
right(tracing.recorded)({name: jnp.array(count) for name, count in COUNTS.items()})
right(tracing.recorded)(collections.OrderedDict(reversed(COUNTS.items())))


# mystery


@right(tracing.mystery)
def unit_vector(x, y):
    return y * (x / jnp.linalg.norm(x))


@right(tracing.mystery)
def reciprocal_root(x, y):
    return y * x * lax.rsqrt(jnp.vdot(x, x))


@right(tracing.mystery)
def element_by_element(x, y):
    return jnp.stack([b * a / jnp.sqrt(sum(x * x)) for a, b in zip(x, y, strict=True)])


@right(tracing.mystery)
def line_by_line(x, y):
    f = lax.sqrt(lax.reduce_sum(lax.mul(x, x), axes=(0,)))
    return lax.div(lax.mul(y, x), lax.broadcast_in_dim(f, x.shape, ()))


# shapes


@right(tracing.shapes)
def flattened_and_built_again(function, *specs):
    leaves, tree = jax.tree.flatten(jax.eval_shape(function, *specs))
    return jax.tree.unflatten(tree, [leaf.shape for leaf in leaves])


@right(tracing.shapes)
def returned_with_the_jaxpr(function, *specs):
    _, results = jax.make_jaxpr(function, return_shape=True)(*specs)
    return jax.tree.map(jnp.shape, results)


@right(tracing.shapes)
def asked_of_the_lowered(function, *specs):
    return jax.tree.map(lambda leaf: leaf.shape, jax.jit(function).lower(*specs).out_info)


@right(tracing.shapes)
def taken_down_while_tracing(function, *specs):
    found = []
    jax.eval_shape(lambda *inputs: found.append(jax.tree.map(jnp.shape, function(*inputs))), *specs)
    return found[0]


# remember


@right(tracing.remember)
@functools.partial(jax.jit, inline=True)
def with_options(x):
    y = lax.sin(x)
    return y * 2, y


@right(tracing.remember)
@jax.jit
def in_a_list_of_its_own(x):
    kept = []
    y = jnp.sin(x)
    kept.append(y)
    return 2 * y, kept[0]


@right(tracing.remember)
@jax.jit
def with_a_note_that_is_no_tracer(x):
    y = jnp.sin(x)
    NOTES.append(y.shape)
    return 2 * y, y


NOTES = []


# dead


@right(tracing.dead)
def until_nothing_changes(jaxpr):
    live, before = set(), None
    while live != before:
        before = live
        needed = [*jaxpr.outvars, *(v for i in live for v in jaxpr.eqns[i].invars)]
        live = {i for i, e in enumerate(jaxpr.eqns) if any(v is w for v in e.outvars for w in needed)}
    return [i for i in range(len(jaxpr.eqns)) if i not in live]


def by_recursion(jaxpr):
    makers, live = {id(v): i for i, e in enumerate(jaxpr.eqns) for v in e.outvars}, set()

    def visit(variable):
        i = makers.get(id(variable))
        if i is not None and i not in live:
            live.add(i)
            for v in jaxpr.eqns[i].invars:
                visit(v)

    for v in jaxpr.outvars:
        visit(v)
    return set(range(len(jaxpr.eqns))) - live


right(tracing.dead)(by_recursion)
right(tracing.dead)(lambda jaxpr: sorted(by_recursion(jaxpr), reverse=True))
right(tracing.dead)(lambda jaxpr: tuple(by_recursion(jaxpr)))
right(tracing.dead)(lambda jaxpr: np.array(list(by_recursion(jaxpr)), int))


# flops


def depth(equation):
    (contracted, _), _ = equation.params["dimension_numbers"]
    return math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)


@right(tracing.flops)
def with_a_stack(jaxpr):
    todo, total = [(jaxpr, 1)], 0
    while todo:
        inner, times = todo.pop()
        for e in getattr(inner, "jaxpr", inner).eqns:
            if e.primitive is lax.dot_general_p:
                total += times * 2 * e.outvars[0].aval.size * depth(e)
            rounds = times * (e.params["length"] if e.primitive.name == "scan" else 1)
            todo += [(held, rounds) for _, held in jaxprs.subjaxprs(e)]
    return total


@right(tracing.flops)
def by_cases(jaxpr):
    total = 0
    for e in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        match e.primitive.name:
            case "dot_general":
                (left, right), (batch, _) = e.params["dimension_numbers"]
                x, w = (variable.aval.shape for variable in e.invars)
                rows = math.prod(n for axis, n in enumerate(x) if axis not in left)
                kept = [n for axis, n in enumerate(w) if axis not in right]
                total += 2 * rows * math.prod(kept) * depth(e) // math.prod(x[axis] for axis in batch)
            case "scan":
                total += e.params["length"] * by_cases(e.params["jaxpr"])
            case _:
                total += sum(by_cases(held) for _, held in jaxprs.subjaxprs(e))
    return total


right(tracing.flops)(lambda jaxpr: np.int64(with_a_stack(jaxpr)))
right(tracing.flops)(lambda jaxpr: float(with_a_stack(jaxpr)))


test_right_answers_pass = right.test()
