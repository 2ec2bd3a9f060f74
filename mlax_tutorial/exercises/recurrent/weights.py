"""How many numbers do recurrent layers train?"""

from mlax_tutorial.checking import Exercise, checks

solution = {"a": 620, "b": 2480, "c": 1880, "d": 2480, "e": 1240}


def check(given):
    why = {
        "a": {
            600: "The bias is missing: 20 more.",
            220: "That is the input kernel with the bias. The recurrent kernel, from state to state, is 20 by 20.",
            30: "Count matrices: 10 by 20, 20 by 20, and a bias of 20.",
        },
        "b": {
            620: "That is one gate. An LSTM computes three gates and a candidate, each from the input and the state.",
            1860: "Three gates and the candidate are four blocks.",
            2400: "The bias is missing: one for each of four blocks.",
            4960: "The second state, c, goes through no kernel.",
        },
        "c": {
            1860: "Nearly. The candidate has a second bias, inside of the reset gate's product: 20 more.",
            1240: "Two gates, and the candidate: three blocks.",
            1800: "The biases are missing.",
            2480: "A GRU has three blocks, an LSTM has four.",
        },
        "d": {
            124_000: "All steps share one set of weights: that is why the length does not matter.",
            2530: "The layer adds nothing to its cell, whatever the length.",
        },
        "e": {
            620: "Each direction has weights of its own.",
            1880: "Each direction reads the input alone, not what the other one makes of it.",
        },
    }
    checks.answers(given, solution, why)


exercise = Exercise(
    title="How many weights?",
    stars=1,
    minutes=5,
    why="The weights do not grow with the sequence, since all steps share them; nearly all of them are in two kernels.",
    hints=(
        "A block maps 10 inputs and 20 features of state to 20 numbers, and adds a bias. How many blocks has each cell?",
        "One block has 20 * (10 + 20 + 1) numbers. The table near the top of the chapter says how many blocks there are.",
    ),
    solution=solution,
    check=check,
)
