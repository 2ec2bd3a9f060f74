"""How the book's figures look: colours, lines and marks that can be told apart by anyone, on any ground."""

# Blue, vermilion, green, purple and ochre after Okabe and Ito, each made as light or as dark as it takes to have
# a contrast of 3:1 (WCAG 2.2, 1.4.11) on white and on near-black; tests/viz/test_show.py measures it.
COLOURS = ("#3a86d0", "#d55e00", "#009e73", "#c26a9b", "#b07c00")

# Black becomes the ink of the page: dark on a light page, light on a dark one.
INK = "#000000"

# Colour alone says nothing to some readers and to a grey printer: each line has its own dash and mark, too.
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (7, 1.5, 1.2, 1.5)), (0, (3, 1.2, 1, 1.2, 1, 1.2)), "-")
MARKS = ("o", "s", "^", "D", "v", "X")

# Figures are drawn a little smaller than they are shown, so that text of 10 points stands about as large as the
# text around it, and can still be read when a telephone shrinks the figure to its width.
SCALE = 0.85


def settings() -> dict:
    """Matplotlib's parameters for a figure of the book."""
    from cycler import cycler

    return {
        "axes.prop_cycle": cycler(color=(*COLOURS, INK)) + cycler(linestyle=DASHES) + cycler(marker=MARKS),
        "axes.edgecolor": INK,
        "axes.facecolor": "none",
        "axes.grid": False,
        "axes.labelcolor": INK,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlesize": 10,
        "figure.facecolor": "none",
        "font.size": 10,
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
    }


def subplots(nrows: int = 1, ncols: int = 1, *, figsize: tuple[float, float] = (7, 3.5), **options):
    """Begins a figure in the book's style, like ``matplotlib.pyplot.subplots``; :func:`show` ends it.

    Lines take colours, dashes and marks from a cycle that does not rest on colour alone. Black is the ink of the
    page, so it turns light in the dark.

    Args:
      nrows, ncols: how many axes.
      figsize: width and height on the page, in inches of 96 pixels; a book's column is 7 inches wide.
      **options: as for ``matplotlib.figure.Figure.subplots`` (``sharex``, ``width_ratios``, …).

    Returns:
      ``(fig, ax)``; ``ax`` is an array of axes if there are several.

    Example:
      >>> fig, ax = subplots(figsize=(5, 3))
      >>> line, = ax.plot([1, 2, 3], [1, 4, 9], label="squares")
      >>> line.get_marker(), line.get_color()
      ('o', '#3a86d0')
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(settings()):
        # No pyplot: it would keep the figure, and a notebook would show it a second time.
        fig = Figure(figsize=(SCALE * figsize[0], SCALE * figsize[1]), layout="constrained")
        return fig, fig.subplots(nrows, ncols, **options)
