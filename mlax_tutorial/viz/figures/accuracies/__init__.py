"""``viz.accuracies``: which of two models is better, and how often a test says so.

`accuracies` estimates from the runs of two models how far test images and seeds scatter; `Comparison` shows what other numbers of them
would give: in a notebook as clouds with two sliders, in a terminal as a listing. The markup is made in `page`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlax_tutorial.viz.figures.accuracies import page


class Comparison:
    """What `accuracies` found; a notebook shows a figure, a terminal a listing.

    Attributes:
      names: of the two models.
      means: their mean accuracies over seeds.
      deviations: the standard deviations of their accuracies over seeds.
      count: how many test images there were.
      covariance: of a right answer of the one and of the other on the same image; None where only accuracies are known.
      within: of each model, the variance of a right answer on one image, over seeds; 0 where only accuracies are known.
    """

    def __init__(self, names, means, deviations, count, covariance=None, within=(0.0, 0.0)):
        self.names, self.means, self.deviations = names, means, deviations
        self.count, self.covariance, self.within = count, covariance, within

    def parts(self) -> list[tuple[float, float, float]]:
        """Of each model three variances: by the seed, by the image, and by both; divide by seeds, by images, and by both.

        Seeds would scatter on a few images even if each had the same accuracy on all images. That is taken off the first.
        """
        return [
            (max(deviation**2 - within / self.count, 0.0), max(mean * (1 - mean) - within, 0.0), within)
            for mean, deviation, within in zip(self.means, self.deviations, self.within)
        ]

    def spread(self, images: int, seeds: int) -> tuple[float, float]:
        """The standard deviation of each model's mean accuracy, over fresh images and fresh seeds."""
        return tuple(
            math.sqrt(seed / seeds + image / images + both / seeds / images)
            for seed, image, both in self.parts()
        )

    def spread_of_difference(self, images: int, seeds: int, same_images: bool | None = None) -> float:
        """That of the difference between the two; by default on the same images, where that is known."""
        if same_images is None:
            same_images = self.covariance is not None
        shared = 2 * self.covariance / images if same_images else 0.0
        return math.sqrt(max(sum(one**2 for one in self.spread(images, seeds)) - shared, 0.0))

    def ahead(self, images: int, seeds: int, same_images: bool | None = None) -> float:
        """In which share of comparisons with so many images and seeds the second model comes out ahead."""
        difference = self.means[1] - self.means[0]
        spread = self.spread_of_difference(images, seeds, same_images)
        if spread == 0:
            return 0.5 + 0.5 * float(np.sign(difference))
        return 0.5 + 0.5 * math.erf(difference / spread / math.sqrt(2))

    def _repr_html_(self):
        return page.write(self)

    def __repr__(self):
        return page.listing(self)


def accuracies(runs: Mapping[str, Any], *, count: int | None = None) -> Comparison:
    """Show how often a test finds the better one of two models, by the number of its images and of seeds.

    Each model was trained with some seeds and tested. From that follows how far accuracies scatter: by the seed, as it was seen, and by
    the choice of test images, as a proportion does. The figure draws a hundred comparisons as they would come out with other
    numbers of images and seeds, normally distributed around the means that were measured. It is a model of what you measured, no
    proof: the true means lie somewhere near.

    Args:
      runs: two models by name, the better one last. Each is an array of right answers, booleans of shape ``(seeds, images)``, of the
        same images for both; or a list of accuracies between 0 and 1, one for each seed.
      count: how many test images the accuracies are of; for arrays of right answers it is known.

    Returns:
      A `Comparison`: as the last expression of a cell it is a figure with sliders. For arrays of right answers the two can be compared
      on the same images, too, which takes fewer.

    Raises:
      ValueError: if there are not two models, fewer than two seeds of one, or what is given is no accuracies.

    Example:
      >>> from mlax_tutorial import viz
      >>> found = viz.accuracies({"A": [0.84, 0.86], "B": [0.87, 0.88]}, count=2000)
      >>> found
      A 85.0 % ± 1.4 by seed, B 87.5 % ± 0.7 by seed, 2,000 images
      B ahead       1 seed   5 seeds  20 seeds
         200 images  75 %     76 %     77 %
       2,000 images  90 %     97 %     99 %
      20,000 images  94 %     99.9 %   100 %
      >>> round(found.ahead(images=2000, seeds=5), 2)
      0.97
    """
    if not isinstance(runs, Mapping) or len(runs) != 2:
        raise ValueError(
            "viz.accuracies: runs must be a dict of two models: {name: accuracies, name: accuracies}"
        )
    names = [str(name) for name in runs]
    arrays = [np.asarray(one) for one in runs.values()]
    right = [array.ndim == 2 for array in arrays]
    if all(right):
        return _of_right_answers(names, arrays, count)
    if any(right):
        raise ValueError(
            "viz.accuracies: both models must be given alike: lists of accuracies, or arrays of right answers"
        )
    if count is None or count != int(count) or count < 1:
        raise ValueError(
            f"viz.accuracies: count must be the number of test images, at least 1, got {count!r}"
        )
    means, deviations = zip(*(_of_list(name, array) for name, array in zip(names, arrays)))
    return Comparison(names, means, deviations, int(count))


def _of_list(name: str, values: Sequence[float]) -> tuple[float, float]:
    values = np.asarray(values, float)
    if values.ndim != 1 or values.size < 2:
        raise ValueError(
            f"viz.accuracies: {name} must have an accuracy for each of at least two seeds, got shape {values.shape}"
        )
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError(
            f"viz.accuracies: {name} must be between 0 and 1, got {values.min():g} to {values.max():g}: shares, not percent"
        )
    return float(values.mean()), float(values.std(ddof=1))


def _of_right_answers(names, arrays, count):
    for name, array in zip(names, arrays):
        if array.dtype != bool or array.shape[0] < 2 or array.shape[1] < 2:
            wanted = "must be booleans, (seeds, images), of at least two of each"
            raise ValueError(f"viz.accuracies: {name} {wanted}, got {array.dtype} of shape {array.shape}")
    one, two = arrays
    if one.shape[1] != two.shape[1] or count not in (None, one.shape[1]):
        raise ValueError(
            f"viz.accuracies: both must be of the same test images, got {one.shape[1]} and {two.shape[1]}"
        )
    means, deviations = zip(*(_of_list(name, array.mean(axis=1)) for name, array in zip(names, arrays)))
    shares = [array.mean(axis=0) for array in arrays]  # of seeds, for each image
    within = [float(np.mean(p * (1 - p))) * len(a) / (len(a) - 1) for p, a in zip(shares, arrays)]
    return Comparison(names, means, deviations, one.shape[1], float(np.cov(*shares)[0, 1]), within)
