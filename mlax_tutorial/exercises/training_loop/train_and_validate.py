"""A loop with four bugs, none of which stops it."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import training
from mlax_tutorial.checking import Exercise, Failed, checks, guarding


def solution(key, init, step, evaluate, x, y, x_val, y_val, epochs, batch_size):
    history = []
    state = init(x)
    for _ in range(epochs):
        key, order_key, steps_key = jax.random.split(key, 3)
        order = np.asarray(training.batches(order_key, len(x), batch_size))
        for i, step_key in zip(order, jax.random.split(steps_key, len(order))):
            state, loss = step(state, step_key, x[i], y[i])
        total = 0.0
        for start in range(0, len(x_val), batch_size):
            some = slice(start, start + batch_size)
            total += float(evaluate(state, x_val[some], y_val[some])) * len(x_val[some])
        history.append(total / len(x_val))
    return state, history


SIZE, HELD_OUT, EPOCHS, BATCH = 17, 8, 4, 3


def check(train_and_validate):
    x = np.arange(SIZE, dtype=np.float32)
    x_val = np.array([0.0, 1, 1, 2, 5, 9, 3, 40], np.float32)
    made, steps, looked = [], [], []

    def init(x):
        made.append(len(steps))
        return ("state", len(made), 0)

    def step(state, key, x, y):
        _see_state(state)
        if not (
            isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and not key.shape
        ):
            raise Failed("`step` wants one typed key as its second argument.", got=key)
        x, y = np.asarray(x), np.asarray(y)
        if x.shape != y.shape or (y != 10 * x).any():
            raise Failed("The labels of a batch are not those of its examples.", input={"x": x, "y": y})
        jax.random.bits(key)  # which uses it up, as dropout does
        steps.append((state, tuple(np.asarray(jax.random.key_data(key)).tolist()), tuple(x.tolist())))
        return ("state", state[1], state[2] + 1), np.float32(1 / len(steps))

    def evaluate(state, x, y):
        _see_state(state)
        x, y = np.asarray(x), np.asarray(y)
        if x.shape != y.shape or not x.size or (y != 10 * x).any():
            raise Failed(
                "`evaluate` was called with examples and labels that do not belong together.",
                input={"x": x, "y": y},
            )
        looked.append((state, x))
        return np.float32(x.mean() + _extra(state[2]))

    start = jax.random.key(7)
    arguments = init, step, evaluate, x, 10 * x, x_val, 10 * x_val, EPOCHS, BATCH
    try:
        with jax.debug_key_reuse(True):
            result = train_and_validate(start, *arguments)
        reused = None
    except guarding.Raised as raised:
        if not isinstance(raised.error, jax.errors.KeyReuseError):
            raise
        reused = raised  # which is said last
        for log in (made, steps, looked):
            log.clear()
        result = train_and_validate(jax.random.key(7), *arguments)
    checks.returned(result, "final state", "history", lists=True)
    if isinstance(result[1], tuple) and result[1][:1] == ("state",):
        raise Failed("The two are swapped: first the final state, then the history.", got=result)
    if not steps:
        raise Failed("Your loop never calls `step`.")
    _one_training(made, steps, result[0])
    _epochs(steps)
    _keys(steps, start)
    _validated(looked, result[1], x_val)
    if reused is None:
        _again(train_and_validate, arguments, made, steps, result[1])
        _another_size(train_and_validate, arguments[:3], steps)
    if reused is not None:
        reused.say_first(
            "A key is used twice: for the order and for the steps, or again in the next epoch. A key that was split, or that something "
            "was drawn from, is used up."
        )
        raise reused


def _again(train_and_validate, arguments, made, steps, history):
    """A second training, with another key: it begins anew, and takes other orders."""
    first, inits = _orders(steps), len(made)
    steps.clear()
    _, other = train_and_validate(jax.random.key(8), *arguments)
    if len(made) == inits:
        raise Failed("A second training goes on from the first one: call `init` in each.")
    if len(steps) != EPOCHS * (SIZE // BATCH) or not np.allclose(
        list(map(float, other)), list(map(float, history))
    ):
        raise Failed(
            "A second training is not like the first one: the result must depend on the arguments alone."
        )
    if _orders(steps) == first:
        raise Failed("Another key gives the same orders of the examples: draw them from the argument `key`.")


def _another_size(train_and_validate, functions, steps):
    """More examples of both kinds, and more batches in an epoch."""
    steps.clear()
    x, x_val = np.arange(20, dtype=np.float32), np.array([2.0, 0, 7, 1, 4, 3, 8, 30, 5, 60, 6], np.float32)
    _, history = train_and_validate(
        jax.random.key(9), *functions, x, 10 * x, x_val, 10 * x_val, epochs=2, batch_size=2
    )
    given = {"input": "20 examples, 11 held out, epochs=2, batch_size=2"}
    if len(steps) != 20:
        raise Failed(
            f"With other sizes there were {len(steps)} steps, and not 2 epochs of 10 batches: take all sizes from the arguments.",
            **given,
        )
    expected = [float(x_val.mean()) + _extra(10 * (epoch + 1)) for epoch in range(2)]
    if not np.allclose(list(map(float, history)), expected, rtol=1e-5):
        raise Failed(
            "With other sizes the validation loss is not the mean over all held-out examples: take all sizes from the arguments.",
            expected=expected,
            got=history,
            **given,
        )


def _orders(steps):
    each = SIZE // BATCH
    return [sum((batch for _, _, batch in steps[i : i + each]), ()) for i in range(0, len(steps), each)]


def _extra(seen):
    """The loss is lowest after the second epoch, so the best state is not the last one."""
    return abs(seen - 2 * (SIZE // BATCH)) / 10


def _see_state(state):
    if not (isinstance(state, tuple) and len(state) == 3 and state[0] == "state"):
        raise Failed(
            "`step` and `evaluate` want the state that `init` or the last `step` returned.", got=state
        )


def _one_training(made, steps, last):
    if len(made) > 1 and any(made[1:]):
        raise Failed(
            f"`init` is called {len(made)} times. Each epoch begins with new weights and new moments, so all but the last one "
            "were for nothing."
        )
    for number, (state, _, _) in enumerate(steps):
        if state[2] != number:
            raise Failed(
                f"Step {number + 1} is given a state that has seen {state[2]} steps: go on from what the last step returned."
            )
    if isinstance(last, tuple) and len(last) == 3 and last[0] == "state" and last[2] < len(steps):
        raise Failed(
            f"The state that you return has seen {last[2]} of {len(steps)} steps. The final one is asked for, even if an earlier one had "
            "a lower loss.",
            got=last,
        )
    if last != ("state", steps[-1][0][1], len(steps)):
        raise Failed("The state that you return is not that of the last step.", got=last)


def _epochs(steps):
    each = SIZE // BATCH
    sizes = {len(batch) for _, _, batch in steps}
    if sizes != {BATCH}:
        raise Failed(
            f"Batches have {sorted(sizes)} examples: let all have {BATCH}, or the step is compiled again."
        )
    if len(steps) != EPOCHS * each:
        raise Failed(f"There were {len(steps)} steps; {EPOCHS} epochs of {each} batches are asked for.")
    orders = _orders(steps)
    if any(len(set(order)) < len(order) for order in orders):
        raise Failed("An epoch visits an example twice.", got=str(orders[0]))
    if len(set(orders)) < len(orders):
        raise Failed(
            "Epochs have the same order: the same batches come again and again, and the same examples are left out each time. "
            "Draw each order from a key of its own."
        )
    pairs = [set(zip(order, order[1:])) for order in orders]
    if orders[0] == tuple(sorted(orders[0])) or any(
        len(pairs[0] & other) > 2 * len(other) / 3 for other in pairs[1:]
    ):
        raise Failed("The examples are not shuffled anew in each epoch.", got=str(orders[:2]))


def _keys(steps, start):
    keys = [key for _, key, _ in steps]
    if len(set(keys)) < len(keys):
        one = len(set(keys)) == 1
        raise Failed(
            f"{'All steps are' if one else 'Some steps are'} given the same key, so dropout drops the same units again. Split off "
            "a key for each step."
        )
    if tuple(np.asarray(jax.random.key_data(start)).tolist()) in keys:
        raise Failed("A step is given the key that you also split. What was split must not be used again.")
    each, orders = SIZE // BATCH, set(_orders(steps))
    # `permutation(k)` sorts by the bits of the second key that comes of `split(k)`.
    own, second = (np.argsort(bits, kind="stable")[:, : each * BATCH] for bits in _bits(np.uint32(keys)))
    for number, order in enumerate(second.tolist()):
        if tuple(map(float, order)) in orders:
            raise Failed(
                f"The key of step {number + 1} is also the one from which an order is drawn. `fold_in(key, epoch)` and `fold_in(key, number)` "
                "are the same key where the two integers are equal, and JAX's check for reused keys does not see it: split the key in "
                "two first, one for orders and one for steps."
            )
    for order in own.tolist():
        if tuple(map(float, order)) in orders:
            raise Failed(
                "The keys of an epoch's steps are split off the key from which its order is drawn. `permutation` splits that key, too, so "
                "one of your steps gets the key that made the order: split one key for the order and one for the steps."
            )


@jax.jit
@jax.vmap
def _bits(data):
    """The bits of a key, and those of the second key that comes of splitting it."""
    key = jax.random.wrap_key_data(data)
    return jax.random.bits(key, (SIZE,)), jax.random.bits(jax.random.split(key)[1], (SIZE,))


def _validated(looked, history, x_val):
    try:
        history = [float(value) for value in history]
    except (TypeError, ValueError):
        raise Failed("The history should be a list of numbers, one for each epoch.", got=history) from None
    if len(history) != EPOCHS:
        raise Failed(f"The history has {len(history)} numbers; there were {EPOCHS} epochs.", got=history)
    each = SIZE // BATCH
    if {state[2] for state, _ in looked} != {each * (epoch + 1) for epoch in range(EPOCHS)}:
        raise Failed("Evaluate after each epoch, with the state that it ended with.")
    whole, extra = HELD_OUT - HELD_OUT % BATCH, np.array([_extra(each * (i + 1)) for i in range(EPOCHS)])
    parts = [x_val[i : i + BATCH].mean() for i in range(0, HELD_OUT, BATCH)]
    exact, got = x_val.mean() + extra, np.array(history)
    if not np.allclose(got, exact, rtol=1e-5):
        said = "The validation loss is not the mean over all held-out examples."
        if np.allclose(got, np.mean(parts) + extra):
            said = "The validation loss is a mean of means: the last batch has two examples and counts as much as the others."
        elif np.allclose(got, x_val[:whole].mean() + extra):
            said = "The validation leaves out the examples that do not fill a batch."
        raise Failed(said, expected=jnp.asarray(exact, jnp.float32), got=jnp.asarray(got, jnp.float32))


exercise = Exercise(
    title="Four bugs in a loop that runs",
    stars=3,
    minutes=20,
    why="None of the four raises, and with each of them the loss falls: only what you count and compare tells.",
    hints=(
        "Go through the lines and ask how often each should happen: once, once an epoch, once a step.",
        "What is `key` used for, and how often? There are two bugs in the answer.",
        "The last batch of the validation set is smaller. What is its weight in `np.mean(means)`?",
    ),
    solution=solution,
    check=check,
)
