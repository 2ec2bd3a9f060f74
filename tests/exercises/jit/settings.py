"""Answers to the exercise jit.settings."""

import dataclasses
from typing import NamedTuple

from mlax_tutorial.exercises.jit.settings import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("compared by identity")
class Plain:
    def __init__(self, rounds, scale):
        super().__setattr__("rounds", rounds)
        super().__setattr__("scale", scale)


@answers.wrong("cannot be hashed")
@dataclasses.dataclass
class NotFrozen:
    rounds: int
    scale: float


@answers.wrong("a key that changes")
@dataclasses.dataclass(unsafe_hash=True)
class Unsafe:
    rounds: int
    scale: float


@answers.wrong("`scale` is not compared")
@dataclasses.dataclass(frozen=True)
class RoundsOnly:
    rounds: int
    scale: float = dataclasses.field(compare=False)


@answers.wrong("should be 3")
@dataclasses.dataclass(frozen=True)
class OtherOrder:
    scale: float
    rounds: int


@answers.wrong("compared by identity")
@dataclasses.dataclass(frozen=True, eq=False)
class NotCompared:
    rounds: int
    scale: float


# Right ones of unusual style, and wrong ones that look right


@answers.right
class ByHand:
    __slots__ = ("rounds", "scale")

    def __init__(self, rounds, scale):
        object.__setattr__(self, "rounds", rounds)
        object.__setattr__(self, "scale", scale)

    def __setattr__(self, name, value):
        raise AttributeError(f"{name} cannot be changed")

    def __eq__(self, other):
        return isinstance(other, ByHand) and (self.rounds, self.scale) == (other.rounds, other.scale)

    def __hash__(self):
        return hash((self.rounds, self.scale))


@answers.right
@dataclasses.dataclass(frozen=True, slots=True)
class WithSlots:
    rounds: int
    scale: float = 1.0


@answers.wrong("fails for an object of another class")
class Unasked:
    def __init__(self, rounds, scale):
        self.rounds, self.scale = rounds, scale

    def __eq__(self, other):
        return (self.rounds, self.scale) == (other.rounds, other.scale)

    def __hash__(self):
        return hash((self.rounds, self.scale))


@answers.wrong()
class ATuple(NamedTuple):  # equal to any tuple with the same numbers
    rounds: int
    scale: float


@answers.wrong()
class ByHash:  # hash(-1) == hash(-2)
    def __init__(self, rounds, scale):
        vars(self).update(rounds=rounds, scale=scale)

    def __setattr__(self, name, value):
        raise AttributeError(name)

    def __eq__(self, other):
        return isinstance(other, ByHash) and hash(self) == hash(other)

    def __hash__(self):
        return hash((self.rounds, self.scale))
