"""Answers to the exercise transformations.draws."""

import math

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.transformations.draws import exercise, solution
from mlax_tutorial.inspection import costs, jaxprs
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Everything:
    """The names of all that begins with `random`, apart from what only handles keys."""

    def __contains__(self, name):
        return name.startswith("random") and name.split("_")[1] not in (
            "split",
            "seed",
            "wrap",
            "unwrap",
            "fold",
        )


def by(size=None, names=("random_bits",), loops=True, branch=max, enters=lambda name: True):
    """Wrong answers: something else is counted, or not everything."""
    size = size or (lambda equation: equation.outvars[0].aval.size)

    def wrong(function, *args):
        def count(jaxpr):
            total = 0
            for equation in jaxpr.eqns:
                name = equation.primitive.name
                if name in names:
                    total += size(equation)
                programs = [program for _, program in jaxprs.subjaxprs(equation)] if enters(name) else []
                inner = [count(getattr(program, "jaxpr", program)) for program in programs]
                times = equation.params.get("length", 1) if loops else 1
                total += branch(inner) if name == "cond" and inner else times * sum(inner)
            return total

        return count(jax.make_jaxpr(function)(*args).jaxpr)

    return wrong


answers.wrong("Each element of the result of `random_bits` is a draw")(by(lambda equation: 1))
answers.wrong("To split a key draws nothing")(by(names=("random_bits", "random_split")))
answers.wrong("`random_gamma` is left out")(by(names=("random_bits", "random_gamma")))
answers.wrong("`random_gamma` is left out")(by(names=Everything()))


@answers.wrong("To split a key draws nothing")
def results(function, *args):
    return sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(function, *args)))


answers.wrong("None was found")(by(enters=lambda name: False))


@answers.wrong("not which has most work")
def by_work(function, *args):
    return sum(
        item.times * item.equation.outvars[0].aval.size
        for item in costs.itemize(jax.make_jaxpr(function)(*args))
        if item.equation.primitive.name == "random_bits"
    )


answers.wrong("whatever equation holds a program")(
    by(enters=lambda name: name in ("jit", "pjit", "scan", "cond"))
)
answers.wrong("the parameter `shape` is still that of one example")(
    by(lambda equation: math.prod(equation.params["shape"]))
)
answers.wrong("recorded once, and runs `length` times")(by(loops=False))


@answers.wrong("The rounds multiply")
def rounds_of_the_last(function, *args):
    def count(jaxpr, times):
        total = 0
        for equation in jaxpr.eqns:
            if equation.primitive.name == "random_bits":
                total += times * equation.outvars[0].aval.size
            inner = [
                count(getattr(p, "jaxpr", p), equation.params.get("length", times))
                for _, p in jaxprs.subjaxprs(equation)
            ]
            total += max(inner) if equation.primitive.name == "cond" else sum(inner)
        return total

    return count(jax.make_jaxpr(function)(*args).jaxpr, 1)


answers.wrong("Only one branch runs")(by(branch=sum))
answers.wrong("Only one branch runs")(by(branch=min))
answers.wrong("a `cond` with more than two branches")(by(branch=lambda inner: max(inner[0], inner[-1])))
answers.wrong("of however many bits")(
    by(lambda equation: equation.outvars[0].aval.size * equation.outvars[0].aval.dtype.itemsize // 4)
)


@answers.wrong("only shape and dtype are known")
def computed(function, *args):
    drawn = []

    def rule(bind, *inputs, **params):
        drawn.append(bind(*inputs, **params))
        return drawn[-1]

    jaxprs.interpret(function, {"random_bits": rule})(*args)
    return sum(bits.size for bits in drawn)


@answers.wrong("Return a Python number")
def array(function, *args):
    return jnp.asarray(solution(function, *args))


@answers.wrong("`return` missing")
def no_return(function, *args):
    solution(function, *args)


# Right ones of unusual style, and wrong ones that look right


@answers.right
def with_paths(function, *args):
    def total(jaxpr, times=1):
        found = 0
        for equation in jaxpr.eqns:
            inside = [getattr(inner, "jaxpr", inner) for _, inner in jaxprs.subjaxprs(equation)]
            match equation.primitive.name:
                case "random_bits":
                    found += times * math.prod(equation.outvars[0].aval.shape)
                case "cond":
                    found += max(total(inner, times) for inner in inside)
                case "scan":
                    found += total(inside[0], times * equation.params["length"])
                case _:
                    found += sum(total(inner, times) for inner in inside)
        return found

    return total(jax.make_jaxpr(function)(*args).jaxpr)


@answers.wrong()
def by_walking(function, *args):
    jaxpr = jax.make_jaxpr(function)(*args)
    return sum(e.outvars[0].aval.size for _, e in jaxprs.walk(jaxpr) if e.primitive.name == "random_bits")


@answers.wrong()
def by_interpreting(function, *args):
    drawn = []

    def rule(bind, *inputs, **params):
        bits = bind(*inputs, **params)
        drawn.append(bits.size)
        return bits

    jax.eval_shape(jaxprs.interpret(function, {"random_bits": rule}), *args)
    return sum(drawn)


@answers.wrong("`random_gamma` is left out")
def one_for_each_gamma(function, *args):
    def count(jaxpr):
        total = 0
        for equation in jaxpr.eqns:
            name = equation.primitive.name
            inner = [count(getattr(p, "jaxpr", p)) for _, p in jaxprs.subjaxprs(equation)]
            if name == "random_bits":
                total += equation.outvars[0].aval.size
            elif name == "random_gamma":
                total += 1
            elif name == "scan":
                total += equation.params["length"] * sum(inner)
            else:
                total += max(inner, default=0) if name == "cond" else sum(inner)
        return total

    return count(jax.make_jaxpr(function)(*args).jaxpr)


answers.equivalent(
    "equation.outvars[0] -> equation.outvars[-1]",
    because="`random_bits` has one result",
)
