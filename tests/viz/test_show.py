"""The book's figures: legible to all, the same on every machine, small, and free of clashes."""

import doctest
import hashlib
import importlib
import itertools
import re
import subprocess
import sys
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

from mlax_tutorial import viz
from mlax_tutorial.viz import style
from mlax_tutorial.viz.show import MIXED

GROUNDS = {
    "white": "#ffffff",
    "book, dark": "#15181e",
    "JupyterLab, dark": "#111111",
    "Colab, dark": "#383838",
}


def curves(bend=0.0, label="a", alt="Two lines.", **options):
    fig, ax = viz.subplots(figsize=(5, 3))
    x = np.linspace(0, 1, 20)
    ax.plot(x, x**2 + bend, label=label)
    ax.plot(x, 1 - x, label="falls")
    ax.set(xlabel="x", ylabel="y & z", title="<title>")
    ax.legend()
    return viz.show(fig, alt=alt, **options)


def cloud(points, **options):
    fig, ax = viz.subplots()
    x, y = np.random.default_rng(0).normal(size=(2, points))
    ax.scatter(x, y, s=4)
    return viz.show(fig, alt="A cloud.", **options)


def element(figure):
    return ElementTree.fromstring(figure.markup)


def ids(figure):
    return [e.get("id") for e in element(figure).iter() if e.get("id")]


def luminance(colour):
    values = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, two):
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("colour", style.COLOURS)
def test_colours_stand_out(colour, ground):
    assert contrast(colour, GROUNDS[ground]) >= 3


@pytest.mark.parametrize(("ink", "ground"), [("#22252b", "#fdfcf9"), ("#dfe3ea", "#15181e")])
@pytest.mark.parametrize("colour", MIXED)
def test_letters_stand_out_more(colour, ink, ground):
    """Their colour is mixed with the ink of the page, and marks have it as it is."""
    fig, ax = style.subplots(figsize=(3, 2))
    ax.text(0.5, 0.5, "here", color=colour)
    ax.plot([0, 1], [0, 1], color=colour)
    markup = viz.show(fig, alt="A word on a line.").markup
    (letters,) = re.findall(r'<text[^>]*style="[^"]*?fill:([^;"]*)[^>]*>here', markup)
    mixed, share = re.fullmatch(r"color-mix\(in srgb,(#\w{6}) (\d+)%,currentColor\)", letters).groups()
    assert mixed == colour and f"stroke:{colour}" in markup
    parts = [[int(each[i : i + 2], 16) for i in (1, 3, 5)] for each in (mixed, ink)]
    blend = [round((int(share) * a + (100 - int(share)) * b) / 100) for a, b in zip(*parts)]
    assert contrast("#{:02x}{:02x}{:02x}".format(*blend), ground) >= 4.5


def test_the_measure_of_contrast_is_right():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#ffff00", "#ffffff") < 1.1


def test_lines_differ_in_more_than_colour():
    _, ax = viz.subplots()
    lines = [ax.plot([0, 1], [i, i])[0] for i in range(6)]
    for one, two in itertools.combinations(lines, 2):
        assert one.get_color() != two.get_color() and one.get_marker() != two.get_marker()
    assert len({line.get_linestyle() + str(line._dash_pattern) for line in lines[:5]}) == 5


def test_the_alternative_is_there_and_escaped():
    root = element(curves(alt='Rises "fast" & <far>,\n  then falls.'))
    assert (root.tag, root.get("class"), root.get("role")) == ("figure", "viz", "img")
    assert root.get("aria-label") == 'Rises "fast" & <far>, then falls.'
    assert root[0].get("aria-hidden") == "true"


@pytest.mark.parametrize("nothing", ["", "  \n"])
def test_an_empty_alternative_is_refused(nothing):
    with pytest.raises(ValueError, match="what the figure shows"):
        curves(alt=nothing)


def test_ink_is_the_page_s_own():
    markup = curves().markup
    assert "#000000" not in markup and "currentColor" in markup and "#ffffff" not in markup
    for path in element(curves()).iter("{http://www.w3.org/2000/svg}path"):
        colours = re.findall(r"(?:fill|stroke):([^;]*)", path.get("style", ""))
        assert set(colours) <= {"none", "currentColor", *style.COLOURS}


def test_text_is_text_in_the_page_s_font():
    texts = {
        "".join(e.itertext()).strip() for e in element(curves()).iter("{http://www.w3.org/2000/svg}text")
    }
    assert {"x", "y & z", "<title>", "a", "falls"} <= texts
    assert "DejaVu" not in curves().markup


def test_the_same_figure_is_the_same_text():
    assert curves().markup == curves().markup
    code = (
        "import tests.viz.test_show as t, hashlib; "
        "print(hashlib.sha256((t.curves().markup + t.cloud(2500).markup).encode()).hexdigest())"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert other.strip() == hashlib.sha256((curves().markup + cloud(2500).markup).encode()).hexdigest()


def test_the_last_bits_of_floats_do_not_show():
    assert curves(bend=1e-12).markup == curves().markup
    assert curves(bend=0.2).markup != curves().markup


def test_names_come_from_words_and_structure_not_from_numbers():
    assert ids(curves(bend=0.2)) == ids(curves())
    assert not set(ids(curves(alt="Other words."))) & set(ids(curves()))
    assert not set(ids(curves(label="b"))) & set(ids(curves()))
    assert not set(ids(cloud(10))) & set(ids(cloud(11)))


def test_names_do_not_hang_on_pixels():
    """How a PNG is packed differs between machines."""

    def picture(seed):
        fig, ax = viz.subplots()
        ax.imshow(np.random.default_rng(seed).random((8, 8)), vmin=0, vmax=1)
        return viz.show(fig, alt="A picture.")

    one, two = picture(0), picture(1)
    assert "base64," in one.markup and one.markup != two.markup
    assert ids(one) and ids(one) == ids(two)


@pytest.mark.parametrize("figure", [curves(), cloud(100), cloud(2500)], ids=["curves", "cloud", "pixels"])
def test_every_name_that_is_used_is_there(figure):
    names = ids(figure)
    used = re.findall(r'(?:href="#|url\(#)([^")]*)', figure.markup)
    assert used and set(used) == set(names) and len(names) == len(set(names))


def test_nothing_of_the_figure_reaches_beyond_it():
    markup = curves().markup
    assert (
        "<style" not in markup
        and "<script" not in markup
        and "http" not in markup.replace("www.w3.org", "").replace('xmlns="http://', "")
    )


def test_figures_are_small():
    assert len(curves().markup) < 12_000
    assert len(cloud(5000).markup) < 100_000 < 300_000 < len(cloud(5000, raster=False).markup)


def test_many_points_become_pixels():
    assert "data:image/png;base64," in cloud(2500).markup
    assert "data:image/png" not in cloud(100).markup
    assert "data:image/png" in cloud(100, raster=True).markup
    assert "<text" in cloud(2500).markup, "text and axes stay sharp"
    assert "data:image/png" in curves(raster=True).markup


def test_width_on_the_page():
    svg = element(curves())[0]
    assert (svg.get("width"), svg.get("height")) == ("480", "288")
    assert "max-width:100%" in svg.get("style")


def test_a_terminal_shows_the_words():
    figure = curves(alt="Two lines.")
    assert repr(figure) == "<figure: Two lines.>" and figure._repr_html_() == figure.markup


def test_matplotlib_s_settings_stay_as_they_were():
    before = dict(matplotlib.rcParams)
    curves()
    assert dict(matplotlib.rcParams) == before


def test_a_figure_of_pyplot_is_shown_once():
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots()
    ax.plot([1, 2])
    assert plt.get_fignums()
    viz.show(fig, alt="A line.")
    assert not plt.get_fignums()


def test_importing_brings_no_matplotlib():
    code = "import sys, mlax_tutorial.viz; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'plot'"):
        viz.plot  # noqa: B018


@pytest.mark.parametrize("module", ["style", "show", "source", "figures.markup"])
def test_examples_run(module):
    result = doctest.testmod(importlib.import_module(f"mlax_tutorial.viz.{module}"))
    assert result.attempted and not result.failed
