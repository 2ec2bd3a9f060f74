"""A container of your own."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.guarding import as_theirs
from mlax_tutorial.checking.outcome import NotAttempted


def solution(cls):
    def flatten(item):
        attributes = vars(item)
        children = [(jax.tree_util.GetAttrKey(name), attributes[name]) for name in cls.children]
        static = [pair for pair in attributes.items() if pair[0] not in cls.children]
        return children, tuple(sorted(static))  # by the names: no two are equal

    def unflatten(static, children):
        item = object.__new__(cls)
        vars(item).update(static)
        vars(item).update(zip(cls.children, children, strict=True))
        return item

    jax.tree_util.register_pytree_with_keys(cls, flatten, unflatten)
    return cls


def _linear_class():
    class Linear:
        children = "kernel", "bias"

        def __init__(self, kernel, bias, name="linear"):
            self.kernel, self.bias, self.name = kernel, bias, name

    return Linear


class _Unit:
    """Two that are not equal have the same text and the same hash, as Python allows."""

    def __init__(self, factor):
        self.factor = factor

    def __eq__(self, other):
        return isinstance(other, _Unit) and self.factor == other.factor

    def __hash__(self):
        return 1

    def __repr__(self):
        return "Unit()"


def _ones(size):
    return jax.device_put(np.ones(size, np.float32))


def _attempt(call, advice=""):
    """What ``call`` returns; an error on the way is the reader's."""
    try:
        return call()
    except (Failed, NotAttempted):
        raise
    except Exception as error:
        failure = as_theirs(error, check)
        if isinstance(failure, Failed):
            failure.say_first(advice)
        raise failure from None


def check(node):
    Linear = _linear_class()
    listed, init = Linear.children, Linear.__init__
    got = node(Linear)
    if got is not Linear:
        said = "returned None" if got is None else "returned something else"
        raise Failed(
            f"Your function {said}: below `@node` that is what the name of the class stands for from then on. "
            "Register the class, and return it."
        )
    kernel, bias = jax.device_put((np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(3, np.float32)))
    item = Linear(kernel, bias, "first")
    words = "an object with the children kernel and bias, and name = 'first'"
    if jax.tree_util.all_leaves([item]):
        raise Failed("JAX does not know the class yet: it is still a leaf. Register it.", input=words)
    _right_children(item, kernel, bias, words)
    _put_together(item, words)
    _without_init(node)
    if getattr(Linear, "children", None) != listed or Linear.__init__ is not init:
        raise Failed(
            "The class has lost or changed its `children` or its `__init__`: leave them as they are."
        )
    _right_static(node)
    _all_attributes(node)
    _frozen(node)
    _two_classes(node)
    _sizes(node)
    _by_value(node)
    _transformed(Linear, kernel, bias)


def _right_children(item, kernel, bias, words):
    leaves = _attempt(lambda: jax.tree.leaves(item), "Taking the object apart failed.")
    if len(leaves) == 3:
        raise Failed(
            "The name is a leaf here. Only the attributes that the class lists are children; the others are auxiliary data.",
            input=words, got=leaves,
        )  # fmt: skip
    if len(leaves) == 2 and leaves[0] is bias and leaves[1] is kernel:
        raise Failed(
            "The children are in another order than the names in `children` of the class: first `kernel`, then `bias`.",
            input=words,
        )
    if len(leaves) != 2 or leaves[0] is not kernel or leaves[1] is not bias:
        raise Failed(
            "The leaves are not the two children, as they are.",
            input=words,
            expected=[kernel, bias],
            got=leaves,
        )
    flat = _attempt(lambda: jax.tree.leaves_with_path(item))
    paths = [jax.tree_util.keystr(path) for path, _ in flat]
    if paths != [".kernel", ".bias"]:
        raise Failed(
            "The paths do not name the children: register with keys, and give each child a "
            "`jax.tree_util.GetAttrKey` of its name.",
            expected="['.kernel', '.bias']", got=paths,
        )  # fmt: skip


def _put_together(item, words):
    advice = "Putting the object together again failed."
    again = _attempt(lambda: jax.tree.map(lambda leaf: leaf + 1, item), advice)
    if again is item:
        raise Failed(
            "`unflatten` returns the old object. It has to make a new one: the old one may be in use."
        )
    other = _attempt(lambda: jax.tree.map(lambda leaf: leaf + 2, item), advice)
    if other is again:
        raise Failed("`unflatten` returns one object again and again: it has to make a new one each time.")
    if type(again) is not type(item):
        raise Failed(
            "An object is put together as something else than it was: it must be of the class again.",
            input=words,
            got=type(again).__name__,
        )
    missing = [name for name in ("kernel", "bias", "name") if name not in vars(again)]
    if missing:
        raise Failed(
            f"When it is put together, the object has lost `{missing[0]}`: all attributes must come back.",
            input=words,
        )
    if again.name != "first":
        raise Failed(
            "When it is put together, the object has another `name`: auxiliary data must come back as it was.",
            input=words, expected="first", got=again.name,
        )  # fmt: skip
    right = all(np.array_equal(getattr(again, name), getattr(item, name) + 1) for name in ("kernel", "bias"))
    if not right:
        raise Failed(
            "When it is put together, the children have not come to the attributes that they belong to.",
            input=words, expected={"kernel": item.kernel + 1, "bias": item.bias + 1},
            got={"kernel": again.kernel, "bias": again.bias},
        )  # fmt: skip


def _without_init(node):
    class Careful:
        children = ("value",)

        def __init__(self, value, unit):
            if not isinstance(value, jax.Array):
                raise Failed(
                    "Your function calls `__init__` to put an object together. That may check or convert, and JAX hands "
                    "in other things than arrays: make the object without it, by `object.__new__(cls)`."
                )
            self.value = jnp.asarray(value, jnp.float32)
            self.unit = unit

    Careful.__init__.__qualname__ = "Careful.__init__"
    node(Careful)
    item = Careful(_ones(2), "m")
    for place in ((2,), "text", 3, None):  # what stands in a leaf's place
        again = _attempt(lambda place=place: jax.tree.map(lambda leaf: place, item))
        got = vars(again).get("value", "no attribute at all")
        if type(got) is not type(place) or got != place:
            raise Failed(
                "What takes a leaf's place must come into the attribute as it is, whatever it is: do not convert or "
                "choose when an object is put together.",
                expected=place, got=got,
            )  # fmt: skip


def _right_static(node):
    Linear = node(_linear_class())
    one = Linear(_ones(2), _ones(1), "one")
    structure = _attempt(lambda: jax.tree.structure(one))
    other = _attempt(lambda: jax.tree.structure(Linear(jnp.zeros(3), None, "one")).num_leaves)
    if other != 1:
        raise Failed("A child may be None, or any tree: it is opened like any other container.")
    same = jax.tree.structure(Linear(jnp.zeros(3), _ones(1), "one"))
    if _attempt(lambda: structure != same):
        raise Failed(
            "Two objects with the same static attributes have structures that differ, so every call under `jax.jit` is a "
            "new trace. Compare auxiliary data by value: the names and values, not the object."
        )
    if structure == jax.tree.structure(Linear(_ones(2), _ones(1), "two")):
        raise Failed(
            "Two objects with another `name` have equal structures, so `jax.jit` would run the program of the one "
            "for the other. All static attributes belong in the auxiliary data."
        )
    turned = object.__new__(Linear)
    turned.extra, turned.name = 1, "one"
    turned.bias, turned.kernel = _ones(1), _ones(2)
    straight = Linear(_ones(2), _ones(1), "one")
    straight.extra = 1
    _attempt(
        lambda: jax.tree.structure(straight),
        "Static values need not be of one type: sort by the names alone.",
    )
    if _attempt(lambda: jax.tree.structure(turned)) != jax.tree.structure(straight):
        raise Failed(
            "Two objects that got the same attributes in another order have structures that differ: sort the names, "
            "so that the order does not matter."
        )
    if jax.tree.leaves(turned)[0] is not turned.kernel:
        raise Failed(
            "The children come in the order in which the attributes were set on the object. Their order is that of the names in "
            "`children` of the class, first `kernel`, then `bias`: go through `cls.children`, not through `vars(item)`.",
            input="an object that got its `bias` before its `kernel`",
        )
    try:
        hash(structure.node_data()[1])
    except TypeError:
        raise Failed(
            "The auxiliary data cannot be hashed (a dict or a list?). JAX asks for data that can, since what can be "
            "changed later would change the key to its cache: make a tuple of pairs."
        ) from None


def _all_attributes(node):
    item = node(_linear_class())(_ones(2), None, "one")
    static = {"name": "one", "_private": 3, "unit": None, "rule": jnp.tanh, "sizes": (2, "two")}
    vars(item).update(static)
    advice = (
        "Static attributes may be of any kind, functions too: keep the values themselves, not a text of them."
    )
    again = vars(_attempt(lambda: jax.tree.map(lambda leaf: leaf, item), advice))
    missing = [name for name in ("kernel", "bias", *static) if name not in again]
    changed = [name for name in static if name in again and again[name] != static[name]]
    if missing or changed:
        raise Failed(
            f"When it is put together, the object has {'lost' if missing else 'another'} `{(missing + changed)[0]}`. *All* "
            "attributes come back as they were: private ones, None, functions, and those that were set later.",
            input="an object with the attributes kernel, bias (None), " + ", ".join(static),
        )


def _frozen(node):
    @node
    @dataclasses.dataclass(frozen=True)
    class Frozen:
        value: object
        unit: str
        children = ("value",)

        def __post_init__(self):
            if not isinstance(self.value, (jax.Array, jax.core.Tracer)):
                raise Failed(
                    "The `__init__` of a dataclass is called, too, to put an object together (`register_dataclass` and `dataclasses.replace` do so), "
                    "and may refuse what it is given: here, in `__post_init__`, a value that is no array."
                )

    item = Frozen(_ones(2), "m")
    advice = "A frozen dataclass does not let its attributes be assigned: write into `vars(item)` instead."
    again = _attempt(lambda: jax.tree.map(lambda leaf: 2 * leaf, item), advice)
    if not (hasattr(again, "unit") and again.unit == "m" and np.array_equal(again.value, [2, 2])):
        raise Failed("A frozen dataclass does not come back as it was.", input="a frozen dataclass")
    _attempt(lambda: jax.tree.map(lambda leaf: None, item))


def _sizes(node):
    """Classes with no child, with no static attribute, and with three children; a child that is no array."""

    class Empty:
        children = ()

    class Bare:
        children = ("value",)

    class Three:
        children = "one", "two", "three"

    for cls, attributes, kind in (
        (Empty, {"name": "empty"}, "no children"),
        (Bare, {"value": 1.5}, "no static attributes"),
        (Three, {"three": 3, "one": 1.5, "two": np.ones(2), "name": "three"}, "three children"),
    ):
        node(cls)
        item = object.__new__(cls)
        vars(item).update(attributes)
        leaves = _attempt(lambda item=item: jax.tree.leaves(item), f"An object with {kind} failed.")
        right = [attributes[name] for name in cls.children]
        if len(leaves) != len(right) or any(one is not two for one, two in zip(leaves, right)):
            raise Failed(
                "The leaves should be the children as they are, and as many as the class lists: do not convert them.",
                input=f"an object with {kind}", expected=right, got=leaves,
            )  # fmt: skip
        again = _attempt(
            lambda item=item: jax.tree.map(lambda leaf: leaf, item), f"An object with {kind} failed."
        )
        if vars(again).keys() != attributes.keys() or any(
            vars(again)[n] is not attributes[n] for n in attributes
        ):
            raise Failed(
                f"An object with {kind} does not come back as it was.", expected=attributes, got=vars(again)
            )


def _by_value(node):
    Linear = node(_linear_class())
    meters, feet = (Linear(_ones(2), _ones(1), _Unit(factor)) for factor in (1.0, 0.3048))
    if _attempt(lambda: jax.tree.structure(meters) == jax.tree.structure(feet)):
        raise Failed(
            "Two objects whose static attributes differ but look the same have equal structures: do not compare the text "
            "of a value, nor its type or its hash. The auxiliary data holds the values, and `==` of the values decides.",
            input="the names Unit() and Unit(), which are not equal",
        )
    one, other = (object.__new__(Linear) for _ in range(2))
    for item, name in ((one, "rate"), (other, "size")):
        vars(item).update({"kernel": _ones(2), "bias": _ones(1), name: 2})
    if _attempt(lambda: jax.tree.structure(one) == jax.tree.structure(other)):
        raise Failed(
            "Two objects with the same values under other names have equal structures: the names belong in the auxiliary data, too.",
            input="an object with rate = 2, and one with size = 2",
        )


def _two_classes(node):
    one, two = node(_linear_class()), node(_linear_class())
    structures = [jax.tree.structure(cls(_ones(2), _ones(1))) for cls in (one, two)]
    if structures[0] == structures[1]:
        raise Failed("Two classes with the same attributes have equal structures: they must be told apart.")
    item = _attempt(lambda: jax.tree.map(lambda leaf: leaf, one(_ones(2), _ones(1))))
    if type(item) is not one:
        raise Failed(
            "After a second class was registered, objects of the first come back as objects of the second."
        )


def _transformed(Linear, kernel, bias):
    traces = []

    def apply(layer, x):
        traces.append(1)
        return jnp.sum(x @ layer.kernel + layer.bias) if layer.name == "first" else jnp.sum(x)

    jitted, x = jax.jit(apply), np.ones(2, np.float32)
    for name in ("first", "second", "first"):
        total = (x @ np.asarray(kernel) + bias).sum() if name == "first" else x.sum()
        expected = jax.device_put(np.float32(total))
        traces.clear()
        got = _attempt(lambda name=name: jitted(Linear(kernel, bias, name), x), "Under `jax.jit` it failed.")
        checks.same(got, expected, where=f"under `jax.jit`, with the name {name!r}")
    if traces:
        raise Failed("An object with a name that was seen before is traced again under `jax.jit`.")
    layer = Linear(kernel, bias, "first")
    gradient = _attempt(lambda: jax.grad(jitted)(layer, x), "Under `jax.grad` it failed.")
    if not isinstance(gradient, Linear):
        raise Failed("The gradient of an object should be an object of the same class.", got=gradient)
    expected = np.outer(x, np.ones(3, np.float32)), np.ones(3, np.float32)
    with checks.says(
        "The gradient comes back as an object, but not with the right numbers: hand on the children as they are, when it is taken apart and "
        "when it is put together."
    ):
        checks.same((gradient.kernel, gradient.bias), jax.device_put(expected))
    many = Linear(*jax.device_put((np.stack([kernel] * 2), np.stack([bias] * 2))), "first")
    got = _attempt(lambda: jax.vmap(jitted, in_axes=(0, None))(many, x), "Under `jax.vmap` it failed.")
    checks.same(got, jax.device_put(np.stack([jitted(layer, x)] * 2)), where="under `jax.vmap`")


exercise = Exercise(
    title="A container of your own",
    stars=3,
    minutes=20,
    why="You have written the heart of a library of modules: Equinox and flax.struct are this decorator, grown up.",
    hints=(
        "`jax.tree_util.register_pytree_with_keys(cls, flatten, unflatten)`: `flatten(item)` returns pairs of a key and a "
        "child, and the auxiliary data; `unflatten(static, children)` returns an object.",
        "The key of a child is `jax.tree_util.GetAttrKey(name)`. The auxiliary data is a sorted tuple of pairs of name and value.",
        "`item = object.__new__(cls)` makes an object without `__init__`, and `vars(item).update(…)` gives it attributes.",
    ),
    solution=solution,
    check=check,
)  # fmt: skip
