"""Two processes compare what they hold: the first leaf that differs is named, in both."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial import sharding
from mlax_tutorial.inspection import hosts


def said(build):
    """What `check_agreement` says in each of two processes of two devices."""

    def program(build):
        try:
            sharding.check_agreement(build(jax.process_index()), "weights")
        except ValueError as error:
            return str(error)

    return hosts.run(program, build, devices=2).values


def mesh():
    return jax.make_mesh((2, 2), ("host", "device"), axis_types=(AxisType.Auto,) * 2)


def on_all(value, *axes):
    """An array that claims to be divided by these axes; nobody compares."""
    value = np.asarray(value, np.float32)
    return jax.make_array_from_callback(
        value.shape, NamedSharding(mesh(), P(*axes)), lambda index: value[index]
    )


def test_the_same():
    def build(index):
        return {
            "everywhere": on_all([1, 2, 3]),
            "divided": on_all(range(8), ("host", "device")),
            "by devices": on_all(range(8), "device"),
            "of a host": on_all(range(8), "host") + index * 0,
            "numpy": np.arange(3),
            "number": 1.5,
            "local": jnp.ones(2),
            "key": jax.random.key(3),
            "empty": np.zeros(0),
        }

    assert said(build) == [None, None]


def test_parts_of_a_process_may_differ():
    def build(index):
        return on_all([[index] * 2] * 4, "host"), on_all([index] * 4, ("host", "device"))

    assert said(build) == [None, None]


@pytest.mark.parametrize("kind", ["everywhere", "by devices", "numpy", "local", "key"])
def test_one_leaf_differs(kind):
    def build(index):
        other = {
            "everywhere": lambda: on_all([1, 2, 3 + index]),
            "by devices": lambda: on_all([index] * 4, "device"),
            "numpy": lambda: np.arange(3) + index,
            "local": lambda: jnp.ones(2) + index,
            "key": lambda: jax.random.key(index),
        }[kind]()
        return {"a": on_all(7), "b": [{"kernel": other}], "c": np.arange(2) + index}

    first, second = said(build)
    assert first == second and first.startswith(
        "check_agreement: weights['b'][0]['kernel'] differs: process 1 (device "
    )
    assert "holds other numbers than process 0 (device 0)" in first


def test_negative_zero_is_another_number():
    assert "weights differs" in said(lambda index: np.float32(-0.0 if index else 0.0))[0]


@pytest.mark.parametrize("kind", ["path", "shape", "dtype"])
def test_trees_differ(kind):
    def build(index):
        array = np.zeros(3 + (kind == "shape" and index), "int32" if kind == "dtype" and index else "float32")
        return {"b" if kind == "path" and index else "a": array}

    for text in said(build):
        assert text.startswith(
            "check_agreement: weights has other paths, shapes or dtypes in process 1 than in process 0"
        )


def test_in_one_process():
    sharding.check_agreement({"a": jnp.ones(3), "b": ()})
    sharding.check_agreement(())
