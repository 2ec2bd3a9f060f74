"""Answers to the exercise tracing.flops."""

import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.exercises.tracing.flops import exercise, solution
from mlax_tutorial.inspection import jaxprs
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("as many additions")
def without_additions(jaxpr):
    return solution(jaxpr) // 2


def of(equation):
    if equation.primitive.name != "dot_general":
        return 0
    (contracted, _), _ = equation.params["dimension_numbers"]
    left = equation.invars[0].aval.shape
    return 2 * int(np.prod([left[axis] for axis in contracted])) * equation.outvars[0].aval.size


@answers.wrong("go into it")
def outer(jaxpr):
    return sum(of(equation) for equation in jaxpr.eqns)


@answers.wrong("go into it")
def of_scans_alone(jaxpr):
    total = outer(jaxpr)
    for equation in jaxpr.eqns:
        if equation.primitive.name == "scan":
            total += equation.params["length"] * of_scans_alone(equation.params["jaxpr"].jaxpr)
    return total


@answers.wrong("runs `length` times")
def each_body_once(jaxpr):
    return sum(of(equation) for _, equation in jaxprs.walk(jaxpr))


@answers.wrong("has to call itself")
def one_level(jaxpr):
    total = outer(jaxpr)
    for equation in jaxpr.eqns:
        times = equation.params["length"] if equation.primitive.name == "scan" else 1
        for _, inner in jaxprs.subjaxprs(equation):
            total += times * each_body_once(inner)
    return total


@answers.wrong("The rounds multiply")
def rounds_of_the_last(jaxpr, times=1):
    total = times * outer(jaxpr)
    for equation in jaxpr.eqns:
        for _, inner in jaxprs.subjaxprs(equation):
            total += rounds_of_the_last(inner, equation.params.get("length", 1))
    return total


@answers.wrong("hold the same jaxpr")
def each_jaxpr_once(jaxpr):
    total, seen = outer(jaxpr), []
    for equation in jaxpr.eqns:
        times = equation.params.get("length", 1)
        for _, inner in jaxprs.subjaxprs(equation):
            if not any(inner is other for other in seen):
                seen.append(inner)
                total += times * each_jaxpr_once(inner)
    return total


@answers.wrong("Only `dot_general` counts")
def all_equations(jaxpr):
    additions = sum(e.outvars[0].aval.size for e in jaxpr.eqns if e.primitive.name == "add")
    return solution(jaxpr) + additions


def of_matrices(equation):
    (m, k), (_, n) = (variable.aval.shape for variable in equation.invars)
    return 2 * m * k * n


def products(cost):
    def count(jaxpr):
        return sum(cost(equation) for equation in jaxpr.eqns if equation.primitive.name == "dot_general")

    return count


answers.wrong("It happens with a batch of products")(products(of_matrices))


def batch_twice(equation):
    ((left_axes, right_axes), _) = equation.params["dimension_numbers"]
    left, right = (variable.aval.shape for variable in equation.invars)
    return (
        2 * int(np.prod(left)) * int(np.prod([n for axis, n in enumerate(right) if axis not in right_axes]))
    )


answers.wrong("counts twice: both inputs have it, and the result")(products(batch_twice))


def nested_products(cost):
    def count(jaxpr):
        total = 0
        for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
            if equation.primitive.name == "dot_general":
                total += cost(*(variable.aval for variable in equation.invars))
            rounds = equation.params["length"] if equation.primitive.name == "scan" else 1
            total += rounds * sum(count(inner) for _, inner in jaxprs.subjaxprs(equation))
        return total

    return count


answers.wrong("The axes that are left")(nested_products(lambda x, w: 2 * x.size * w.shape[-1]))


@answers.wrong("It happens with a matrix and a vector")
def last_axis_that_is_left(jaxpr):
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (_, summed), (_, batch) = equation.params["dimension_numbers"]
            shape = equation.invars[1].aval.shape
            (n,) = (size for axis, size in enumerate(shape) if axis not in (*summed, *batch))
            total += 2 * equation.invars[0].aval.size * n
    return total


@answers.wrong("This counts products")
def per_equation(jaxpr):
    return len(jaxpr.eqns)


@answers.wrong("return too early")
def early(jaxpr):
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            return of(equation)
    return 0


answers.wrong("k is missing")(products(lambda e: 2 * e.outvars[0].aval.size))
answers.wrong("k counts twice")(products(lambda e: 2 * e.invars[0].aval.size * e.invars[1].aval.size))
answers.wrong("axes are summed over")(
    products(lambda e: 2 * e.outvars[0].aval.size * e.invars[0].aval.shape[-1])
)
answers.wrong("axes are summed over")(
    products(lambda e: 2 * e.outvars[0].aval.size * e.invars[1].aval.shape[0])
)
answers.wrong("You find no product")(lambda jaxpr: 0)
answers.wrong("int32 ends")(lambda jaxpr: jnp.int32(solution(jaxpr)))
answers.wrong("Return a number")(lambda jaxpr: [solution(jaxpr)])


# Right ones of unusual style, and wrong ones that look right


def depth(equation):
    (contracted, _), _ = equation.params["dimension_numbers"]
    return math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)


@answers.right
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


@answers.right
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


answers.right(lambda jaxpr: np.int64(with_a_stack(jaxpr)))
answers.right(lambda jaxpr: float(with_a_stack(jaxpr)))


answers.equivalent(
    "equation.outvars[0] -> equation.outvars[-1]",
    because="a product has one result",
)
