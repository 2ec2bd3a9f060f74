"""What one more layer changes."""

from mlax_tutorial.checking import Exercise, Failed, checks

solution = {
    "first Linear's kernel": "same",
    "second Linear's kernel": "changed",
    "Bias's bias": "same",
    "third Linear's kernel": "changed",
    "first Dropout's mask": "same",
    "second Dropout's mask": "same",
    "the kernels, if the ReLU were appended at the end": "same",
}


def check(given):
    if isinstance(given, dict):
        odd = [answer for answer in given.values() if str(answer).strip().lower() not in ("same", "changed")]
        if odd:
            raise Failed(f'Each answer is "same" or "changed", not {odd[0]!r}.')
    checks.answers(
        given,
        solution,
        why={
            "first Linear's kernel": {
                "changed": "It stands in front of the new layer, at the place 0 as before, and the first of seven keys is the "
                "first of six.",
            },
            "second Linear's kernel": {
                "same": "It was at the place 2 and is at the place 3 now. `init` gives a key to each layer, to the ReLU as well, "
                "so this Linear draws from the fourth key and no longer from the third.",
            },
            "Bias's bias": {
                "changed": "It gets another key, but look at what it does with it: a bias begins at zero.",
            },
            "third Linear's kernel": {
                "same": "All layers behind the new one move by one place, and with it to another key.",
            },
            "first Dropout's mask": {
                "changed": "In `fwd` only layers that need a key are counted. The ReLU needs none, so the two Dropouts still share "
                "the key between them as before.",
            },
            "second Dropout's mask": {
                "changed": "It stands behind the new layer, but in `fwd` only layers that need a key are counted: it is still the "
                "second of two.",
            },
            "the kernels, if the ReLU were appended at the end": {
                "changed": "At the end nobody stands behind it: all others keep their places, and so their keys.",
            },
        },
    )


exercise = Exercise(
    title="Insert a layer: what changes",
    stars=1,
    minutes=5,
    why="Keys by place make results reproducible, and also depend on the order of the layers: that is why new layers at the end are "
    "the harmless ones.",
    hints=(
        "`init` splits its key into as many as there are layers, and each gets the one of its place.",
        "`fwd` splits its key into as many as there are layers that need one. Does a ReLU?",
        "Which of the layers draw their weights at random, and which begin with zeros?",
    ),
    solution=solution,
    check=check,
)
