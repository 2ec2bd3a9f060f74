"""A class for static arguments."""

import dataclasses

import jax

from mlax_tutorial.checking import Exercise, Failed, checks


@dataclasses.dataclass(frozen=True)
class Settings:
    rounds: int
    scale: float


def check(Settings):
    settings = checks.make(Settings, 3, 2.0)
    for name, value in (("rounds", 3), ("scale", 2.0)):
        if getattr(settings, name, None) != value:
            raise Failed(f"`Settings(3, 2.0).{name}` should be {value}.", got=getattr(settings, name, None))
    runs = []

    def blur(x, settings):
        runs.append(1)
        for _ in range(settings.rounds):
            x = settings.scale * x
        return x

    fast = jax.jit(blur, static_argnames="settings")
    try:
        got = fast(1.0, settings)
    except ValueError as error:
        if "hash" not in str(error):
            raise
        raise Failed(
            "An object of your class cannot be hashed, so it cannot be looked up. A class that defines `__eq__` "
            "and no `__hash__` has none: Python takes it away."
        ) from None
    checks.same(got, 8.0 * jax.numpy.ones(()), input="Settings(3, 2.0)")
    fast(1.0, checks.make(Settings, 3, 2.0))
    if len(runs) != 1:
        raise Failed(
            "Two objects with the same rounds and scale are two programs: they are compared by identity, or their hashes differ."
        )
    for other, by in (
        ((4, 2.0), "rounds"),
        ((3, 5.0), "scale"),
        ((-1, 2.0), "rounds"),
        ((-2, 2.0), "rounds"),
        ((3, 2.5), "scale"),
    ):
        known = len(runs)
        if checks.make(Settings, *other) == settings:
            raise Failed(f"`Settings{other}` is equal to `Settings(3, 2.0)`: `{by}` is not compared.")
        fast(1.0, checks.make(Settings, *other))
        if len(runs) == known:  # equal to another of these
            raise Failed(f"`Settings{other}` shares a program with settings of other {by}.")
    try:
        alike = settings == (3, 2.0) or settings == "settings" or settings == None  # noqa: E711
    except AttributeError:
        raise Failed(
            "Your `__eq__` fails for an object of another class, which has no `rounds`. Ask first whether it is one of "
            "the settings: `isinstance(other, Settings)`."
        ) from None
    if alike:
        raise Failed("An object of another class is equal to the settings.")
    for name in ("rounds", "scale"):
        try:
            setattr(settings, name, 7)
        except AttributeError:
            continue
        except Exception as error:
            raise Failed(
                f"Assigning to an attribute should raise an AttributeError; it raises a {type(error).__name__}."
            ) from None
        raise Failed(f"`settings.{name} = 7` works: a key that changes is found no more, or found wrongly.")


exercise = Exercise(
    title="A class for static arguments",
    stars=1,
    minutes=10,
    why="What is static is compared and hashed by JAX. A frozen dataclass does both by value, and cannot change.",
    hints=(
        "`@dataclasses.dataclass` writes `__init__` and `__eq__` from the annotated fields, `rounds: int` and `scale: float`.",
        "Without more it has no hash. `frozen=True` gives it one, and forbids assignment.",
    ),
    solution=Settings,
    check=check,
)
