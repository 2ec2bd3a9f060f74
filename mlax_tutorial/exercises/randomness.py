"""The exercises of the chapter Randomness."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, Mistake, checks
from mlax_tutorial.checking.describe import describe, is_key
from mlax_tutorial.checking.programs import fresh, under
from mlax_tutorial.checking.reader import as_theirs, bare
from mlax_tutorial.inspection import jaxprs
from mlax_tutorial.viz import _keys_page, keys

# What several checks share


def _own(function, *more):
    """The reader's function of a key alone, without the guard, so that JAX's own errors come through."""
    own = bare(function)
    return lambda key: own(key, *more)


def _uses_keys_once(function, *more):
    """No key is used twice, neither for JAX's own check nor for the tree of keys, which sees more."""
    alone = _own(function, *more)
    checks.keys(alone, jax.random.key(0))
    try:
        recording = keys.record(alone, jax.random.key(0))
    except Exception as error:
        raise as_theirs(error) from None
    if recording.reused:
        raise Failed(
            "One key is used for two things, and JAX's own check does not see it. Each use needs a key of its own.",
            shown=[("keys", _keys_page.listing(recording).partition("\n")[2])],
        )
    made = [node.text for node in recording.nodes() if node.text == "clone"]
    if made:
        raise Failed(
            "`clone` says that numbers are to be repeated. Here they are to be independent: split the key."
        )


def _no_hidden_state(function, *arguments):
    first, second = function(*arguments), function(*arguments)
    if not np.array_equal(first, second):
        raise Failed(
            "The same key gives other numbers at the second call, so there is a hidden state, as that of "
            "`np.random`: all randomness is to come from `key`.",
            shown=[("first", describe(first)), ("second", describe(second))],
        )


def _over_keys(function, count, *more, seed=1):
    """What the function gives for many keys at once."""
    many = jax.random.split(jax.random.key(seed), count)
    with under("`jax.vmap`"):
        return jax.jit(jax.vmap(lambda key: function(key, *more)))(many)


def _size(function, *arguments):
    """How many equations the function records, inner ones included."""
    with under("`jax.make_jaxpr`"):
        program = jax.make_jaxpr(fresh(function))(*arguments)
    return sum(1 for _ in jaxprs.walk(program))


def _does_not_grow(sizes, what):
    if sizes[-1] > sizes[0] + 8:
        raise Failed(
            f"The program grows with {what}: use `jax.vmap` over keys instead of a Python loop.",
            shown=[("equations", " and ".join(map(str, sizes)))],
        )


def _correlation(x, y):
    x, y = np.asarray(x, np.float64).ravel(), np.asarray(y, np.float64).ravel()
    x, y = x - x.mean(), y - y.mean()
    size = np.sqrt((x * x).sum() * (y * y).sum())
    return float((x * y).sum() / size) if size > 0 else 0.0


# same

_same = {"a": True, "b": True, "c": True, "d": False, "e": True, "f": False}


def _check_same(given):
    key = jax.random.key(3)

    def three(key):
        return jax.random.normal(key, (3,))

    def close(one, two):
        return bool(np.allclose(one, two, rtol=1e-5))

    before = jax.random.key_data(key)
    drawn = three(key)
    wide = jax.random.key_data(jax.random.split(key, 3))
    pairs = {
        "a": (drawn, three(key)),
        "b": (drawn, jax.jit(three)(key)),
        "c": (before, jax.random.key_data(key)),
        "d": (drawn, jax.vmap(jax.random.normal)(jax.random.split(key, 3))),
        "e": (wide, jax.random.key_data(jax.random.split(key, 3))),
        "f": (jax.random.uniform(key, (3,)), jax.random.uniform(key, (3,), jnp.float16)),
    }
    expected = {name: close(*pair) for name, pair in pairs.items()}
    why = {
        "a": {False: "A random function has no memory: the same key and shape give the same numbers."},
        "b": {
            False: "`jit` changes how a function is run, not what it returns; its randomness is in the key."
        },
        "c": {False: "A key is an array, and arrays do not change. To draw from it leaves it as it is."},
        "d": {
            True: "Three numbers from one key, or one from each of three keys: there is no sequential equivalence."
        },
        "e": {False: "`split` is a plain function, too: the same key is split into the same keys."},
        "f": {
            True: "Each dtype is made of as many bits as it needs, so these are other numbers, not rounded ones."
        },
    }
    checks.answers(given, expected, why)


same = Exercise(
    title="Are these the same numbers?",
    stars=1,
    minutes=5,
    why="A random function is a plain function of its key, shape and dtype: what is equal and what is not follows from that.",
    hints=(
        "A random function has no memory: ask whether all its arguments are equal.",
        "Does anything in JAX ever change an array, or a key, in place?",
        "Two lines are False: one uses other keys, one another dtype.",
    ),
    solution=_same,
    check=_check_same,
    mistakes=(
        Mistake(_same | {"a": False}, says="has no memory"),
        Mistake(_same | {"b": False}, says="its randomness is in the key"),
        Mistake(_same | {"c": False}, says="leaves it as it is"),
        Mistake(_same | {"d": True}, says="no sequential equivalence"),
        Mistake(_same | {"e": False}, says="is split into the same keys"),
        Mistake(_same | {"f": True}, says="not rounded ones"),
        Mistake(_same | {"a": "True"}, says="`True` or `False` is asked for"),
        Mistake(list(_same.values()), says="a dict is asked for"),
    ),
)


# augment


def _augment(key, images):
    flip_key, noise_key = jax.random.split(key)
    flip = jax.random.bernoulli(flip_key, 0.5, (len(images), 1, 1))
    images = jnp.where(flip, images[:, :, ::-1], images)
    return images + 0.1 * jax.random.normal(noise_key, images.shape)


def _check_augment(augment):
    images = jnp.asarray(np.random.default_rng(0).permutation(64 * 4 * 5).reshape(64, 4, 5), jnp.float32)
    key = jax.random.key(0)
    if augment(key, images) is None:
        raise Failed("Your function returned None: is a `return` missing?")
    checks.returns(augment, key, images, shape=images.shape, dtype=jnp.float32)
    _no_hidden_state(augment, key, images)
    _uses_keys_once(augment, images)
    got = np.asarray(augment(key, images))
    plain, mirrored = got - np.asarray(images), got - np.asarray(images[:, :, ::-1])
    is_plain = np.abs(plain).max(axis=(1, 2)) < 1.5
    is_mirrored = np.abs(mirrored).max(axis=(1, 2)) < 1.5
    if not (is_plain | is_mirrored).all():
        upside = np.abs(got - np.asarray(images[:, ::-1])).max(axis=(1, 2)) < 1.5
        if upside.any():
            raise Failed("Images are turned upside down: mirror the last axis, the width.")
        raise Failed(
            "Each image should be the given one or its mirror image, plus a little noise: some are neither."
        )
    if not 10 <= is_mirrored.sum() <= 54:
        number = int(is_mirrored.sum())
        raise Failed(
            f"Of 64 images {number} were mirrored, where about half should be: each image needs a coin of its own, "
            "so the coins have the shape (n, 1, 1)."
        )
    noise = np.where(is_mirrored[:, None, None], mirrored, plain) / 0.1
    if np.abs(noise).max() < 0.5:
        raise Failed("There is no noise in the result.")
    if _correlation(noise[0], noise[1]) > 0.9:
        raise Failed("All images get the same noise: draw it in the shape of all images.")
    if _correlation(noise[:, 0], noise[:, 1]) > 0.9:
        raise Failed("All rows of an image get the same noise: draw it in the shape of all images.")
    if _correlation(noise[:, :, 0], noise[:, :, 1]) > 0.9:
        raise Failed("All columns of an image get the same noise: draw it in the shape of all images.")
    few_large = np.abs(noise).max() < 2.2  # of more than a thousand normal numbers
    if not (0.85 < noise.std() < 1.15 and abs(noise.mean()) < 0.15) or few_large:
        raise Failed(
            "The noise should be normal, with mean 0 and standard deviation 0.1.",
            shown=[
                ("noise", f"mean {0.1 * noise.mean():.3f}, standard deviation {0.1 * noise.std():.3f}"),
                ("largest", f"{0.1 * np.abs(noise).max():.3f}"),
            ],
        )
    near = [_correlation(noise[:, i, j], is_mirrored) for i in range(4) for j in range(5)]
    if max(map(abs, [_correlation(noise.ravel()[:64], is_mirrored), *near])) > 0.6:
        raise Failed("The coins and the noise are made of the same bits: each needs a key of its own.")
    flips = [is_mirrored]
    for seed in range(1, 5):
        again = np.asarray(augment(jax.random.key(seed), images))
        plain, turned = again - np.asarray(images), again - np.asarray(images[:, :, ::-1])
        flips.append(np.abs(turned).max(axis=(1, 2)) < 1.5)
        if _correlation(np.where(flips[-1][:, None, None], turned, plain), noise) > 0.9:
            raise Failed("The noise is the same for another key: draw it from a part of `key`.")
    if (np.array(flips) == flips[0]).all():
        raise Failed("The same images are mirrored for every key: draw the coins from a part of `key`.")
    mirrored = np.sum(flips)
    if abs(mirrored - 160) > 54:
        raise Failed(f"With five keys {mirrored} of 320 images were mirrored, where about half should be.")
    checks.works_under_jit(augment, key, images)


def _augment_as_given(key, images):
    flip = jax.random.bernoulli(key, 0.5, (len(images), 1, 1))
    images = jnp.where(flip, images[:, :, ::-1], images)
    return images + 0.1 * jax.random.normal(key, images.shape)


def _augment_with(
    flip_key,
    noise_key,
    probability=0.5,
    flip_shape=None,
    noise_shape=None,
    scale=0.1,
    mirror=None,
    draw=jax.random.normal,
):
    def augment(key, images):
        flip = jax.random.bernoulli(flip_key(key), probability, flip_shape or (len(images), 1, 1))
        turned = images[:, :, ::-1] if mirror is None else mirror(images)
        images = jnp.where(flip, turned, images)
        return images + scale * draw(noise_key(key), noise_shape or images.shape)

    return augment


def _first(key):
    return jax.random.split(key)[0]


def _second(key):
    return jax.random.split(key)[1]


def _augment_split_and_old(key, images):
    flip_key, _ = jax.random.split(key)
    flip = jax.random.bernoulli(flip_key, 0.5, (len(images), 1, 1))
    images = jnp.where(flip, images[:, :, ::-1], images)
    return images + 0.1 * jax.random.normal(key, images.shape)


def _augment_half_mended(key, images):
    flip_key, noise_key = jax.random.split(key)
    flip = jax.random.bernoulli(flip_key, 0.5, (len(images), 1, 1))
    images = jnp.where(flip, images[:, :, ::-1], images)
    return images + 0.1 * jax.random.normal(flip_key, images.shape)


def _fold(number):
    return lambda key: jax.random.fold_in(key, number)


_pair = jax.random.split


def _augment_split_with(**changes):
    def augment(key, images):
        one, two = _pair(key)
        return _augment_with(lambda _: one, lambda _: two, **changes)(key, images)

    return augment


def _augment_fixed_noise(key, images):
    flip = jax.random.bernoulli(key, 0.5, (len(images), 1, 1))
    noise = np.random.RandomState(0).normal(size=images.shape).astype(np.float32)
    return jnp.where(flip, images[:, :, ::-1], images) + 0.1 * noise


def _augment_hidden_state(key, images):
    flip = jax.random.bernoulli(key, 0.5, (len(images), 1, 1))
    noise = np.random.normal(size=images.shape).astype(np.float32)  # noqa: NPY002
    return jnp.where(flip, images[:, :, ::-1], images) + 0.1 * noise


def _augment_every_other(key, images):
    flip = (jnp.arange(len(images)) % 2 == 0)[:, None, None]
    images = jnp.where(flip, images[:, :, ::-1], images)
    return images + 0.1 * jax.random.normal(key, images.shape)


def _uniform(key, shape):
    """Of mean 0 and standard deviation 1, as normal numbers are."""
    return jax.random.uniform(key, shape, minval=-(3**0.5), maxval=3**0.5)


def _augment_coins_from_noise(key, images):
    noise = jax.random.normal(key, images.shape)
    flip = noise[:, :1, :1] > 0
    return jnp.where(flip, images[:, :, ::-1], images) + 0.1 * noise


def _augment_no_return(key, images):
    _augment(key, images)


augment = Exercise(
    title="Mend a reused key",
    stars=1,
    minutes=10,
    why="Two draws from one key are not independent, and nothing in shapes or histograms shows it: one key, one use.",
    hints=(
        "Count the draws: each needs a key of its own.",
        "`flip_key, noise_key = jax.random.split(key)`, and `key` is used no more.",
    ),
    solution=_augment,
    check=_check_augment,
    mistakes=(
        Mistake(_augment_as_given, says="A random key is used twice"),
        Mistake(_augment_hidden_state, says="a hidden state"),
        Mistake(_augment_split_and_old, says="A random key is used twice"),
        Mistake(_augment_half_mended, says="A random key is used twice"),
        Mistake(_augment_with(_first, _second), says="A random key is used twice"),
        Mistake(_augment_with(_fold(0), _fold(0)), says="JAX's own check does not see it"),
        Mistake(_augment_with(lambda key: key, _fold(1)), says="JAX's own check does not see it"),
        Mistake(_augment_with(lambda key: key, jax.random.clone), says="`clone` says"),
        Mistake(
            _augment_with(lambda _: jax.random.key(0), lambda _: jax.random.key(1)),
            says="does not depend on the key",
        ),
        Mistake(_augment_split_with(flip_shape=(1, 1, 1)), says="a coin of its own"),
        Mistake(_augment_split_with(noise_shape=(4, 5)), says="All images get the same noise"),
        Mistake(_augment_split_with(noise_shape=(64, 1, 5)), says="All rows of an image"),
        Mistake(_augment_split_with(noise_shape=(64, 4, 1)), says="All columns of an image"),
        Mistake(_augment_split_with(scale=0.2), says="mean 0 and standard deviation 0.1"),
        Mistake(_augment_split_with(scale=0.0), says="There is no noise"),
        Mistake(_augment_split_with(mirror=lambda images: images[:, ::-1]), says="upside down"),
        Mistake(_augment_coins_from_noise, says="made of the same bits"),
        Mistake(_augment_with(lambda key: key, lambda _: jax.random.key(1)), says="The noise is the same"),
        Mistake(_augment_fixed_noise, says="The noise is the same"),
        Mistake(_augment_with(lambda _: jax.random.key(1), lambda key: key), says="for every key"),
        Mistake(_augment_every_other, says="for every key"),
        Mistake(_augment_split_with(probability=0.25), says="of 320 images were mirrored"),
        Mistake(_augment_split_with(draw=_uniform), says="mean 0 and standard deviation 0.1"),
        Mistake(_augment_no_return, says="`return` missing"),
    ),
)


# draws


def _draws(key, start, count):
    def draw(step):
        return jax.random.normal(jax.random.fold_in(key, step))

    return jax.vmap(draw)(start + jnp.arange(count))


def _check_draws(draws):
    key = jax.random.key(0)
    checks.returns(draws, key, 0, 8, shape=(8,), dtype=jnp.float32)
    whole = draws(key, 0, 8)
    if len(np.unique(np.asarray(whole))) == 1:
        raise Failed("All steps get the same number: each needs a key of its own.", got=whole)
    for start, count in ((0, 4), (5, 3), (7, 1), (2, 2)):
        part = draws(key, start, count)
        name = f"draws(key, {start}, {count})"
        if part.shape != (count,):
            raise Failed(f"The shape of `{name}` is wrong: expected ({count},), got {part.shape}.")
        if not np.allclose(part, whole[start : start + count], rtol=1e-5):
            again = start > 0 and np.allclose(part, whole[:count], rtol=1e-5)
            reason = (
                "It does not depend on `start`: step 5 gets what step 0 should get."
                if again
                else "What a step gets depends on where one starts, or on how many are asked for."
            )
            raise Failed(
                reason,
                shown=[
                    ("draws(key, 0, 8)", describe(whole)),
                    (name, describe(part)),
                    ("expected", describe(whole[start : start + count])),
                ],
            )
    later = jnp.concatenate([whole, draws(key, 8, 8), draws(key, 1000, 8)])
    if len(np.unique(np.asarray(later))) < 24:
        raise Failed(
            "Of the steps 0 to 15 and 1000 to 1007 two get the same number: each step needs a key of its own."
        )
    with under("`jax.jit`, where `start` is traced"):
        late = jax.jit(lambda key, start: draws(key, start, 4))(key, 3)
    checks.same(late, whole[3:7], where="under `jax.jit`", input="start = 3, count = 4")
    _does_not_grow([_size(lambda key, n=n: draws(key, 0, n), key) for n in (4, 40)], "`count`")
    own = bare(draws)
    checks.keys(lambda key: own(key, 0, 8), key)
    many = np.asarray(_over_keys(draws, 400, 0, 8))
    if not (np.abs(many.mean(axis=0)) < 0.25).all() or not (np.abs(many.std(axis=0) - 1) < 0.2).all():
        raise Failed(
            "The numbers should be normal, with mean 0 and standard deviation 1.",
            shown=[("over 400 keys", f"mean {many.mean():.2f}, standard deviation {many.std():.2f}")],
        )
    near = np.abs(np.corrcoef(many.T) - np.eye(8)).max()
    if near > 0.35:
        raise Failed("The numbers of different steps are not independent of each other.")
    if abs((np.abs(many) > 2).mean() - 0.0455) > 0.02:
        raise Failed("The numbers should be normal: too many or too few of them are larger than 2.")
    two = jax.jit(lambda key, start: draws(key, start, 2))
    far = [two(key, start) for start in (65_536, 2_000_000, 1_000_000_000)]
    if len(np.unique(np.asarray(jnp.concatenate([whole, *far])))) < 14:
        raise Failed(
            "Steps far from each other get the same number: a table comes to its end, and small integers wrap around. "
            "Make a step's key from its whole number."
        )


def _draws_one_shape(key, start, count):
    return jax.random.normal(key, (count,))


def _draws_fold_start(key, start, count):
    return jax.random.normal(jax.random.fold_in(key, start), (count,))


def _draws_no_start(key, start, count):
    return jax.vmap(lambda step: jax.random.normal(jax.random.fold_in(key, step)))(jnp.arange(count))


def _draws_seeds(key, start, count):
    return jax.vmap(lambda step: jax.random.normal(jax.random.key(step)))(start + jnp.arange(count))


def _draws_cut(key, start, count):
    return jax.vmap(jax.random.normal)(jax.random.split(key, start + count)[start:])


def _draws_loop(key, start, count):
    return jnp.stack([jax.random.normal(jax.random.fold_in(key, start + i)) for i in range(count)])


def _draws_chain(key, start, count):
    for _ in range(start):
        key, _ = jax.random.split(key)
    numbers = []
    for _ in range(count):
        key, new = jax.random.split(key)
        numbers.append(jax.random.normal(new))
    return jnp.stack(numbers)


def _draws_uniform(key, start, count):
    return jax.vmap(lambda step: jax.random.uniform(jax.random.fold_in(key, step)))(start + jnp.arange(count))


def _draws_same_key(key, start, count):
    return jax.vmap(lambda step: jax.random.normal(key))(start + jnp.arange(count))


def _draws_scaled(key, start, count):
    return jax.random.normal(key) * (1.0 + start + jnp.arange(count))


def _draws_periodic(key, start, count):
    return jnp.take(jax.random.normal(key, (8,)), start + jnp.arange(count), mode="wrap")


def _draws_table(key, start, count):
    keys = jax.random.split(key, 10_000)
    return jax.vmap(jax.random.normal)(jax.lax.dynamic_slice(keys, (start,), (count,)))


def _draws_of(dtype):
    def draws(key, start, count):
        steps = (start + jnp.arange(count)).astype(dtype)
        return jax.vmap(lambda step: jax.random.normal(jax.random.fold_in(key, step)))(steps)

    return draws


def _draws_clamped(key, start, count):
    return jax.lax.dynamic_slice(jax.random.normal(key, (1000,)), (start,), (count,))


def _draws_column(key, start, count):
    return _draws(key, start, count)[:, None]


draws = Exercise(
    title="Numbers for any step",
    stars=2,
    minutes=10,
    why="A key that belongs to a step by its number lets a run resume anywhere, and compiled loops need no chain of keys.",
    hints=(
        "Write the function of one step first: which key belongs to step 7, wherever one starts?",
        "`jax.random.fold_in(key, step)` makes it; `jax.vmap` maps the function over `start + jnp.arange(count)`.",
    ),
    solution=_draws,
    check=_check_draws,
    mistakes=(
        Mistake(_draws_one_shape, says="It does not depend on `start`"),
        Mistake(_draws_no_start, says="It does not depend on `start`"),
        Mistake(_draws_fold_start, says="depends on where one starts"),
        Mistake(_draws_seeds, says="does not depend on the key"),
        Mistake(_draws_cut, says="a traced number stands where a plain one is needed"),
        Mistake(_draws_chain, says="where Python needs a whole number"),
        Mistake(_draws_loop, says="grows with `count`"),
        Mistake(_draws_uniform, says="mean 0 and standard deviation 1"),
        Mistake(_draws_scaled, says="mean 0 and standard deviation 1"),
        Mistake(_draws_same_key, says="All steps get the same number"),
        Mistake(_draws_periodic, says="two get the same number"),
        Mistake(_draws_table, says="a table comes to its end"),
        Mistake(_draws_of(jnp.uint8), says="a table comes to its end"),
        Mistake(_draws_of(jnp.uint16), says="a table comes to its end"),
        Mistake(_draws_clamped, says="a table comes to its end"),
        Mistake(_draws_column, says="The shape is wrong"),
        Mistake(lambda key, start, count: list(_draws(key, start, count)), says="returned a list"),
    ),
)


# drop_batch


def _drop_batch(drop, key, batch):
    return jax.vmap(drop)(jax.random.split(key, len(batch)), batch)


def _check_drop_batch(drop_batch):
    own, key = bare(drop_batch), jax.random.key(0)
    seen = []

    def drop(key, x):
        seen.append((is_key(key), jnp.shape(key), jnp.shape(x)))
        if seen[-1][:2] != (True, ()):
            return x
        return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, 0.0)

    batch = jnp.ones((6, 20))
    got = drop_batch(drop, key, batch)
    if not seen:
        raise Failed("Your function does not call `drop`.")
    if (bad := [each for each in seen if not each[0]]) and bad:
        raise Failed(
            "`drop` is called with something that is no key: it takes the key first, then the example."
        )
    for _, key_shape, x_shape in seen:
        if x_shape == batch.shape:
            raise Failed(
                "`drop` is called with the whole batch. It is a function for one example: map it with `jax.vmap`."
            )
        if key_shape != ():
            raise Failed(f"`drop` is called with {key_shape[0]} keys at once: one example, one key.")
        if x_shape != (20,):
            raise Failed(
                f"`drop` is called with an array of shape {x_shape}; one example has the shape (20,)."
            )
    checks.returns(drop_batch, drop, key, batch, shape=(6, 20), dtype=jnp.float32)
    rows = np.asarray(got)
    different = len(np.unique(rows, axis=0))
    if different < 6:
        raise Failed(
            f"Six equal examples got {different} different mask{'s' if different > 1 else ''}: each needs a key of its "
            "own, so map over keys, too.",
            got=got,
        )
    sizes = []
    for n in (2, 9):
        values = jnp.arange(n * 3.0).reshape(n, 3)
        unchanged = drop_batch(lambda key, x: x, key, values)
        checks.same(unchanged, values, input={"drop": "lambda key, x: x", "batch": values})
        sizes.append(_size(lambda key, values: own(drop, key, values), key, values))
        given = drop_batch(lambda key, x: jax.random.key_data(key), key, values)
        if len(np.unique(np.asarray(given), axis=0)) < n:
            raise Failed(
                f"In a batch of {n} two examples get the same key: make as many keys as there are examples."
            )
        other = drop_batch(lambda key, x: jax.random.key_data(key), jax.random.key(1), values)
        if n < len(np.unique(np.concatenate([given, other]), axis=0)) < 2 * n:
            raise Failed(
                "For another key some of the same keys are made: split it, and compute nothing with it."
            )
        same = np.unique(
            np.asarray(drop_batch(lambda key, x: jax.random.key_data(key), key, 0 * values)), axis=0
        )
        if len(same) < n:
            raise Failed(
                "Equal examples get equal keys: a key should come from its place in the batch, not from numbers."
            )
    _does_not_grow(sizes, "the batch")
    _uses_keys_once(lambda key, batch: own(drop, key, batch), batch)
    if len(got) == 6 and _correlation(rows[0], rows[1]) > 0.95:
        raise Failed("The masks of two examples are the same.")
    checks.works_under_jit(lambda key, batch: drop_batch(drop, key, batch), key, batch)


def _drop_one_key(drop, key, batch):
    return jax.vmap(drop, in_axes=(None, 0))(key, batch)


def _drop_whole(drop, key, batch):
    return drop(key, batch)


def _drop_loop(drop, key, batch):
    return jnp.stack([drop(k, x) for k, x in zip(jax.random.split(key, len(batch)), batch, strict=True)])


def _drop_seeds(drop, key, batch):
    return jax.vmap(drop)(jax.vmap(jax.random.key)(jnp.arange(len(batch))), batch)


def _drop_two_keys(drop, key, batch):
    keys = jnp.concatenate([jax.random.split(key)] * len(batch))[: len(batch)]
    return jax.vmap(drop)(keys, batch)


def _drop_all_keys(drop, key, batch):
    return jax.vmap(drop, in_axes=(None, 0))(jax.random.split(key, len(batch)), batch)


def _drop_swapped(drop, key, batch):
    return jax.vmap(drop)(batch, jax.random.split(key, len(batch)))


def _drop_first_key(drop, key, batch):
    return jax.vmap(drop, in_axes=(None, 0))(jax.random.split(key, len(batch))[0], batch)


def _drop_by_content(drop, key, batch):
    def one(x):
        return drop(jax.random.fold_in(key, x.sum().astype(jnp.uint32)), x)

    return jax.vmap(one)(batch)


def _drop_counted(drop, key, batch):
    steps = jnp.arange(len(batch), dtype=jnp.uint32)
    data = jax.random.key_data(key) + jnp.stack([jnp.zeros_like(steps), steps], axis=-1)
    return jax.vmap(drop)(jax.random.wrap_key_data(data), batch)


def _drop_columns(drop, key, batch):
    return jax.vmap(drop, in_axes=(0, 1), out_axes=1)(jax.random.split(key, batch.shape[1]), batch)


def _drop_own_mask(drop, key, batch):
    return jnp.where(jax.random.bernoulli(key, 0.5, batch.shape), batch, 0.0)


def _drop_and_fold(drop, key, batch):
    first, *_ = jax.random.split(key)
    keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(len(batch)))
    return jax.vmap(drop)(keys, batch) + 0 * jax.random.normal(first)


def _drop_no_return(drop, key, batch):
    jax.vmap(drop)(jax.random.split(key, len(batch)), batch)


drop_batch = Exercise(
    title="A mask for each example",
    stars=2,
    minutes=10,
    why="Code for one example plus an axis of keys is code for a batch, and each example keeps its own randomness.",
    hints=(
        "`jax.vmap` maps over all arguments that have a leading axis. Which of the two has none yet?",
        "Split the key into as many keys as there are examples: `jax.random.split(key, len(batch))`.",
    ),
    solution=_drop_batch,
    check=_check_drop_batch,
    mistakes=(
        Mistake(_drop_one_key, says="got 1 different mask"),
        Mistake(_drop_first_key, says="got 1 different mask"),
        Mistake(_drop_two_keys, says="got 2 different masks"),
        Mistake(_drop_by_content, says="got 1 different mask"),
        Mistake(_drop_counted, says="some of the same keys"),
        Mistake(_drop_whole, says="with the whole batch"),
        Mistake(_drop_loop, says="grows with the batch"),
        Mistake(_drop_seeds, says="does not depend on the key"),
        Mistake(_drop_all_keys, says="keys at once"),
        Mistake(_drop_swapped, says="no key: it takes the key first"),
        Mistake(_drop_columns, says="one example has the shape"),
        Mistake(_drop_own_mask, says="does not call `drop`"),
        Mistake(_drop_and_fold, says="JAX's own check does not see it"),
        Mistake(_drop_no_return, says="`return` missing"),
    ),
)


# estimate_pi


def _estimate_pi(key, n):
    x_key, y_key = jax.random.split(key)
    x, y = jax.random.uniform(x_key, (n,)), jax.random.uniform(y_key, (n,))
    inside = (x**2 + y**2 < 1).mean()
    return 4 * inside, 4 * jnp.sqrt(inside * (1 - inside) / n)


def _check_estimate_pi(estimate_pi):
    key, n = jax.random.key(0), 1000
    got = estimate_pi(key, n)
    if got is None:
        raise Failed("Your function returned None: is a `return` missing?")
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        raise Failed("Return two scalars: the estimate, and its standard error.", got=got)
    for name, value in zip(("estimate", "standard error"), got, strict=True):
        checks.returns(lambda key, value=value: value, key, shape=())
        if not jnp.issubdtype(value.dtype, jnp.floating):
            raise Failed(f"The {name} should be a floating number.", got=got)
    estimates, errors = (np.asarray(part, np.float64) for part in _over_keys(estimate_pi, 400, n))
    shown = [
        (
            "400 keys, n = 1000",
            f"estimates {estimates.mean():.3f} on average, from {estimates.min():.3f} to {estimates.max():.3f}",
        )
    ]
    if not np.isfinite(estimates).all() or not np.isfinite(errors).all():
        raise Failed("An estimate or its error is not a finite number.", got=got)
    center, spread = estimates.mean(), estimates.std()
    if spread < 1e-6:
        own = bare(estimate_pi)
        checks.keys(lambda key: own(key, n), key)
        raise Failed("The estimates for different keys are all the same.", got=got)
    if abs(center - np.pi) > 0.02:
        for value, reason in (
            (
                4 * np.sqrt(0.5),
                "Both coordinates are the same number: all points lie on a diagonal. Draw them from two keys.",
            ),
            (np.pi / 4, "This is the share of points inside; it is to be multiplied by 4."),
            (4 * (1 - np.exp(-0.5)), "The points are normal; in a square they are uniform."),
            (4 * (1 - np.pi / 4), "This counts the points outside of the circle."),
            (2.0, "The coordinates are compared without being squared."),
            (np.pi / 2, "A factor is missing: the share of points inside is pi / 4."),
            (np.pi**2 / 4, "The radius of the circle is 1, and the square's side is 2."),
        ):
            if abs(center - value) < 0.03:
                raise Failed(reason, shown=shown)
        raise Failed("The estimates are not those of pi.", shown=shown)
    if not 0.75 < spread / 0.0519 < 1.3:
        raise Failed(
            "The estimates are right on average, but they scatter otherwise than those of n independent points.",
            shown=[*shown, ("they scatter by", f"{spread:.4f}; expected 0.052")],
        )
    ratio = errors.mean() / spread
    if not 0.8 < ratio < 1.25:
        for value, reason in (
            (
                np.sqrt(n),
                "This is the standard deviation of one throw. That of the mean of n is smaller: divide by the root of n.",
            ),
            (1 / 4, "The estimate is 4 times the share of points inside, and so is its error."),
            (
                np.sqrt(n) / 4,
                "This is the standard deviation of one throw. That of the mean of n is smaller: divide by the root of n.",
            ),
            (spread, "This is the variance: the standard error is its root."),
            (n * spread, "This is the variance of one throw: divide by n, then take the root."),
            (1 / np.sqrt(n), "This divides by n, where it should by the root of n."),
            (
                1 / (0.0519 * np.sqrt(n)),
                "This is 1 over the root of n: the standard deviation of one throw is missing.",
            ),
            (2.0, "These are two standard errors; one is asked for."),
            (1.96, "These are two standard errors; one is asked for."),
        ):
            if 0.85 < ratio / value < 1.15:
                raise Failed(
                    reason,
                    shown=[("error", f"{errors.mean():.4g}"), ("the estimates scatter by", f"{spread:.4g}")],
                )
        if abs(errors.mean() - np.abs(estimates - np.pi).mean()) < 1e-3:
            raise Failed(
                "This is the distance from pi itself, which nobody knows beforehand: estimate it from the throws."
            )
        raise Failed(
            "The standard error does not fit: over many keys the estimates scatter otherwise than it says.",
            shown=[("error", f"{errors.mean():.4g}"), ("the estimates scatter by", f"{spread:.4g}")],
        )
    if np.ptp(errors) < 1e-7:
        raise Failed(
            "The standard error is the same for each key: does it know pi beforehand? Estimate it from the throws.",
            shown=[("error", f"{errors.mean():.4g}, for 400 keys")],
        )
    if _correlation(errors, np.abs(estimates - np.pi)) > 0.95:
        raise Failed(
            "This is the distance from pi itself, which nobody knows beforehand: estimate it from the throws."
        )
    _uses_keys_once(estimate_pi, n)
    few = np.asarray(_over_keys(estimate_pi, 50, 100)[1]).mean()
    if not 0.13 < few < 0.2:
        raise Failed(
            "For n = 100 the standard error is not right: it should be larger by the root of 10 than for n = 1000.",
            shown=[("error", f"{few:.4g}; expected about 0.164")],
        )


def _pi_with(points, error=None, factor=4.0):
    def estimate_pi(key, n):
        inside = points(key, n)
        mean = inside.mean()
        spread = jnp.sqrt(mean * (1 - mean))
        return factor * mean, (4 * spread / jnp.sqrt(n) if error is None else error(spread, n))

    return estimate_pi


def _in_quarter(key, n):
    return (jax.random.uniform(key, (n, 2)) ** 2).sum(-1) < 1


def _on_diagonal(key, n):
    return 2 * jax.random.uniform(key, (n,)) ** 2 < 1


def _same_for_both(key, n):
    x, y = jax.random.uniform(key, (n,)), jax.random.uniform(key, (n,))
    return x**2 + y**2 < 1


def _normal_points(key, n):
    return (jax.random.normal(key, (n, 2)) ** 2).sum(-1) < 1


def _fixed_points(key, n):
    return _in_quarter(jax.random.key(0), n)


def _split_and_used(key, n):
    other, _ = jax.random.split(key)
    x, y = jax.random.uniform(key, (n,)), jax.random.uniform(other, (n,))
    return x**2 + y**2 < 1


def _few_points(key, n):
    return (jax.random.uniform(key, (n // 4, 2)) ** 2).sum(-1) < 1


def _pi_only(key, n):
    return 4 * _in_quarter(key, n).mean()


def _pi_outside(key, n):
    return (jax.random.uniform(key, (n, 2)) ** 2).sum(-1) > 1


def _pi_distance(key, n):
    estimate = 4 * _in_quarter(key, n).mean()
    return estimate, jnp.abs(estimate - jnp.pi)


def _pi_on_the_host(key, n):
    return float(_pi_only(key, n)), 0.05


def _pi_unsquared(key, n):
    return jax.random.uniform(key, (n, 2)).sum(-1) < 1


estimate_pi = Exercise(
    title="Monte Carlo pi, with error bars",
    stars=2,
    minutes=10,
    why="An estimate from random numbers is worth as much as its error bar, and the same numbers give both.",
    hints=(
        "By symmetry a quarter will do: x and y uniform in [0, 1), and inside means x² + y² < 1.",
        "Throws are zeros and ones: where the share of ones is p, one throw has the variance p (1 - p).",
        "The standard error of the share is the root of p (1 - p) / n. The estimate is 4 p; what is its error?",
    ),
    solution=_estimate_pi,
    check=_check_estimate_pi,
    mistakes=(
        Mistake(_pi_with(_same_for_both), says="Both coordinates are the same number"),
        Mistake(_pi_with(_on_diagonal), says="Both coordinates are the same number"),
        Mistake(_pi_with(_normal_points), says="The points are normal"),
        Mistake(_pi_with(_in_quarter, factor=1.0), says="to be multiplied by 4"),
        Mistake(_pi_with(_pi_outside), says="outside of the circle"),
        Mistake(_pi_with(_pi_unsquared), says="without being squared"),
        Mistake(_pi_with(_fixed_points), says="does not depend on the key"),
        Mistake(_pi_with(_split_and_used), says="A random key is used twice"),
        Mistake(_pi_with(_few_points), says="scatter otherwise than those of n"),
        Mistake(_pi_with(_in_quarter, lambda s, n: 4 * s), says="divide by the root of n"),
        Mistake(_pi_with(_in_quarter, lambda s, n: s / jnp.sqrt(n)), says="and so is its error"),
        Mistake(_pi_with(_in_quarter, lambda s, n: 16 * s**2 / n), says="This is the variance: "),
        Mistake(_pi_with(_in_quarter, lambda s, n: 4 * s / n), says="where it should by the root of n"),
        Mistake(_pi_with(_in_quarter, lambda s, n: 8 * s / jnp.sqrt(n)), says="two standard errors"),
        Mistake(_pi_with(_in_quarter, lambda s, n: 1 / jnp.sqrt(n)), says="1 over the root of n"),
        Mistake(_pi_with(_in_quarter, lambda s, n: 0.0519 + 0 * s), says="the same for each key"),
        Mistake(
            _pi_with(_in_quarter, lambda s, n: jnp.sqrt(jnp.pi * (4 - jnp.pi) / n)),
            says="the same for each key",
        ),
        Mistake(_pi_with(_in_quarter, lambda s, n: 4 * s / jnp.sqrt(1000)), says="For n = 100"),
        Mistake(_pi_distance, says="the distance from pi itself"),
        Mistake(_pi_only, says="Return two scalars"),
        Mistake(_pi_on_the_host, says="but a jax.Array is asked for"),
    ),
)


# epochs


def _epochs(key, examples, count):
    def order(key):
        return jax.random.permutation(key, examples)

    return jax.vmap(order)(jax.random.split(key, count))


def _check_epochs(epochs):
    key = jax.random.key(0)
    got = epochs(key, 10, 4)
    checks.returns(epochs, key, 10, 4, shape=(4, 10))
    if not jnp.issubdtype(got.dtype, jnp.integer):
        raise Failed(f"The numbers of examples are integers, but the dtype is {got.dtype}.", got=got)
    rows = np.asarray(got)
    if not (np.sort(rows, axis=1) == np.arange(10)).all():
        row = next(row for row in rows if sorted(row) != list(range(10)))
        low, high = row.min(), row.max()
        if low < 0 or high > 9:
            raise Failed(
                f"Examples are numbered from 0 to 9, but there is a {low if low < 0 else high}.", got=got
            )
        raise Failed(
            "In one epoch some examples come twice, and others not at all: draw a permutation, without repetition.",
            shown=[("one epoch", describe(row))],
        )
    if (rows == rows[0]).all():
        reason = (
            "in the order of their numbers: nothing is shuffled"
            if (rows[0] == np.arange(10)).all()
            else "alike"
        )
        raise Failed(f"All epochs are {reason}.", got=got)
    if (rows == np.arange(10)).all(axis=1).any():
        raise Failed("One of the epochs is not shuffled.", got=got)
    _uses_keys_once(epochs, 10, 4)
    with under("`jax.jit`"):
        checks.same(jax.jit(lambda key: epochs(key, 10, 4))(key), got, where="under `jax.jit`")
    number = 3600
    many = np.asarray(_over_keys(epochs, number, 3, 4))
    codes = many @ np.array([9, 3, 1])  # one number for each order of three
    orders = np.unique(codes)
    is_order = codes[:, :, None] == orders  # (keys, epochs, orders)
    expected = number / 36
    each = [("3,600 keys", "3 examples, 4 epochs")]
    turns = ("first", "second", "third", "fourth")
    for turn, counts in zip(turns, is_order.sum(axis=0), strict=True):
        if len(orders) < 6 or np.abs(counts - 6 * expected).max() > 6 * np.sqrt(6 * expected):
            raise Failed(
                f"In the {turn} epoch not all orders are equally likely.",
                shown=[*each, ("orders come", f"{counts.min()} to {counts.max()} times; expected about 600")],
            )
    for one, other in itertools.combinations(range(4), 2):
        table = is_order[:, one].astype(int).T @ is_order[:, other].astype(int)
        if np.abs(table - expected).max() > 6.5 * np.sqrt(expected):
            raise Failed(
                f"Each epoch by itself is shuffled well, but the {turns[other]} has to do with the {turns[one]}: draw "
                "each from a key of its own.",
                shown=[
                    *each,
                    ("pairs of orders come", f"{table.min()} to {table.max()} times; expected about 100"),
                ],
            )


def _epochs_choice(key, examples, count):
    return jax.random.randint(key, (count, examples), 0, examples)


def _epochs_same(key, examples, count):
    return jnp.tile(jax.random.permutation(key, examples), (count, 1))


def _epochs_shuffled_rows(key, examples, count):
    return jax.random.permutation(key, jnp.tile(jnp.arange(examples), (count, 1)), axis=1)


def _epochs_all_at_once(key, examples, count):
    return jax.random.permutation(key, jnp.tile(jnp.arange(examples), count)).reshape(count, examples)


def _epochs_loop_one_key(key, examples, count):
    return jnp.stack([jax.random.permutation(key, examples) for _ in range(count)])


def _epochs_folded_the_same(key, examples, count):
    return jnp.stack([jax.random.permutation(jax.random.fold_in(key, 1), examples) for _ in range(count)])


def _epochs_rolled(key, examples, count):
    order = jax.random.permutation(key, examples)
    return jax.vmap(lambda i: jnp.roll(order, i))(jnp.arange(count))


def _epochs_seeds(key, examples, count):
    return jax.vmap(lambda i: jax.random.permutation(jax.random.key(i), examples))(jnp.arange(count))


def _epochs_first_plain(key, examples, count):
    later = _epochs(key, examples, count - 1)
    return jnp.concatenate([jnp.arange(examples)[None], later])


def _epochs_numpy(key, examples, count):
    rng = np.random.default_rng(int(jax.random.bits(key)))
    return jnp.stack([jnp.asarray(rng.permutation(examples)) for _ in range(count)])


def _epochs_from_one(key, examples, count):
    return _epochs(key, examples, count) + 1


def _epochs_reversed(key, examples, count):
    order = jax.random.permutation(key, examples)
    return jnp.stack([order if i % 2 == 0 else order[::-1] for i in range(count)])


def _epochs_two_and_mirrored(key, examples, count):
    rows = _epochs(key, examples, max(2, (count + 1) // 2))
    return jnp.concatenate([rows, rows[:, ::-1]])[:count]


def _epochs_coarse(key, examples, count):
    coarse = jax.random.randint(key, (count, examples), 0, 5)
    return jnp.argsort(coarse, axis=1)


def _epochs_transposed(key, examples, count):
    return _epochs(key, examples, count).T


def _epochs_plain(key, examples, count):
    return jnp.tile(jnp.arange(examples), (count, 1))


epochs = Exercise(
    title="Shuffled epochs without repetition",
    stars=2,
    minutes=10,
    why="All orders of all epochs come from one key: a run that is resumed knows at once where it was.",
    hints=(
        "One epoch is `jax.random.permutation(key, examples)`.",
        "Write the function for one key, and map it over `jax.random.split(key, count)`.",
    ),
    solution=_epochs,
    check=_check_epochs,
    mistakes=(
        Mistake(_epochs_choice, says="without repetition"),
        Mistake(_epochs_all_at_once, says="without repetition"),
        Mistake(_epochs_same, says="All epochs are alike"),
        Mistake(_epochs_shuffled_rows, says="All epochs are alike"),
        Mistake(_epochs_loop_one_key, says="All epochs are alike"),
        Mistake(_epochs_folded_the_same, says="All epochs are alike"),
        Mistake(_epochs_plain, says="nothing is shuffled"),
        Mistake(_epochs_rolled, says="has to do with the first"),
        Mistake(_epochs_reversed, says="has to do with the first"),
        Mistake(_epochs_two_and_mirrored, says="has to do with the first"),
        Mistake(_epochs_seeds, says="does not depend on the key"),
        Mistake(_epochs_first_plain, says="One of the epochs is not shuffled"),
        Mistake(_epochs_coarse, says="not all orders are equally likely"),
        Mistake(_epochs_numpy, says="a traced array"),
        Mistake(_epochs_from_one, says="numbered from 0 to 9"),
        Mistake(_epochs_transposed, says="The shape is wrong"),
    ),
)


# bootstrap


def _bootstrap(key, x, statistic, count):
    def once(key):
        rows = jax.random.randint(key, (len(x),), 0, len(x))
        return statistic(x[rows])

    return jax.vmap(once)(jax.random.split(key, count))


def _check_bootstrap(bootstrap):
    rng, key = np.random.default_rng(0), jax.random.key(0)
    x = jnp.asarray(np.round(rng.normal(3, 2, 40), 2), jnp.float32)
    checks.returns(bootstrap, key, x, jnp.mean, 5, shape=(5,), dtype=jnp.float32)

    def run(x, statistic, count):
        with under("`jax.jit`"):
            return np.asarray(jax.jit(lambda key, x: bootstrap(key, x, statistic, count))(key, x))

    _does_not_grow([_size(lambda key, n=n: bootstrap(key, x, jnp.mean, n), key) for n in (4, 40)], "`count`")
    seen = []

    def size(sample):
        seen.append(sample.shape)
        return jnp.float32(sample.shape[0])

    sizes = run(x, size, 5)
    if not seen:
        raise Failed("Your function does not call `statistic`.")
    if wrong := [shape for shape in seen[-1:] if not shape or shape[0] != 40]:
        raise Failed(
            f"`statistic` gets an array of shape {wrong[0]}, where x has 40 observations: draw as many as there are."
        )
    if not (sizes == 40).all():
        raise Failed("The results are not what `statistic` returned for the samples.", got=sizes)
    chosen = run(jnp.eye(8), lambda sample: sample.sum(0), 400)  # how often each of eight was drawn
    if chosen.shape != (400, 8):
        raise Failed(
            "Here the statistic is a vector of 8 numbers and `count` is 400: the result should have the shape "
            f"(400, 8), but it has {chosen.shape}."
        )
    if (chosen == 1).all():
        raise Failed(
            "Each sample holds every observation once: draw with replacement, so that some come twice."
        )
    if not (chosen == np.round(chosen)).all():
        raise Failed("The samples are to be made of observations of x, as they are.")
    if (chosen == chosen[0]).all():
        raise Failed("All samples are the same: each needs a key of its own.", got=chosen)
    pairs = jnp.stack([jnp.arange(30.0), 100 + jnp.arange(30.0)], axis=1)
    if run(pairs, lambda sample: jnp.max(jnp.abs(sample[:, 1] - sample[:, 0] - 100)), 5).any():
        raise Failed("In x of shape (n, d) a row is one observation: its columns must stay together.")
    often = chosen.mean(axis=0)
    if np.abs(often - 1).max() > 0.25:
        raise Failed(
            "Not each observation is equally likely to be drawn.",
            shown=[("drawn, on average", describe(often)), ("expected", "1 each, of eight observations")],
        )
    if abs(chosen.var() - 7 / 8) > 0.12:
        raise Failed(
            "The draws of one sample depend on each other.",
            shown=[
                (
                    "an observation is drawn",
                    f"once on average, with variance {chosen.var():.2f}; expected 0.88",
                )
            ],
        )
    got = run(x, jnp.mean, 300)
    error = float(x.std()) / np.sqrt(40)
    if abs(got.mean() - float(x.mean())) > 0.35 * error or not 0.8 < got.std() / error < 1.25:
        raise Failed(
            "The means of the samples are not distributed as those of independent draws.",
            shown=[("they scatter by", f"{got.std():.3g}; expected about {error:.3g}")],
        )
    if len(np.unique(got)) < 250:
        raise Failed(
            "Results come more than once: for `count` results `count` samples are drawn.",
            shown=[("different means, of 300", str(len(np.unique(got))))],
        )
    if abs(_correlation(got[:-1], got[1:])) > 0.4:
        raise Failed("The samples depend on each other: each needs a key of its own.")
    own = bare(bootstrap)
    _uses_keys_once(lambda key: own(key, x, jnp.mean, 5))


def _boot_with(indices):
    def bootstrap(key, x, statistic, count):
        return jax.vmap(lambda key: statistic(x[indices(key, len(x))]))(jax.random.split(key, count))

    return bootstrap


def _boot_one_key(key, x, statistic, count):
    def once(_):
        return statistic(x[jax.random.randint(key, (len(x),), 0, len(x))])

    return jax.vmap(once)(jnp.arange(count))


def _boot_loop(key, x, statistic, count):
    rows = [jax.random.randint(k, (len(x),), 0, len(x)) for k in jax.random.split(key, count)]
    return jnp.stack([statistic(x[row]) for row in rows])


def _boot_columns(key, x, statistic, count):
    def once(key):
        if x.ndim == 1:
            return statistic(jax.random.choice(key, x, x.shape))
        columns = jax.random.split(key, x.shape[1])
        return statistic(jnp.stack([jax.random.choice(k, c, c.shape) for k, c in zip(columns, x.T)], axis=1))

    return jax.vmap(once)(jax.random.split(key, count))


def _boot_normal(key, x, statistic, count):
    def once(key):
        return statistic(x.mean(0) + x.std(0) * jax.random.normal(key, x.shape))

    return jax.vmap(once)(jax.random.split(key, count))


def _boot_seeds(key, x, statistic, count):
    return _bootstrap(jax.random.key(0), x, statistic, count)


def _boot_summary(key, x, statistic, count):
    return _bootstrap(key, x, statistic, count).std()


def _boot_folded(key, x, statistic, count):
    def once(i):
        rows = jax.random.randint(jax.random.fold_in(key, 0 * i), (len(x),), 0, len(x))
        return statistic(x[rows])

    return jax.vmap(once)(jnp.arange(count))


def _boot_half_twice(key, x, statistic, count):
    half = _bootstrap(key, x, statistic, (count + 1) // 2)
    return jnp.concatenate([half, half])[:count]


def _boot_always_means(key, x, statistic, count):
    return _bootstrap(key, x, jnp.mean, count)


def _boot_centred(key, x, statistic, count):
    return _bootstrap(key, x, statistic, count) - statistic(x)


def _boot_without_last(key, n):
    return jax.random.randint(key, (n,), 0, n - 1)


def _boot_rounded(key, n):
    return jnp.round(jax.random.uniform(key, (n,)) * (n - 1)).astype(int)


def _boot_blocks(key, n):
    return (jax.random.randint(key, (), 0, n) + jnp.arange(n) // 2) % n


def _boot_twice(key, x, statistic, count):
    def once(key):
        rows = jax.random.randint(key, (len(x),), 0, len(x))
        return statistic(x[rows]) + 0 * jax.random.uniform(key)

    return jax.vmap(once)(jax.random.split(key, count))


bootstrap = Exercise(
    title="A bootstrap",
    stars=3,
    minutes=20,
    why="Error bars for any statistic, a median or a correlation, from nothing but the data, keys, and one `vmap`.",
    hints=(
        "One sample: draw `len(x)` row numbers, with replacement, and index with them. `jax.random.randint` draws them.",
        "Write a function of one key that returns the statistic of one sample.",
        "Map it over `jax.random.split(key, count)`.",
    ),
    solution=_bootstrap,
    check=_check_bootstrap,
    mistakes=(
        Mistake(_boot_with(jax.random.permutation), says="draw with replacement"),
        Mistake(
            _boot_with(lambda key, n: jax.random.choice(key, n, (n,), replace=False)),
            says="draw with replacement",
        ),
        Mistake(
            _boot_with(lambda key, n: jax.random.randint(key, (10,), 0, n)), says="an array of shape (10,)"
        ),
        Mistake(_boot_one_key, says="All samples are the same"),
        Mistake(_boot_folded, says="All samples are the same"),
        Mistake(_boot_loop, says="grows with `count`"),
        Mistake(_boot_columns, says="its columns must stay together"),
        Mistake(_boot_normal, says="made of observations of x"),
        Mistake(_boot_seeds, says="does not depend on the key"),
        Mistake(_boot_with(_boot_without_last), says="equally likely"),
        Mistake(_boot_with(_boot_rounded), says="equally likely"),
        Mistake(_boot_with(_boot_blocks), says="depend on each other"),
        Mistake(_boot_summary, says="The shape is wrong"),
        Mistake(_boot_half_twice, says="Results come more than once"),
        Mistake(_boot_always_means, says="does not call `statistic`"),
        Mistake(_boot_centred, says="not what `statistic` returned"),
        Mistake(_boot_twice, says="A random key is used twice"),
    ),
)
