"""Answers to the exercise tracing.dead."""

import functools

import numpy as np

from mlax_tutorial.exercises.tracing.dead import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("you do not list it")
def none(jaxpr):
    return []


@answers.wrong("itself not needed")
def one_level(jaxpr):
    used = {v for e in jaxpr.eqns for v in e.invars if not hasattr(v, "val")}
    used |= {v for v in jaxpr.outvars if not hasattr(v, "val")}
    return [number for number, e in enumerate(jaxpr.eqns) if used.isdisjoint(e.outvars)]


@answers.wrong("follow where its results go")
def only_last(jaxpr):
    return [number for number, e in enumerate(jaxpr.eqns) if not set(e.outvars) & set(jaxpr.outvars)]


@answers.wrong("*any* of its outputs")
def all_outputs(jaxpr):
    needed, unused = set(jaxpr.outvars), []
    for number in reversed(range(len(jaxpr.eqns))):
        equation = jaxpr.eqns[number]
        if needed.issuperset(equation.outvars):
            needed.update(v for v in equation.invars if not hasattr(v, "val"))
        else:
            unused.append(number)
    return unused


@answers.wrong("*any* of its outputs")
def first_output(jaxpr):
    needed, unused = {v for v in jaxpr.outvars if not hasattr(v, "val")}, []
    for number in reversed(range(len(jaxpr.eqns))):
        if jaxpr.eqns[number].outvars[0] in needed:
            needed.update(v for v in jaxpr.eqns[number].invars if not hasattr(v, "val"))
        else:
            unused.append(number)
    return unused


@answers.wrong("itself not needed")
def two_levels(jaxpr):
    live = jaxpr.eqns
    for _ in range(2):
        used = {v for v in jaxpr.outvars if not hasattr(v, "val")}
        used |= {v for e in live for v in e.invars if not hasattr(v, "val")}
        live = [e for e in live if not used.isdisjoint(e.outvars)]
    return [number for number, e in enumerate(jaxpr.eqns) if not any(e is other for other in live)]


@answers.wrong("follow where its results go")
def forwards(jaxpr):
    needed, unused = {v for v in jaxpr.outvars if not hasattr(v, "val")}, []
    for number, equation in enumerate(jaxpr.eqns):
        if needed.isdisjoint(equation.outvars):
            unused.append(number)
        else:
            needed.update(v for v in equation.invars if not hasattr(v, "val"))
    return unused


@answers.wrong("Among the inputs stand literals")
def literal_inputs(jaxpr):
    needed, unused = {v for v in jaxpr.outvars if not hasattr(v, "val")}, []
    for number in reversed(range(len(jaxpr.eqns))):
        if needed.isdisjoint(jaxpr.eqns[number].outvars):
            unused.append(number)
        else:
            needed.update(jaxpr.eqns[number].invars)
    return unused


def with_outputs(outputs, jaxpr):
    needed, unused = outputs(jaxpr), []
    for number in reversed(range(len(jaxpr.eqns))):
        if needed.isdisjoint(jaxpr.eqns[number].outvars):
            unused.append(number)
        else:
            needed.update(v for v in jaxpr.eqns[number].invars if not hasattr(v, "val"))
    return unused


answers.wrong("may be a literal")(functools.partial(with_outputs, lambda jaxpr: set(jaxpr.outvars)))
answers.wrong("two outputs, and both")(functools.partial(with_outputs, lambda jaxpr: {jaxpr.outvars[0]}))
answers.wrong("follow where its results go")(
    functools.partial(with_outputs, lambda jaxpr: {*jaxpr.outvars[-1:]})
)


@answers.wrong("changes the jaxpr")
def removed(jaxpr):
    unused = solution(jaxpr)
    for number in reversed(unused):
        del jaxpr.eqns[number]
    return unused


@answers.wrong("You list the equations that are needed")
def live(jaxpr):
    return [number for number in range(len(jaxpr.eqns)) if number not in solution(jaxpr)]


answers.wrong("counted from 0")(lambda jaxpr: [number + 1 for number in solution(jaxpr)])
answers.wrong("count from the end")(
    lambda jaxpr: [len(jaxpr.eqns) - 1 - number for number in solution(jaxpr)]
)
answers.wrong("There is no position")(lambda jaxpr: [number - len(jaxpr.eqns) for number in solution(jaxpr)])
answers.wrong("more than once")(lambda jaxpr: 2 * solution(jaxpr))
answers.wrong("not True or False")(lambda jaxpr: [n in solution(jaxpr) for n in range(len(jaxpr.eqns))])
answers.wrong("Return a list of whole numbers")(
    lambda jaxpr: [jaxpr.eqns[number] for number in solution(jaxpr)]
)
answers.wrong("Return a list of whole numbers")(lambda jaxpr: len(solution(jaxpr)))


@answers.wrong("Do not look inside equations")
def inside_as_well(jaxpr):
    found = solution(jaxpr)
    for equation in jaxpr.eqns:
        if "jaxpr" in equation.params:
            inner = equation.params["jaxpr"]
            found = found + inside_as_well(getattr(inner, "jaxpr", inner))
    return found


# Right ones of unusual style, and wrong ones that look right


@answers.wrong("an equation with effects")
def drops_effects(jaxpr):
    return sorted(set(by_recursion(jaxpr)) | {i for i, e in enumerate(jaxpr.eqns) if not e.outvars})


answers.wrong("an equation with effects")(
    functools.partial(with_outputs, lambda jaxpr: {v for v in jaxpr.outvars if not hasattr(v, "val")})
)


@answers.wrong("an equation with effects")
def keeps_effects_but_not_their_inputs(jaxpr):
    live = solution_without_effects(jaxpr)
    return [i for i in live if not jaxpr.eqns[i].effects]


def solution_without_effects(jaxpr):
    return with_outputs(lambda jaxpr: {v for v in jaxpr.outvars if not hasattr(v, "val")}, jaxpr)


@answers.right
def until_nothing_changes(jaxpr):
    live, before = {i for i, e in enumerate(jaxpr.eqns) if e.effects}, None
    while live != before:
        before = live
        needed = [*jaxpr.outvars, *(v for i in live for v in jaxpr.eqns[i].invars)]
        live = {
            i for i, e in enumerate(jaxpr.eqns) if e.effects or any(v is w for v in e.outvars for w in needed)
        }
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
    for i, e in enumerate(jaxpr.eqns):
        if e.effects:
            live.add(i)
            for v in e.invars:
                visit(v)
    return set(range(len(jaxpr.eqns))) - live


answers.right(by_recursion)
answers.right(lambda jaxpr: sorted(by_recursion(jaxpr), reverse=True))
answers.right(lambda jaxpr: tuple(by_recursion(jaxpr)))
answers.right(lambda jaxpr: np.array(list(by_recursion(jaxpr)), int))
