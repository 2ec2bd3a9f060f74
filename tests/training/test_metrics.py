"""Metrics by NumPy and SciPy, and images that are changed on the device."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from mlax_tutorial import augment, metrics

DRAW = np.random.default_rng(0)


def test_confusion_counts_pairs_and_leaves_out_what_is_no_class():
    predictions, labels = DRAW.integers(-1, 5, (2, 4, 25))  # classes are 0 … 3
    wanted = np.zeros((4, 4), int)
    for prediction, label in zip(predictions.ravel(), labels.ravel()):
        if 0 <= prediction < 4 and 0 <= label < 4:
            wanted[label, prediction] += 1
    got = jax.jit(metrics.confusion, static_argnums=2)(predictions, labels.astype("uint8").astype("int8"), 4)
    np.testing.assert_array_equal(got, wanted)
    with pytest.raises(ValueError, match=r"^confusion: predictions must be of shape \(3,\), got \(3, 2\)"):
        metrics.confusion(jnp.ones((3, 2), int), jnp.ones(3, int), 2)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_calibration_by_bins(dtype):
    probabilities = jax.nn.softmax(jnp.asarray(2 * DRAW.normal(size=(200, 3)), dtype))
    labels = DRAW.integers(0, 3, 200).astype("uint8")
    confidence = np.asarray(probabilities.max(axis=-1), "float64")
    right = np.asarray(probabilities.argmax(axis=-1)) == labels
    error, counts = 0, []
    for low in np.arange(10) / 10:
        inside = (confidence > low) & (confidence <= low + 0.1)
        counts.append(inside.sum())
        if inside.any():
            error += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    assert jax.jit(metrics.calibration, static_argnums=2)(probabilities, labels, 10).count.tolist() == counts
    np.testing.assert_allclose(metrics.calibration_error(probabilities, labels, 10), error, rtol=1e-5)
    sure = jnp.eye(3)[labels]
    assert (
        metrics.calibration_error(sure, labels) == 0
        and metrics.calibration_error(sure, (labels + 1) % 3) == 1
    )
    with pytest.raises(ValueError, match=r"^calibration: labels must be of shape \(200,\), got \(200, 1\)"):
        metrics.calibration_error(probabilities, labels[:, None])


@pytest.mark.parametrize("right, count", [(0, 5), (5, 5), (1, 3), (9405, 10000)])
def test_the_interval_of_wilson(right, count):
    wanted = scipy.stats.binomtest(right, count).proportion_ci(0.95, "wilson")
    np.testing.assert_allclose(jax.jit(metrics.wilson)(right, count), wanted, atol=1e-5)


IMAGES = DRAW.integers(1, 256, (64, 5, 7, 2)).astype("uint8")


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda: metrics.confusion(jnp.array([0.5, 1.7]), jnp.array([0, 1]), 2), r"confusion: predictions must be class numbers, .*, got float32\[2\]: of logits, give jnp\.argmax"),
        (lambda: metrics.confusion([0, 1], [0.0, 1.0], 2), "confusion: labels must be class numbers, .*, got a list of length 2"),
        (lambda: metrics.confusion(["a"], ["b"], 2), "confusion: predictions must be class numbers"),
        (lambda: metrics.confusion([0], [0], 0), "confusion: classes must be an integer of at least 1, got 0"),
        (lambda: metrics.confusion([0], [0], 2.0), r"confusion: classes must be an integer of at least 1, got 2\.0"),
        (lambda: metrics.confusion([0], [0], 50_000), "confusion: classes must be at most 46340, .*, got 50000"),
        (lambda: metrics.calibration(jnp.eye(2), [0, 1], 0), "calibration: bins must be an integer of at least 1, got 0"),
        (lambda: metrics.calibration(jnp.eye(2), [0, 1], 2.5), r"calibration: bins must be an integer of at least 1, got 2\.5"),
        (lambda: metrics.calibration_error([[0.5, 0.5]], [0]), r"calibration: probabilities must be .*, got a list of length 1"),
        (lambda: metrics.calibration(jnp.ones(2), 0), r"calibration: probabilities must be .* \(n, classes\), got float32\[2\]"),
        (lambda: metrics.calibration(jnp.eye(2, dtype=int), [0, 1]), r"calibration: probabilities must be .*, got int32\[2,2\]"),
        (lambda: metrics.calibration(jnp.eye(2), [0.0, 1.0]), "calibration: labels must be class numbers"),
    ],
)  # fmt: skip
def test_wrong_metrics(wrong, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        wrong()


def test_class_numbers_may_be_booleans_or_none_at_all():
    assert metrics.confusion(np.array([True, False]), [1, 1], 2).tolist() == [[0, 0], [1, 1]]
    assert not metrics.confusion([], [], 2).any()


def test_crops_are_windows_of_the_padded_image_at_all_places():
    got = jax.jit(lambda key: augment.crop(key, IMAGES, 1, (4, 7)))(jax.random.key(0))
    padded, places = np.pad(IMAGES, ((0, 0), (1, 1), (1, 1), (0, 0))), []
    for image, whole in zip(got, padded):
        fits = [(i, j) for i in range(4) for j in range(3) if (whole[i : i + 4, j : j + 7] == image).all()]
        assert len(fits) == 1
        places += fits
    assert got.dtype == jnp.uint8 and len(set(places)) == 12  # each of the 4 x 3 places came
    assert (augment.crop(jax.random.key(0), IMAGES, 0) == IMAGES).all()


def test_about_half_are_flipped():
    got = np.asarray(augment.flip(jax.random.key(0), IMAGES))
    flipped = (got == IMAGES[:, :, ::-1]).all(axis=(1, 2, 3))
    assert (flipped | (got == IMAGES).all(axis=(1, 2, 3))).all() and 20 < flipped.sum() < 44
    assert (augment.flip(jax.random.key(0), IMAGES, 1) == IMAGES[:, :, ::-1]).all()
    traced = jax.jit(augment.flip)(jax.random.key(0), IMAGES, 1.0)
    assert (traced == IMAGES[:, :, ::-1]).all()


@pytest.mark.parametrize("size", [2, 3])
def test_a_square_is_erased(size):
    got = np.asarray(augment.erase(jax.random.key(0), IMAGES, size))
    gone = got == 0
    assert (gone == gone[..., :1]).all() and (got[~gone] == IMAGES[~gone]).all()
    heights, widths = (gone[..., 0].any(axis=axis).sum(axis=1) for axis in (2, 1))
    assert (gone[..., 0].sum(axis=(1, 2)) == heights * widths).all()
    assert set(heights) == set(widths) == set(range((size + 1) // 2, size + 1))  # cut by the border, or whole
    assert gone.any(axis=0).all()  # each place can be hidden


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda key: augment.crop(key, IMAGES[0]), r"^crop: images must be .*, got uint8\[5,7,2\]"),
        (lambda key: augment.crop(key, IMAGES, 1, (8, 7)), r"^crop: size \(8, 7\) is larger than the images, \(5, 7\), with 1"),
        (lambda key: augment.flip(key, IMAGES[0]), "^flip: images must be"),
        (lambda key: augment.erase(key, IMAGES[0], 2), "^erase: images must be"),
        (lambda key: augment.crop(key, IMAGES.tolist()), r"^crop: images must be an array of shape .*, got a list of length 64"),
        (lambda key: augment.flip(key, None), r"^flip: images must be an array of shape .*, got None"),
        (lambda key: augment.crop(key, IMAGES, -1), "^crop: padding must be an integer of at least 0, got -1"),
        (lambda key: augment.crop(key, IMAGES, 1.5), r"^crop: padding must be an integer of at least 0, got 1\.5"),
        (lambda key: augment.crop(key, IMAGES, 1, 4), r"^crop: size must be a height and a width, got \(4,\)"),
        (lambda key: augment.crop(key, IMAGES, 1, (0, 4)), r"^crop: size must be an integer of at least 1, got \(0, 4\)"),
        (lambda key: augment.crop(key, IMAGES, 1, (2.5, 4)), r"^crop: size must be an integer of at least 1, got \(2\.5, 4\)"),
        (lambda key: augment.flip(key, IMAGES, 2.0), r"^flip: chance must be a number in \[0, 1\], got 2\.0"),
        (lambda key: augment.flip(key, IMAGES, float("nan")), r"^flip: chance must be a number in \[0, 1\], got nan"),
        (lambda key: augment.erase(key, IMAGES, -3), "^erase: size must be an integer of at least 0, got -3"),
        (lambda key: augment.erase(key, IMAGES, 2.5), r"^erase: size must be an integer of at least 0, got 2\.5"),
    ],
)  # fmt: skip
def test_wrong_images(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong(jax.random.key(0))
