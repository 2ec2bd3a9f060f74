"""A decorator for methods."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.guarding import guard


def solution(method):
    @functools.partial(jax.jit, static_argnums=0)
    def pure(kind, attributes, arguments):
        copy = object.__new__(kind)
        vars(copy).update(attributes)
        return method(copy, *arguments)

    def jitted(self, *arguments):
        return pure(type(self), vars(self), arguments)

    return jitted


def check(jit_method):
    runs = []

    def at(self, x):
        runs.append((type(self), isinstance(x, jax.core.Tracer)))
        return self.slope * x + self.offset

    def mixed(self, x, y):
        runs.append((type(self), isinstance(x, jax.core.Tracer)))
        return self.slope * x + self.offset * y + self.extra()

    def pick(self, offsets):
        return self.table[self.row] + offsets["small"][self.row]

    begun = []

    class Line:
        def __init__(self, a, b):
            begun.append(1)
            self.slope, self.offset = jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32)

        def extra(self):
            return 0.0

    class Shifted(Line):
        def extra(self):
            return 100.0

    class Rows:
        def __init__(self):
            self.table, self.row = jnp.arange(4.0), jnp.int32(2)

    for the_class, method in ((Line, at), (Line, mixed), (Rows, pick)):
        name = method.__name__
        made = jit_method(method)
        checks.returned(made)
        if not callable(made):
            raise Failed("`jit_method` returns a function, the new method.", got=made)
        setattr(the_class, name, guard(made, name))

    x = jnp.float32(5.0)
    line = Line(2.0, 1.0)
    said = "line, with slope = 2 and offset = 1"
    try:
        got = line.at(x)
    except Failed as failure:
        if "Error interpreting argument" in failure.message:
            failure.message = (
                "The object itself is handed to a jitted function as an argument that is traced, and it is no array and no "
                "pytree. Its attributes are: `vars(self)`."
            )
        raise
    checks.same(got, jnp.float32(11.0), input=f"{said}; line.at(5)")
    if len(begun) > 1:
        raise Failed(
            "The call runs the `__init__` of the class. Make the copy with `object.__new__(the_class)`."
        )
    if not runs[-1][1]:
        raise Failed("The method is run with real arrays, by Python: it is not jitted.")
    line.slope = jnp.float32(3.0)
    got = line.at(x)
    if not np.allclose(got, 16.0):
        raise Failed(
            "The slope was changed, and the old one still counts: it is a constant of the program. "
            "Attributes have to be arguments that are traced.",
            input=f"{said}; line.at(5); line.slope = 3; line.at(5)",
            expected=jnp.float32(16.0),
            got=got,
        )
    other = Line(-1.0, 0.0)
    checks.same(other.at(x), jnp.float32(-5.0), input="another line, with slope = -1 and offset = 0, at(5)")
    line.slope = jnp.float32(4.0)
    line.at(x + 1)
    if len(runs) > 1:
        raise Failed(
            f"The method was traced {len(runs)} times over four calls with the same types; it should be once, whatever the values of "
            "the attributes are, and for all objects of the class.",
        )
    with checks.says(
        "The method calls another method of its class, and the object that it is given has none: make the copy an "
        "object of the same class, `type(self)`.",
        about="has no attribute 'extra'",
    ):
        got = line.mixed(x, jnp.float32(2.0))
    checks.same(got, jnp.float32(22.0), input="a method of two arguments")
    got = Shifted(1.0, 0.0).mixed(x, jnp.float32(2.0))
    if not np.allclose(got, 105.0):
        raise Failed(
            "In the method of a derived class, `self` has to be of that class: `type(self)`. Here the base class's methods are called, or a "
            "program is used that was made for the base class.",
            expected=jnp.float32(105.0),
            got=got,
        )
    if vars(line).keys() != {"slope", "offset"} or isinstance(line.slope, jax.core.Tracer):
        raise Failed(
            "The object itself is changed by the call: leave it as it is, and give the method a copy."
        )
    slope = jax.grad(lambda slope: Line(slope, 1.0).at(x))(2.0)
    if not np.allclose(slope, 5.0):
        raise Failed(
            "The gradient with respect to an attribute is lost: it has to be an argument that is traced."
        )
    offsets = {"small": 0.5 * jnp.arange(4.0)}
    checks.same(
        Rows().pick(offsets),
        jnp.float32(3.0),
        input="an attribute that is an index, an argument that is a dict",
    )
    rows = Line(jnp.ones((2, 3)), 0.0).at(jnp.arange(3.0))
    checks.same(rows, jnp.tile(jnp.arange(3.0), (2, 1)), input="an attribute that is a matrix")
    checks.same(
        Line(1e6, 0.3).at(jnp.float32(0.7)),
        jnp.float32(700_000.3),
        input="a line with slope = 1e6 and offset = 0.3, at(0.7): large numbers, and such as have many digits",
    )


exercise = Exercise(
    title="A decorator for methods",
    stars=3,
    minutes=20,
    why="What changes from call to call goes in as an argument; what Python must know is static. That is all that there is to jit and objects.",
    hints=(
        "Inside there is a pure, jitted function of the attributes and the arguments. The method itself needs an object: make one while tracing.",
        "`copy = object.__new__(kind)` and `vars(copy).update(attributes)` make an object that holds tracers; `method(copy, *arguments)` does the rest.",
        "The class is not an array. It is hashable, and there are few of them: `static_argnums=0`.",
        "Make the jitted function once, in `jit_method`, not at each call.",
    ),
    solution=solution,
    check=check,
)
