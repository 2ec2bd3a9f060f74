"""Which of five ways to a test accuracy makes it too good?"""

from mlax_tutorial.checking import Exercise, checks

solution = {"a": True, "b": False, "c": True, "d": True, "e": False}


def check(given):
    why = {
        "a": {False: "Each picture and its shifted copies go to either side at random, so most test pictures have a copy of themselves in the training set. Split first, then make copies of the training pictures."},
        "b": {True: "Order and batches are drawn from the training pictures alone; that they change with each epoch tells nothing of the test set."},
        "c": {False: "The test pictures decide here, when to stop. Twenty epochs are twenty tries, and the best of them is lucky, too. Let a validation set decide."},
        "d": {False: "There are several photographs of each shoe, and they are split one by one, so the same shoe is on both sides. Split the shoes, not the photographs."},
        "e": {True: "The mean of the training pixels is a number that comes from training. The test pictures are only shifted by it, as those of a user will be."},
    }  # fmt: skip
    checks.answers(given, solution, why)


exercise = Exercise(
    title="Find the leaks among five test sets",
    stars=1,
    minutes=8,
    why="A leak raises no error and no suspicion: the number only looks good. Ask of each test picture what training knew of it.",
    hints=(
        "Ask of each: does anything that depends on the test pictures, or on copies of them, take part before the number is printed?",
        "There are three leaks. One is in what is split, one in when it is split, one in who decides.",
    ),
    solution=solution,
    check=check,
)
