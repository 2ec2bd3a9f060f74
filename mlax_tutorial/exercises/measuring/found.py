"""Find operations in a compiled text."""

from mlax_tutorial.checking import Exercise, checks

solution = {
    "most FLOPs": "ynn_fusion.1",
    "its FLOPs": 2 * 64 * 512 * 512,
    "only moves data": "copy_bitcast_fusion",
    "adds the bias": "broadcast_maximum_fusion",
    "operations that run": 4,
    "FLOPs a byte of ynn_fusion": 6,
}


def check(given):
    once = "That stands within a fusion, where values are not written to memory. An operation under ENTRY is asked for."
    why = {
        "most FLOPs": {
            "ynn_fusion": "Its result has 16 columns, that of the other product 512; both sum over 512.",
            "broadcast_maximum_fusion": "That is two operations for each of 64 times 512 elements. A product does 1,024 for each.",
            "copy_bitcast_fusion": "Moving numbers is no arithmetic.",
            "dot_general.1": once,
            "dot_general.0": once,
        },
        "its FLOPs": {
            64 * 512 * 512: "Each term of a sum is a product and an addition: 2 FLOPs.",
            2 * 64 * 512: "Each element of the result is a sum over an axis that the result does not have: which, says `lhs_contracting_dims`.",
            2 * 64 * 512 * 16: "That is the other product.",
        },
        "only moves data": {
            "transpose.0": once,
            "copy.1": once,
            "broadcast_maximum_fusion": "It adds and compares.",
        },
        "adds the bias": {
            "add.0": once,
            "add.1": once,
            "ynn_fusion.1": "The bias is not in this product: look who takes `%b.1`.",
        },
        "operations that run": {
            2: "The products run, too: `kCustom` says that a library computes them.",
            8: "Parameters are there already: nothing is computed for them.",
        },
        "FLOPs a byte of ynn_fusion": {
            8: "Count the bytes of three arrays, 4 for each number: both operands and the result.",
            25: "A float32 has 4 bytes.",
        },
    }  # fmt: skip
    if isinstance(given, dict):  # a name may keep its sign
        given = {key: value.lstrip("%") if isinstance(value, str) else value for key, value in given.items()}
    checks.answers(given, solution, why)


exercise = Exercise(
    title="Find operations in a compiled text",
    stars=2,
    minutes=12,
    why="The compiled text is what runs: an operation of a profile has its name there, and beside it its shapes, from which cost follows.",
    hints=(
        "Begin at ENTRY. Here each line that is no parameter runs by itself: it reads its operands and writes its result.",
        "A product costs 2 FLOPs for each element of its result and each element of the axis that it sums over.",
        "The bytes of `ynn_fusion`: 4 times (64 times 512, and 512 times 16, and 64 times 16). Round to the nearest whole number.",
    ),
    solution=solution,
    check=check,
)
