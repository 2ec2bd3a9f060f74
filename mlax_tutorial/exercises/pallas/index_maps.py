"""Which block does each of six index maps choose?"""

import jax
import numpy as np

from mlax_tutorial.checking import Exercise, checks

solution = {
    "(8, 128), lambda i, j: (i, j)": (8, 256),
    "(8, 128), lambda i, j: (j, i)": (16, 128),
    "(8, 128), lambda i, j: (0, j)": (0, 256),
    "(8, 128), lambda i, j: (3 - i, j)": (16, 256),
    "(8, 128), lambda i, j: (i, j // 2)": (8, 128),
    "(16, 128), lambda i, j: (i, 0)": (16, 0),
}

_NUMBERS = (1, 2), (2, 1), (0, 2), (2, 2), (1, 1), (1, 0)
_BLOCKS = "That is the number of the block, along each axis. Its first element is further on: times the size of a block."


def _is_row(place):
    return isinstance(place, list) or isinstance(place, (np.ndarray, jax.Array)) and place.ndim == 1


def check(given):
    why = {question: {blocks: _BLOCKS} for question, blocks in zip(solution, _NUMBERS, strict=True)}
    why["(8, 128), lambda i, j: (j, i)"][8, 256] = (
        "The map exchanges the two: `j` counts the blocks of rows here."
    )
    why["(8, 128), lambda i, j: (0, j)"][8, 256] = (
        "The map does not use `i`: every row of steps sees the first rows of x."
    )
    why["(8, 128), lambda i, j: (3 - i, j)"][8, 256] = (
        "The rows are gone through backwards: 3 - 1 is block 2."
    )
    why["(8, 128), lambda i, j: (i, j // 2)"][8, 256] = "Two steps in a row see one block: 2 // 2 is block 1."
    why["(16, 128), lambda i, j: (i, 0)"][8, 0] = "A block has 16 rows here, so block 1 begins at row 16."
    if isinstance(given, dict):
        given = {question: tuple(place) if _is_row(place) else place for question, place in given.items()}
    checks.answers(given, solution, why)


exercise = Exercise(
    title="Which block does each index map choose?",
    stars=1,
    minutes=6,
    why="An index map gives numbers of blocks, never of elements; whatever it does not mention stays where it is.",
    hints=(
        "Put i = 1 and j = 2 into the map. What comes out is which block along each axis.",
        "Multiply each number by the size of the block along its axis: block (1, 2) of size (8, 128) begins at (8, 256).",
    ),
    solution=solution,
    check=check,
)
