"""Answers to the exercise objects.pure_call."""

import copy

import jax

from mlax_tutorial.exercises.objects.pure_call import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("the call raised, and its attribute")
def without_finally(model, values, x):
    before = dict(vars(model))
    vars(model).update(values)
    y = model(x)
    new = {name: vars(model)[name] for name in values}
    vars(model).clear()
    vars(model).update(before)
    return y, new


@answers.wrong("Afterwards the object should be as it was, but its attribute `weight`")
def never_restores(model, values, x):
    vars(model).update(values)
    y = model(x)
    return y, {name: vars(model)[name] for name in values}


@answers.wrong("*after* the call")
def returns_what_went_in(model, values, x):
    before = dict(vars(model))
    try:
        vars(model).update(values)
        return model(x), dict(values)
    finally:
        vars(model).clear()
        vars(model).update(before)


@answers.wrong("ran with its own attributes")
def runs_first(model, values, x):
    before = dict(vars(model))
    try:
        y = model(x)
        return y, {name: vars(model)[name] for name in values}
    finally:
        vars(model).clear()
        vars(model).update(before)


@answers.wrong("should be a dict with the names of `values`")
def returns_all(model, values, x):
    before = dict(vars(model))
    try:
        vars(model).update(values)
        y = model(x)
        return y, dict(vars(model))
    finally:
        vars(model).clear()
        vars(model).update(before)


@answers.wrong("its attribute `last` is not")
def leaves_what_was_added(model, values, x):
    before = dict(vars(model))
    try:
        vars(model).update(values)
        y = model(x)
        return y, {name: vars(model)[name] for name in values}
    finally:
        vars(model).update(before)


@answers.wrong("calls no `__init__`")
def by_calling_the_class(model, values, x):
    other = type(model)()
    vars(other).update(vars(model) | values)
    y = other(x)
    return y, {name: vars(other)[name] for name in values}


@answers.wrong("your function hid it")
def swallows(model, values, x):
    before = dict(vars(model))
    try:
        vars(model).update(values)
        y = model(x)
        return y, {name: vars(model)[name] for name in values}
    except ValueError:
        return None, values
    finally:
        vars(model).clear()
        vars(model).update(before)


@answers.wrong("The dict `values` of the caller is changed")
def changes_the_dict(model, values, x):
    before = dict(vars(model))
    try:
        vars(model).update(values)
        y = model(x)
        values.update({name: vars(model)[name] for name in values})
        return y, values
    finally:
        vars(model).clear()
        vars(model).update(before)


@answers.wrong("`return` missing")
def returns_nothing(model, values, x):
    vars(model).update(values)
    model(x)


@answers.wrong("should be those of `model`, as they are now")
def makes_a_new_one(model, values, x):
    other = type(model)()
    vars(other).update(values)
    y = other(x)
    return y, {name: getattr(other, name) for name in values}


@answers.wrong("A tracer leaks")
def jits_the_copy(model, values, x):
    other = copy.copy(model)
    vars(other).update(values)
    y = jax.jit(lambda x: other(x))(x)
    return y, {name: getattr(other, name) for name in values}


@answers.wrong("The gradient of `new_values`")
def stops_the_new_values(model, values, x):
    other = copy.copy(model)
    vars(other).update(values)
    y = other(x)
    return y, {name: jax.lax.stop_gradient(getattr(other, name)) for name in values}


@answers.right
def with_a_copy(model, values, x):
    other = copy.copy(model)
    vars(other).update(values)
    y = other(x)
    return y, {name: getattr(other, name) for name in values}


@answers.right
def swaps_the_dict(model, values, x):
    before = model.__dict__
    model.__dict__ = {**before, **values}
    try:
        y = model(x)
        return y, {name: model.__dict__[name] for name in values}
    finally:
        model.__dict__ = before


@answers.right
def without_init(model, values, x):
    other = object.__new__(type(model))
    vars(other).update(vars(model) | values)
    y = other(x)
    return y, {name: vars(other)[name] for name in values}


@answers.right
def with_finally(model, values, x):
    before = dict(vars(model))
    try:
        vars(model).update(values)
        y = model(x)
        return y, {name: vars(model)[name] for name in values}
    finally:
        vars(model).clear()
        vars(model).update(before)


@answers.right
def deep(model, values, x):
    other = copy.deepcopy(model)
    for name in values:
        setattr(other, name, values[name])
    return other(x), {name: getattr(other, name) for name in values}


@answers.right
def by_setattr(model, values, x):
    names, before = set(vars(model)), {name: getattr(model, name) for name in vars(model)}
    for name, value in values.items():
        setattr(model, name, value)
    try:
        return model(x), {name: getattr(model, name) for name in values}
    finally:
        for name in set(vars(model)) - names:
            delattr(model, name)
        for name, value in before.items():
            setattr(model, name, value)
