"""``viz.key_tree`` on functions of all kinds, and the figure in a browser."""

import functools
import json
import re

import jax
import jax.numpy as jnp
import pytest
from jax import random

from mlax_tutorial import viz
from mlax_tutorial.viz.figures.key_tree import record

KEY = random.key(0)


def two(key):
    first, second = random.split(key)
    return random.normal(first, (3,)), random.uniform(second)


def reused(key):
    first, second = random.split(key)
    return random.normal(first, (3,)), random.uniform(first)


def scan_carries(key):
    def step(key, _):
        key, new = random.split(key)
        return key, random.normal(new)

    return jax.lax.scan(step, key, None, length=3)[1]


def scan_carries_spent(key):
    def step(key, _):
        key, new = random.split(key)
        return key, random.normal(key)

    return jax.lax.scan(step, key, None, length=3)[1]


def scan_closes_over(key):
    return jax.lax.scan(lambda total, _: (total + random.normal(key), None), 0.0, None, length=3)[0]


def scan_over_keys(key):
    return jax.lax.scan(lambda total, key: (total + random.normal(key), None), 0.0, random.split(key, 3))[0]


def scan_over_one_key(key):
    keys = jnp.stack([key, key])
    return jax.lax.scan(lambda total, key: (total + random.normal(key), None), 0.0, keys)[0]


def scan_in_scan(key):
    def outer(total, key):
        return jax.lax.fori_loop(0, 4, lambda i, t: t + random.normal(random.fold_in(key, i)), total), None

    return jax.lax.scan(outer, 0.0, random.split(key, 3))[0]


def scan_collects(key):
    def step(key, _):
        return tuple(random.split(key))

    return jax.vmap(random.normal)(jax.lax.scan(step, key, None, length=3)[1])


def fori_folds(key):
    return jax.lax.fori_loop(0, 5, lambda i, total: total + random.normal(random.fold_in(key, i)), 0.0)


def fori_folds_the_same(key):
    return jax.lax.fori_loop(0, 5, lambda i, total: total + random.normal(random.fold_in(key, 7)), 0.0)


def while_splits(key):
    def body(state):
        total, key = state
        key, new = random.split(key)
        return total + random.normal(new) ** 2, key

    return jax.lax.while_loop(lambda state: state[0] < 3.0, body, (0.0, key))[0]


def while_closes_over(key):
    return jax.lax.while_loop(lambda x: x < 3.0, lambda x: x + random.uniform(key), 0.0)


def branches(key, x):
    return jax.lax.cond(x > 0, lambda key: random.normal(key), lambda key: random.uniform(key), key)


def branch_and_after(key, x):
    return branches(key, x) + random.normal(key)


def branch_gives_key(key, x):
    key = jax.lax.cond(x > 0, lambda key: random.split(key)[0], lambda key: random.fold_in(key, 1), key)
    return random.normal(key)


def mapped(keys):
    return jax.vmap(lambda key: random.normal(random.split(key)[0], (3,)))(keys)


def mapped_over_one(key):
    return jax.vmap(lambda x: x + random.normal(key))(jnp.ones(3))


def stacked_twice(key):
    return jax.vmap(random.normal)(jnp.stack([key, key]))


def folded(key, step):
    return random.normal(random.fold_in(key, step)) + random.normal(random.fold_in(key, step + 1))


def folded_twice(key, step):
    return random.normal(random.fold_in(key, step)) + random.normal(random.fold_in(key, step))


def folded_and_split(key):
    return random.normal(random.split(key)[0]) + random.normal(random.fold_in(key, 0))


def folded_and_drawn(key):
    return random.normal(key) + random.normal(random.fold_in(key, 0))


def seeds():
    return random.normal(random.key(0)) + random.normal(random.key(1))


def same_seed():
    return random.normal(random.key(0)) + random.normal(random.key(0))


def seeds_traced(seed):
    return random.normal(random.key(seed)) + random.uniform(random.key(seed + 1))


def cloned(key):
    return random.normal(key) - random.normal(random.clone(key))


def through_words(key):
    return random.normal(key) + random.normal(random.wrap_key_data(random.key_data(key)))


def old_style(key):
    first, second = random.split(key)
    return random.normal(first) + random.normal(second)


def old_style_reused(key):
    first, _ = random.split(key)
    return random.normal(first) + random.normal(first)


def recomputed(key, x):
    return jax.grad(jax.checkpoint(lambda x: jnp.sin(x * random.normal(key))))(x)


def differentiated(key, x):
    return jax.grad(lambda x: jnp.sum(x * random.normal(key, x.shape)))(x)


def returned(key):
    return random.normal(key), key


def threaded(key):
    key, new = random.split(key)
    return random.normal(new), key


def indexed(key):
    keys = random.split(key, 4)
    return random.normal(keys[0]) + random.normal(keys[3])


def indexed_twice(key):
    keys = random.split(key, 4)
    return random.normal(keys[1]) + random.normal(keys[1])


def indexed_and_whole(key):
    keys = random.split(key, 4)
    return random.normal(keys[1]) + jax.vmap(random.normal)(keys).sum()


def indexed_by_input(key, i):
    return random.normal(random.split(key, 4)[i])


def reshaped(key):
    keys = random.split(key, 6).reshape(2, 3).T[::-1]
    return jax.vmap(jax.vmap(random.normal))(keys)


def many(key):
    return [random.normal(each) for each in random.split(key, 10)]


def samplers(key):
    keys = random.split(key, 7)
    return (
        random.permutation(keys[0], 5),
        random.choice(keys[1], 5, (2,), replace=False),
        random.gamma(keys[2], 2.0),
        random.categorical(keys[3], jnp.ones(3)),
        jax.nn.initializers.lecun_normal()(keys[4], (2, 3)),
        random.bits(keys[5]),
        random.poisson(keys[6], 3.0),
    )


def no_keys(x):
    return x + 1.0


def trees(keys, x):
    return random.normal(keys["a"]) + random.uniform(keys["b"][0]) + x


# For each function: its arguments, and what is wrong with its keys.
KINDS = {
    two: ((KEY,), []),
    reused: ((KEY,), ["used twice"]),
    scan_carries: ((KEY,), []),
    scan_carries_spent: ((KEY,), ["used twice"]),
    scan_closes_over: ((KEY,), ["the same in all 3 rounds"]),
    scan_over_keys: ((KEY,), []),
    scan_over_one_key: ((KEY,), ["used twice at once"]),
    scan_in_scan: ((KEY,), []),
    scan_collects: ((KEY,), []),
    fori_folds: ((KEY,), []),
    fori_folds_the_same: ((KEY,), ["the same in all 5 rounds"]),
    while_splits: ((KEY,), []),
    while_closes_over: ((KEY,), ["the same in all rounds"]),
    branches: ((KEY, 1.0), []),
    branch_and_after: ((KEY, 1.0), ["used twice"]),
    branch_gives_key: ((KEY, 1.0), []),
    mapped: ((random.split(KEY, 8),), []),
    mapped_over_one: ((KEY,), []),
    stacked_twice: ((KEY,), ["used twice at once"]),
    folded: ((KEY, 1), []),
    folded_twice: ((KEY, 1), ["used twice"]),
    folded_and_split: ((KEY,), ["folded and split"]),
    folded_and_drawn: ((KEY,), ["folded and drawn from"]),
    seeds: ((), []),
    same_seed: ((), ["used twice"]),
    seeds_traced: ((3,), []),
    cloned: ((KEY,), []),
    through_words: ((KEY,), ["used twice"]),
    old_style: ((random.PRNGKey(0),), []),
    old_style_reused: ((random.PRNGKey(0),), ["used twice"]),
    recomputed: ((KEY, 1.0), []),
    differentiated: ((KEY, jnp.ones(3)), []),
    returned: ((KEY,), ["used, and returned"]),
    threaded: ((KEY,), []),
    indexed: ((KEY,), []),
    indexed_twice: ((KEY,), ["used twice"]),
    indexed_and_whole: ((KEY,), ["used twice"]),
    indexed_by_input: ((KEY, 2), []),
    reshaped: ((KEY,), []),
    many: ((KEY,), []),
    samplers: ((KEY,), []),
    no_keys: ((1.0,), []),
    trees: (({"a": KEY, "b": [random.key(1)]}, 1.0), []),
}


@pytest.mark.parametrize("function", KINDS, ids=lambda function: function.__name__)
def test_all_kinds_of_functions(function):
    args, wrong = KINDS[function]
    recording = record(function, *args)
    assert [node.wrong for node in recording.reused] == wrong
    jitted = record(jax.jit(function), *args)
    assert [node.wrong for node in jitted.reused] == wrong, "a jitted function is looked into"
    steps = [node.step for node in recording.nodes()]
    assert all(0 <= step <= len(recording.steps) for step in steps)
    assert all(child.step >= node.step for node in recording.nodes() for child in node.children), (
        "what is derived comes later"
    )
    assert all(0 < node.wrong_from <= len(recording.steps) for node in recording.reused)
    first, again = (viz.key_tree(function, *args) for _ in range(2))
    assert first._repr_html_() == again._repr_html_() and repr(first) == repr(again)
    assert "0x" not in first._repr_html_() and len(first._repr_html_()) < 40 * 1024
    assert all(node.wrong in repr(first) and node.wrong in first._repr_html_() for node in recording.reused)


# Not given one key of the new style, or, the last one, refused by the guard without need.
UNGUARDED = (mapped, trees, old_style, old_style_reused, no_keys, seeds_traced, reshaped)
GUARDED = [function for function, (args, _) in KINDS.items() if args and function not in UNGUARDED]
# Seen by the tree alone; all else that it finds the guard finds, too, on the newest JAX.
BLIND = {fori_folds_the_same, folded_twice, folded_and_split, folded_and_drawn, through_words, returned}


@pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="the guard of older versions sees less")
@pytest.mark.parametrize("function", GUARDED, ids=lambda function: function.__name__)
def test_agrees_with_the_guard(function):
    args, wrong = KINDS[function]
    fresh = functools.partial(function)
    with jax.debug_key_reuse(True):
        try:
            jax.make_jaxpr(fresh)(*args)
            caught = False
        except jax.errors.KeyReuseError:
            caught = True
    assert caught == (bool(wrong) and function not in BLIND)


def lines(function, *args):
    return [line.strip() for line in repr(viz.key_tree(function, *args)).splitlines()[1:]]


def test_names():
    assert lines(two, KEY) == ["key", "split[0]", "normal f32[3]", "split[1]", "uniform f32[]"]
    assert lines(fori_folds, KEY) == ["key", "fold_in(i)  ×5", "normal f32[]"]
    assert lines(folded, KEY, 1)[1] == "fold_in(step)"
    assert lines(seeds) == ["key(0)", "normal f32[]", "key(1)", "normal f32[]"]
    assert lines(seeds_traced, 3)[0] == "key(seed)"
    assert lines(trees, {"a": KEY, "b": [KEY]}, 1.0)[::2] == ["keys['a']", "keys['b'][0]"]
    assert lines(no_keys, 1.0) == ["none"]


def test_keys_of_one_fate_are_one_node():
    assert lines(mapped, random.split(KEY, 8)) == [
        "keys[0…7]  8 keys", "split[0]  8 keys", "normal f32[3]", "split[1]  8 keys  (not used)",
    ]  # fmt: skip
    assert lines(many, KEY)[1] == "split[0…9]  10 keys"
    assert lines(indexed, KEY)[3] == "split[1…2]  2 keys  (not used)"


def test_random_functions_are_one_draw_each():
    drawn = [node.text.split()[0] for node in record(samplers, KEY).nodes() if node.kind == "draw"]
    assert drawn == ["permutation", "choice", "gamma", "categorical", "truncated_normal", "bits", "poisson"]


def test_loops_tell_their_length():
    nodes = list(record(scan_in_scan, KEY).nodes())
    (row,) = [node for node in nodes if node.text == "each"]
    (inner,) = [node for node in nodes if node.text == "fold_in(i)"]
    assert row.rounds == (3,) and inner.rounds == (4,) and row.count == 1
    assert [node.rounds for node in record(while_splits, KEY).nodes() if node.text == "carried"] == [(None,)]


def test_lines_of_the_reader():
    sources = {node.text: node.source for node in record(two, KEY).nodes()}
    assert sources["split[0]"] == "first, second = random.split(key)"
    assert sources["uniform f32[]"] == "return random.normal(first, (3,)), random.uniform(second)"


def test_a_thousand_keys_stay_small():
    def wide(key):
        return jax.vmap(random.normal)(random.split(key, 1000))

    def deep(key):
        for _ in range(60):
            key, new = random.split(key)
            random.normal(new)
        return random.normal(key)

    assert len(viz.key_tree(wide, KEY)._repr_html_()) < 12 * 1024
    assert len(viz.key_tree(deep, KEY)._repr_html_()) < 200 * 1024


def test_shapes_alone_will_do():
    spec = jax.ShapeDtypeStruct((), KEY.dtype)
    assert repr(viz.key_tree(two, spec)) == repr(viz.key_tree(two, KEY))


def test_the_readers_text_is_escaped():
    def risky(key):
        return random.normal(key)  # <script>alert("no")</script>

    markup = viz.key_tree(risky, KEY)._repr_html_()
    assert "<script>alert" not in markup
    data = re.search(r'data-figure="([^"]*)"', markup)[1].replace("&quot;", '"').replace("&lt;", "<")
    assert len(json.loads(data.replace("&gt;", ">").replace("&#x27;", "'"))["steps"]) == 1


def test_the_functions_own_error_comes_through():
    def raises(key):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        viz.key_tree(raises, KEY)


def test_in_a_browser(browser):
    markup = viz.key_tree(reused, KEY)._repr_html_() * 2 + viz.key_tree(samplers, KEY)._repr_html_()
    page = browser.open(markup)
    figure, second = (page.locator(".viz-key-tree").nth(index) for index in range(2))
    red, hidden = ".viz-key-tree-node.viz-key-tree-wrong", ".viz-key-tree-node.viz-later"
    assert figure.locator(red).count() == 1 and figure.locator(hidden).count() == 0
    figure.locator(".viz-previous").click()
    assert figure.locator(red).count() == 0 and figure.locator(hidden).count() == 1
    assert second.locator(red).count() == 1
    page.keyboard.press("Home")
    assert figure.locator(hidden).count() == 4 and figure.locator(".viz-previous").is_disabled()
    page.keyboard.press("ArrowRight")
    assert "split into 2" in figure.locator(".viz-status").inner_text()
    figure.locator("input").fill("3")
    assert "used wrongly" in figure.locator(".viz-status").inner_text()
    figure.locator(".viz-scroll").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    assert "split[1]" in figure.locator(".viz-status").inner_text()
    assert figure.locator(".viz-key-tree-node.viz-key-tree-on").count() == 2
    page.keyboard.press("Escape")
    assert figure.locator(".viz-key-tree-on").count() == 0
    figure.locator(".viz-key-tree-draw").first.click()
    assert "normal" in figure.locator(".viz-status").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert browser.errors == []
    page = browser.open(markup, scripts=False)
    assert (
        page.locator(".viz-key-tree-box").first.is_visible()
        and page.locator(".viz-key-tree-why").first.is_visible()
    )
    assert not page.locator(".viz-bar").first.is_visible()
