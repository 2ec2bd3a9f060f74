"""``viz.passes``: forward and backward passes of functions of all kinds, and the page that shows them."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from mlax_tutorial import viz
from mlax_tutorial.viz.figures import passes

X = jnp.ones(3)
W = jnp.ones((3, 3))
PARAMS = {"in": jnp.ones((3, 4)), "out": jnp.ones((4, 2)), "step": 3}


def wave(x):
    return jnp.sin(jnp.sin(x))


def body(c, _):
    return wave(c), None


def loss(params, x):
    return jnp.sum(jnp.tanh(x @ params["in"]) @ params["out"])


@jax.custom_vjp
def turned(x):
    return x * 2


turned.defvjp(lambda x: (x * 2, jnp.cos(x)), lambda kept, c: (-c * kept,))

ALL_KINDS = {
    "scalar": (wave, (1.0,), {}),
    "vector": (lambda x: jnp.sum(wave(x)), (X,), {}),
    "not a scalar": (wave, (X,), {}),
    "tree": (loss, (PARAMS, jnp.ones((5, 3))), {}),
    "tree, checkpointed": (jax.checkpoint(loss), (PARAMS, jnp.ones((5, 3))), {}),
    "several arguments": (lambda x, y: jnp.vdot(x, jnp.sin(y)), (X, X), {"argnums": (0, 1)}),
    "second argument": (lambda n, x: n * jnp.sum(x**2), (3, X), {"argnums": 1}),
    "closure": (lambda x: jnp.sum(jnp.sin(W @ x)), (X,), {}),
    "linear": (lambda x: jnp.sum(3 * x), (X,), {}),
    "checkpoint": (jax.checkpoint(wave), (X,), {}),
    "checkpoint in the middle": (lambda x: jnp.sum(jax.checkpoint(wave)(jnp.exp(x)) ** 2), (X,), {}),
    "checkpoint in a checkpoint": (jax.checkpoint(lambda x: jax.checkpoint(wave)(wave(x))), (X,), {}),
    "policy": (
        jax.checkpoint(lambda x: jnp.sin(W @ wave(W @ x)), policy=jax.checkpoint_policies.dots_saveable),
        (X,),
        {},
    ),
    "scan": (lambda x: lax.scan(body, x, length=4)[0], (X,), {}),
    "scan, checkpointed": (lambda x: lax.scan(jax.checkpoint(body), x, length=4)[0], (X,), {}),
    "scan of scans, checkpointed": (
        lambda x: lax.scan(jax.checkpoint(lambda c, _: lax.scan(body, c, length=3)), x, length=2)[0],
        (X,),
        {},
    ),
    "scan with inputs": (lambda x: lax.scan(lambda c, v: (c * v, jnp.sin(c)), 1.0, x), (X,), {}),
    "fori_loop": (lambda x: lax.fori_loop(0, 3, lambda i, x: jnp.sin(x), x), (X,), {}),
    "while beside": (lambda x: x * lax.while_loop(lambda n: n < 9, lambda n: n * 2, 1), (X,), {}),
    "cond": (lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), (X,), {}),
    "cond, checkpointed": (jax.checkpoint(lambda x: lax.cond(x[0] > 0, wave, jnp.cos, x)), (X,), {}),
    "jit in jit": (jax.jit(lambda x: jax.jit(jnp.sin)(jax.jit(jnp.sin)(x))), (X,), {}),
    "custom_jvp": (jax.nn.relu, (X,), {}),
    "custom_vjp": (lambda x: jnp.sum(turned(x) ** 2), (X,), {}),
    "stop_gradient": (lambda x: x * lax.stop_gradient(jnp.exp(x)), (X,), {}),
    "softmax": (lambda x: jax.nn.log_softmax(x)[0], (X,), {}),
    "vmap": (jax.vmap(lambda x: jnp.vdot(x, x)), (W,), {}),
    "gradient": (jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 2)), (X,), {}),
    "random": (lambda x, key: x * jax.random.normal(key, x.shape), (X, jax.random.key(0)), {}),
    "sort and take": (lambda x: jnp.sort(x)[1] * x[0], (X,), {}),
    "complex": (lambda z: jnp.abs(jnp.fft.fft(z)).sum(), (X.astype(complex),), {}),
    "bfloat16": (wave, (jnp.ones(3, jnp.bfloat16),), {}),
    "extra results": (lambda x: (wave(x), jnp.arange(3), {"n": 1}), (X,), {}),
    "identity": (lambda x: x, (X,), {}),
    "constant": (lambda x: 1.0, (X,), {}),
    "effects": (lambda x: (jax.debug.print("{x}", x=x), wave(x))[1], (X,), {}),
    "partial": (functools.partial(jnp.multiply, 2.0), (X,), {}),
    "NumPy": (wave, (np.ones(3, np.float32),), {}),
    "placeholders": (wave, (jax.ShapeDtypeStruct((1000, 1000), jnp.float32),), {}),
    "empty": (wave, (jnp.zeros((0, 3)),), {}),
}


@pytest.mark.parametrize("name", ALL_KINDS)
def test_any_function_is_shown(name):
    function, arguments, options = ALL_KINDS[name]
    shown = viz.passes(function, *arguments, **options)
    listing, page, recording = repr(shown), shown._repr_html_(), shown.recording
    assert "\nreturns " in listing and listing.splitlines()[-1].startswith("gradient ")
    assert page == viz.passes(function, *arguments, **options)._repr_html_()
    rows = len(recording.forward) + len(recording.backward)
    assert page.count("data-from=") == rows
    assert all(step.kept >= 0 and step.remade >= 0 for step in recording.forward + recording.backward)
    assert recording.peak >= recording.kept or not rows
    kept = [step.kept for step in recording.forward]
    assert kept == sorted(kept), "what is stored on the way forward stays"


@pytest.mark.parametrize("name", ALL_KINDS)
def test_what_waits_is_what_vjp_holds(name):
    """The bytes of the stored values, those given included, are those in the pullback of ``jax.vjp``."""
    function, arguments, options = ALL_KINDS[name]
    if name in ("placeholders", "several arguments", "second argument", "tree", "tree, checkpointed"):
        pytest.skip("the argument is no tree of floating arrays alone")
    stored = viz.passes(function, *arguments, **options).recording.stored

    def floating(x):
        results = jax.tree.leaves(function(x, *arguments[1:]))
        return [r for r in results if jnp.issubdtype(jnp.result_type(r), jnp.inexact)]

    _, pullback = jax.vjp(jax.jit(floating), arguments[0])  # jit, so that constants are no residuals twice
    held = {id(leaf): leaf.nbytes for leaf in jax.tree.leaves(pullback) if np.ndim(leaf)}
    assert sum(v.bytes for v in stored if not v.type.endswith("[]")) >= 0.5 * sum(held.values())


def recording(function, *args, **options):
    return viz.passes(function, *args, **options).recording


def test_a_checkpoint_stores_less_and_computes_again():
    plain, again = recording(wave, X), recording(jax.checkpoint(wave), X)
    assert (plain.kept, plain.again, plain.peak) == (24, 0, 24)
    assert (again.kept, again.again, again.peak) == (0, 3, 36)
    assert [step.again for step in again.backward] == [True, True, True, False, False]
    assert [value.name for value in again.stored] == ["a"] and again.stored[0].given


def test_stored_values_are_given_back():
    steps = recording(wave, X).backward
    assert [step.kept for step in steps] == [24, 12]
    assert [step.used for step in steps] == [("e",), ("c",)]


def test_pieces_of_a_chain_hold_less():
    def chain(x, wrap):
        for _ in range(4):
            x = wrap(lambda x: wave(wave(x)))(x)
        return x

    plain = recording(lambda x: chain(x, lambda f: f), X)
    pieces = recording(lambda x: chain(x, jax.checkpoint), X)
    whole = recording(jax.checkpoint(lambda x: chain(x, lambda f: f)), X)
    assert plain.kept == 16 * 12 and pieces.kept == 3 * 12 and whole.kept == 0
    assert pieces.peak < 0.7 * plain.peak <= whole.peak


def test_inside_of_loops():
    plain = recording(*ALL_KINDS["scan"][:1], X)
    again = recording(*ALL_KINDS["scan, checkpointed"][:1], X)
    assert plain.kept == 2 * 4 * 12 and again.kept == 4 * 12
    loop = next(step for step in again.backward if "scan" in step.text)
    assert [text.split(" = ")[1].split()[0] for text, second in loop.inner if second] == ["sin", "cos", "cos"]
    assert loop.remade == 36 and again.again == 3 and not any(step.again for step in again.backward)


def test_names_that_are_saved():
    def named(x):
        return jnp.sin(jnp.sin(checkpoint_name(jnp.sin(x), "inner")))

    policy = jax.checkpoint_policies.save_only_these_names("inner")
    assert recording(jax.checkpoint(named, policy=policy), X).kept == 12


def test_policies():
    product = lambda x: jnp.sin(W @ jnp.sin(W @ x))  # noqa: E731
    saved = recording(jax.checkpoint(product, policy=jax.checkpoint_policies.dots_saveable), X)
    again = recording(jax.checkpoint(product), X)
    assert saved.kept == 24 and again.kept == 0

    def products(found):
        return sum("dot_general" in step.text and step.again for step in found.backward)

    assert products(saved) == 0 and products(again) >= 1


def test_the_same_inner_function_twice():
    steps = recording(lambda x: jax.jit(jnp.sin)(jax.jit(jnp.sin)(x)), 1.0)
    assert [step.text.split(" = ")[1] for step in steps.forward] == ["sin a", "cos a", "sin b", "cos b"]


def test_what_is_not_needed_is_left_out():
    found = recording(lambda x: (jnp.exp(x), jnp.sum(3 * x))[1], X)
    assert not any("exp" in step.text for step in found.forward)


def test_long_functions_are_cut():
    def long(x):
        for _ in range(passes.MOST):
            x = jnp.sin(x)
        return x

    shown = viz.passes(long, 1.0)
    assert len(shown.recording.forward) == passes.MOST and shown.recording.left_out > 0
    assert "are not shown" in repr(shown) and "are not shown" in shown._repr_html_()


def test_errors_say_what_is_missing():
    with pytest.raises(TypeError, match="nothing to differentiate"):
        viz.passes(lambda n: n * 2.0, 3)
    with pytest.raises(TypeError, match="no floating numbers"):
        viz.passes(lambda x: x > 0, 1.0)
    with pytest.raises(ValueError, match="Reverse-mode"):
        viz.passes(lambda x: lax.while_loop(lambda v: v < 9.0, lambda v: v * 2, x), 1.0)


def test_no_tracer_leaks_and_keys_are_not_used_up():
    key = jax.random.key(5)
    with jax.check_tracer_leaks(True), jax.debug_key_reuse(True):
        viz.passes(lambda x, key: x * jax.random.uniform(key), 1.0, key)
        jax.random.uniform(key)


def test_the_page_is_readable_without_scripts_and_escaped():
    page = viz.passes(lambda x: jnp.where(x < 2.0, x, 0.0), X)._repr_html_()
    text = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert 'role="group" aria-label="The forward and the backward pass of &lt;lambda&gt;' in text
    assert "viz-later" not in text and "http" not in page and "NAME" not in page
    assert "Between the passes wait" in text


def test_long_parameters_are_shown_where_they_are_asked_for():
    """How a product pairs its axes says little, and is longer than the rest of the line."""
    arguments = (loss, PARAMS, jnp.ones((5, 3)))
    quiet, full = (viz.passes(*arguments, **options) for options in ({}, {"parameters": True}))
    for name in ("dimension_numbers=", "preferred_element_type="):
        assert name not in repr(quiet) and name not in quiet._repr_html_()
        assert name in repr(full) and name in full._repr_html_()
    assert "reduce_sum[axes=" in repr(quiet) or "broadcast_in_dim[" in repr(quiet)  # what is short stays
