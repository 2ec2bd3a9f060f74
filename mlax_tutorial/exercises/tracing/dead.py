"""Find dead code."""

import operator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(jaxpr):
    needed = {variable for variable in jaxpr.outvars if not hasattr(variable, "val")}
    unused = []
    for number, equation in reversed(list(enumerate(jaxpr.eqns))):
        if needed.isdisjoint(equation.outvars) and not equation.effects:
            unused.append(number)
        else:
            needed.update(variable for variable in equation.invars if not hasattr(variable, "val"))
    return sorted(unused)


def check(dead):
    def chain(x):
        a = lax.sin(x)
        b = lax.cos(a)  # needed by c alone
        lax.exp(b)  # needed by nobody
        return lax.mul(a, lax.tanh(x)), a

    def first(x):
        lax.cos(x)
        return lax.exp(lax.sin(x))

    def all_used(x):
        return lax.sin(lax.cos(x))

    def all_dead(x):
        lax.sin(lax.cos(x))
        return x

    def long_chain(x):
        lax.exp(lax.tanh(lax.cos(lax.exp(lax.sin(x)))))
        return lax.sin(x)

    def literals(x):
        lax.mul(x, 3.0)
        return lax.mul(x, 2.0)

    def first_output(x):
        values, _ = lax.top_k(x, 2)
        return values

    def second_output(x):
        _, indices = lax.top_k(x, 2)
        return indices

    def two_outputs(x):
        lax.tanh(x)
        return lax.sin(x), lax.cos(x)

    def literal_output(x):
        lax.exp(x)
        return lax.sin(x), 2.0

    def prints(x):
        y = lax.sin(x)  # needed by the print
        jax.debug.print("{y}", y=y)
        lax.cos(x)
        return lax.exp(x)

    def prints_inside(x):
        jax.jit(lambda x: jax.debug.print("{x}", x=x))(lax.tanh(x))
        return x

    def dead_inside(x):
        def inner(x):
            lax.cos(x)
            return lax.sin(x)

        return lax.exp(jax.jit(inner)(x))

    cases = {
        "lax.cos(x); return lax.exp(lax.sin(x))": first,
        "return lax.sin(lax.cos(x))": all_used,
        "a = sin(x); b = cos(a); exp(b); return a * tanh(x), a": chain,
        "exp(tanh(cos(exp(sin(x))))); return sin(x)": long_chain,
        "lax.sin(lax.cos(x)); return x": all_dead,
        "lax.mul(x, 3.0); return lax.mul(x, 2.0)": literals,
        "values, indices = lax.top_k(x, 2); return values": first_output,
        "values, indices = lax.top_k(x, 2); return indices": second_output,
        "lax.tanh(x); return lax.sin(x), lax.cos(x)": two_outputs,
        "lax.exp(x); return lax.sin(x), 2.0": literal_output,
        "y = sin(x); jax.debug.print(y); cos(x); return exp(x)": prints,
        "jax.jit(a function that prints)(tanh(x)); return x": prints_inside,
        "return exp(jax.jit(a function with a dead equation)(x))": dead_inside,
    }
    for text, function in cases.items():
        jaxpr = jax.make_jaxpr(function)(jnp.ones(3)).jaxpr
        equations, expected = list(jaxpr.eqns), solution(jaxpr)
        said, about = {
            literals: ("Among the inputs stand literals, too: here 3.0 and 2.0.", "Literal"),
            literal_output: ("An output may be a literal, too: here 2.0 is one.", ""),
        }.get(function, ("", ""))
        with checks.says(said, about):
            got = dead(jaxpr)
        if list(jaxpr.eqns) != equations:
            raise Failed(
                "Your function changes the jaxpr that it is given. Leave it as it is, and return the positions.",
                input=text,
            )
        positions = _positions(got, text, expected)
        if positions != expected:
            several = function in (first_output, second_output)
            reason = _why_not_dead(equations, positions, expected, function is first, several)
            if function is two_outputs and set(positions) in ({0, 1}, {0, 2}):
                reason = (
                    "The program has two outputs, and both are asked for: look at all of `jaxpr.outvars`."
                )
            if function in (prints, prints_inside) and (
                kept := [n for n in positions if n in range(len(equations)) and n not in expected]
            ):
                reason = (
                    f"Equation {kept[-1]} (`{equations[kept[-1]].primitive.name}`) must stay: an equation with effects is "
                    "not dropped, whether its outputs are needed or not, and so it needs its inputs. Look at "
                    "`equation.effects`."
                )
            if function is dead_inside:
                reason = "Do not look inside equations: positions are those in `jaxpr.eqns`, and here each of them is needed."
            raise Failed(reason, input=text, expected=expected, got=got)


def _positions(got, text, expected):
    shown = {"input": text, "expected": expected, "got": got}
    checks.returned(got, **shown)
    try:
        found = list(got)
        if found and all(isinstance(item, (bool, np.bool_)) for item in found):
            raise Failed("Return the positions of the dead equations, not True or False for each.", **shown)
        return sorted(operator.index(item) for item in found)
    except TypeError:
        raise Failed(
            "Return a list of whole numbers, of type `int`: the positions in `jaxpr.eqns`.", **shown
        ) from None


def _why_not_dead(equations, positions, expected, is_first, several):
    count = len(equations)
    if is_first and positions == [n for n in range(count) if n not in expected]:
        return "You list the equations that are needed. Asked for are the others."
    if is_first and positions == [n + 1 for n in expected]:
        return "Positions are counted from 0: `jaxpr.eqns[0]` is the first equation."
    if is_first and positions == sorted(count - 1 - n for n in expected):
        return "You count from the end. Position 0 is that of the first equation, `jaxpr.eqns[0]`."
    if outside := [n for n in positions if not 0 <= n < count]:
        return f"There is no position {outside[0]}: here they go from 0 to {count - 1}."
    if len(set(positions)) < len(positions):
        return "A position stands in your list more than once."
    if wrong := sorted(set(positions) - set(expected)):
        if several:
            return "An equation is needed if *any* of its outputs is; here one of two is."
        name = equations[wrong[0]].primitive.name
        return f"Equation {wrong[0]} (`{name}`) is needed: follow where its results go, up to the outputs."
    number = min(set(expected) - set(positions))
    name = equations[number].primitive.name
    if any(made is used for made in equations[number].outvars for e in equations for used in e.invars):
        return (
            f"Equation {number} (`{name}`) is dead, too: what uses its result is itself not needed. "
            "Go through the equations from the last to the first."
        )
    return f"Equation {number} (`{name}`) is dead, and you do not list it."


exercise = Exercise(
    title="Find dead code",
    stars=2,
    minutes=15,
    why="This is the first thing that is done to your program: what no output and no effect needs is dropped before it runs.",
    hints=(
        "Which variables are needed at the very end? Those in `jaxpr.outvars`. Which equation makes them?",
        "Go backward with a set of needed variables: an equation that makes one of them needs all its inputs.",
        "An equation with effects, such as a print, is needed in any case: `equation.effects` is not empty.",
        "Literals, such as 2.0, have a `val` and cannot stand in a set: leave them out.",
    ),
    solution=solution,
    check=check,
)
