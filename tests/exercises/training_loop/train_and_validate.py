"""Answers to the exercise training_loop.train_and_validate."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import training
from mlax_tutorial.exercises.training_loop.train_and_validate import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def loop(*, init_each_epoch=False, one_order=False, one_key=False, weigh=True, drop=False, reuse=False):
    """The solution, with bugs."""

    def train_and_validate(key, init, step, evaluate, x, y, x_val, y_val, epochs, batch_size):
        state, history, first = init(x), [], key
        for epoch in range(epochs):
            if init_each_epoch and epoch:
                state = init(x)
            key, order_key, steps_key = jax.random.split(key, 3)
            order = np.asarray(training.batches(first if one_order else order_key, len(x), batch_size))
            keys = jax.random.split(steps_key, len(order))
            for number, i in enumerate(order):
                step_key = steps_key if one_key else keys[number]
                step_key = first if reuse and not number and not epoch else step_key
                state, loss = step(state, step_key, x[i], y[i])
            stop = len(x_val) - len(x_val) % batch_size if drop else len(x_val)
            means, sizes = [], []
            for start in range(0, stop, batch_size):
                some = slice(start, min(stop, start + batch_size))
                means.append(float(evaluate(state, x_val[some], y_val[some])))
                sizes.append(len(x_val[some]))
            history.append(np.average(means, weights=sizes if weigh else None))
        return state, history

    return train_and_validate


answers.wrong("begins with new weights and new moments")(loop(init_each_epoch=True))
answers.wrong("Epochs have the same order")(loop(one_order=True))
answers.wrong("Some steps are given the same key")(loop(one_key=True))
answers.wrong("mean of means")(loop(weigh=False))
answers.wrong("leaves out the examples that do not fill a batch")(loop(drop=True))
answers.wrong("the key that you also split")(loop(reuse=True))


@answers.wrong("begins with new weights and new moments")
def as_it_stood(key, init, step, evaluate, x, y, x_val, y_val, epochs, batch_size):
    history = []
    for _ in range(epochs):
        state = init(x)
        for i in np.asarray(training.batches(key, len(x), batch_size)):
            state, loss = step(state, key, x[i], y[i])
        means = []
        for start in range(0, len(x_val), batch_size):
            some = slice(start, start + batch_size)
            means.append(float(evaluate(state, x_val[some], y_val[some])))
        history.append(np.mean(means))
    return state, history


@answers.wrong("All steps are given the same key")
def one_key_for_all(key, init, step, evaluate, x, y, x_val, y_val, epochs, batch_size):
    state, history, (order_key, step_key) = init(x), [], jax.random.split(key)
    for epoch in range(epochs):
        for i in np.asarray(training.batches(jax.random.fold_in(order_key, epoch), len(x), batch_size)):
            state, loss = step(state, step_key, x[i], y[i])
        history.append(float(evaluate(state, x_val, y_val)))
    return state, history


@answers.wrong("has seen 0 steps")
def forgets_the_state(key, init, step, evaluate, x, y, x_val, y_val, epochs, batch_size):
    state, history = init(x), []
    for _ in range(epochs):
        key, order_key, steps_key = jax.random.split(key, 3)
        order = np.asarray(training.batches(order_key, len(x), batch_size))
        for i, step_key in zip(order, jax.random.split(steps_key, len(order))):
            _, loss = step(state, step_key, x[i], y[i])
        history.append(float(evaluate(state, x_val, y_val)))
    return state, history


@answers.wrong("labels of a batch are not those")
def out_of_step(key, init, step, evaluate, x, y, x_val, y_val, epochs, batch_size):
    state, history = init(x), []
    for _ in range(epochs):
        key, order_key, other_key, steps_key = jax.random.split(key, 4)
        order = np.asarray(training.batches(order_key, len(x), batch_size))
        other = np.asarray(training.batches(other_key, len(x), batch_size))
        for i, j, step_key in zip(order, other, jax.random.split(steps_key, len(order))):
            state, loss = step(state, step_key, x[i], y[j])
        history.append(float(evaluate(state, x_val, y_val)))
    return state, history


def with_keys(make):
    """The solution, with other keys: ``make(key, epoch, n)`` gives the next key, that of the order and those of the steps."""

    def train_and_validate(key, init, step, evaluate, x, y, x_val, y_val, epochs, batch_size):
        state, history = init(x), []
        for epoch in range(epochs):
            key, order_key, step_keys = make(key, epoch, len(x) // batch_size)
            order = np.asarray(training.batches(order_key, len(x), batch_size))
            for i, step_key in zip(order, step_keys):
                state, loss = step(state, step_key, x[i], y[i])
            history.append(float(evaluate(state, x_val, y_val)))
        return state, history

    return train_and_validate


@answers.wrong("split off the key from which its order is drawn")
@with_keys
def order_key_again(key, epoch, n):
    key, order_key = jax.random.split(key)
    return key, order_key, jax.random.split(order_key, n)


@with_keys
def key_before_the_split(key, epoch, n):
    following, steps_key = jax.random.split(key)
    return following, key, jax.random.split(steps_key, n)


if jax.__version_info__ >= (0, 12):  # the check for reused keys of JAX 0.7 does not see this one
    answers.wrong("A key is used twice")(key_before_the_split)


@answers.wrong("split off the key from which its order is drawn")
@with_keys
def folded_alike(key, epoch, n):
    return key, jax.random.fold_in(key, epoch), jax.random.split(jax.random.fold_in(key, epoch), n)


@answers.wrong("The final one is asked for")
def the_best(key, init, step, evaluate, x, y, x_val, y_val, epochs, batch_size):
    losses, states = [], []

    def seen(state, x, y):
        states.append(state)
        return evaluate(state, x, y)

    _, losses = exercise.answer(key, init, step, seen, x, y, x_val, y_val, epochs, len(x_val) and batch_size)
    ends = [state for state, other in zip(states, [*states[1:], None]) if state != other]
    return ends[int(np.argmin(losses))], losses


@answers.wrong("The two are swapped")
def swapped(*arguments):
    return exercise.answer(*arguments)[::-1]


# Wrong ones that look right


@answers.wrong()
def keys_of_an_epoch_again(key, init, step, evaluate, x, y, x_val, y_val, epochs, batch_size):
    state, history, (order_key, steps_key) = init(x), [], jax.random.split(key)
    for epoch in range(epochs):
        order = np.asarray(training.batches(jax.random.fold_in(order_key, epoch), len(x), batch_size))
        for number, i in enumerate(order):
            state, loss = step(state, jax.random.fold_in(steps_key, number), x[i], y[i])
        history.append(float(evaluate(state, x_val, y_val)))
    return state, history


@answers.wrong()
def validates_at_the_end(key, init, step, evaluate, x, y, x_val, y_val, epochs, batch_size):
    state, _ = exercise.answer(key, init, step, lambda *_: 0.0, x, y, x_val, y_val, epochs, batch_size)
    return state, [float(evaluate(state, x_val, y_val))] * epochs


# Right ones of unusual style


@answers.right
def all_at_once(key, init, step, evaluate, x, y, x_val, y_val, epochs, batch_size):
    state, history = init(x), []
    for epoch_key in jax.random.split(key, epochs):
        order_key, *step_keys = jax.random.split(epoch_key, 1 + len(x) // batch_size)
        for i, step_key in zip(training.batches(order_key, len(x), batch_size), step_keys):
            state, loss = step(state, step_key, x[np.asarray(i)], y[np.asarray(i)])
        history.append(evaluate(state, x_val, y_val))
    return state, jnp.stack(history)


@answers.right
def by_numbers(key, init, step, evaluate, x, y, x_val, y_val, epochs, batch_size):
    state, history, (order_key, steps_key) = init(x), [], jax.random.split(key)
    each = len(x) // batch_size
    for number in range(epochs * each):
        epoch, place = divmod(number, each)
        order = jax.random.permutation(jax.random.fold_in(order_key, epoch), len(x))
        i = np.asarray(order[place * batch_size : (place + 1) * batch_size])
        state, loss = step(state, jax.random.fold_in(steps_key, number), x[i], y[i])
        if place == each - 1:
            one = [float(evaluate(state, x_val[j : j + 1], y_val[j : j + 1])) for j in range(len(x_val))]
            history.append(sum(one) / len(one))
    return [state, history][0], tuple(history)


@answers.right
def numpy_shuffles(key, init, step, evaluate, x, y, x_val, y_val, epochs, batch_size):
    key, seed_key = jax.random.split(key)
    random = np.random.default_rng(np.asarray(jax.random.key_data(seed_key)))
    state, history = init(x), []
    for _ in range(epochs):
        order = random.permutation(len(x))
        for start in range(0, len(x) - batch_size + 1, batch_size):
            key, step_key = jax.random.split(key)
            i = order[start : start + batch_size]
            state, loss = step(state, step_key, jnp.asarray(x[i]), jnp.asarray(y[i]))
        history.append(np.asarray(evaluate(state, x_val, y_val)))
    return state, history


@answers.wrong("A key is used twice")
@with_keys
def key_of_a_step_is_split_again(key, epoch, n):
    following, order_key, step_key = jax.random.split(key, 3)
    keys = []
    for _ in range(n):
        step_key, _ = jax.random.split(step_key)
        keys.append(step_key)
    return following, order_key, keys


@answers.wrong("A key is used twice")
@with_keys
def key_of_the_next_epoch(key, epoch, n):
    order_key, *keys = jax.random.split(key, n + 1)
    return keys[-1], order_key, keys


@answers.wrong("batches are asked for")
@with_keys
def as_many_keys_as_examples(key, epoch, n):
    key, order_key, steps_key = jax.random.split(key, 3)
    return key, order_key, jax.random.split(steps_key, 3)


@answers.wrong("not shuffled anew")
def only_shifted(key, init, step, evaluate, x, y, x_val, y_val, epochs, batch_size):
    state, history, n = init(x), [], len(x) // batch_size
    for epoch in range(epochs):
        key, steps_key = jax.random.split(key)
        order = np.roll(np.arange(len(x)), epoch)[: n * batch_size].reshape(n, batch_size)
        for i, step_key in zip(order, jax.random.split(steps_key, n)):
            state, loss = step(state, step_key, x[i], y[i])
        history.append(float(evaluate(state, x_val, y_val)))
    return state, history


@answers.wrong("draw them from the argument `key`")
def orders_of_a_seed(key, init, step, evaluate, x, y, x_val, y_val, epochs, batch_size):
    random, state, history = np.random.default_rng(0), init(x), []
    for _ in range(epochs):
        order = random.permutation(len(x))
        for start in range(0, len(x) - batch_size + 1, batch_size):
            key, step_key = jax.random.split(key)
            i = order[start : start + batch_size]
            state, loss = step(state, step_key, x[i], y[i])
        history.append(float(evaluate(state, x_val, y_val)))
    return state, history


KEPT = {}


@answers.wrong()
def goes_on_from_the_last_training(key, init, step, evaluate, x, y, x_val, y_val, epochs, batch_size):
    KEPT[id(init)] = KEPT.get(id(init)) or init(x)

    def once(x):
        return KEPT[id(init)]

    return exercise.answer(key, once, step, evaluate, x, y, x_val, y_val, epochs, batch_size)


@answers.wrong("is also the one from which an order is drawn")
def one_family(key, init, step, evaluate, x, y, x_val, y_val, epochs, batch_size):
    state, history, number = init(x), [], 0
    for epoch in range(epochs):
        order = np.asarray(training.batches(jax.random.fold_in(key, epoch), len(x), batch_size))
        for i in order:
            state, loss = step(state, jax.random.fold_in(key, number), x[i], y[i])
            number += 1
        history.append(float(evaluate(state, x_val, y_val)))
    return state, history


@answers.right
def two_families(key, init, step, evaluate, x, y, x_val, y_val, epochs, batch_size):
    state, history, number = init(x), [], 0
    orders_key, steps_key = jax.random.split(key)
    for epoch in range(epochs):
        order = np.asarray(training.batches(jax.random.fold_in(orders_key, epoch), len(x), batch_size))
        for i in order:
            state, loss = step(state, jax.random.fold_in(steps_key, number), x[i], y[i])
            number += 1
        losses = [evaluate(state, x_val[i : i + 1], y_val[i : i + 1]) for i in range(len(x_val))]
        history.append(np.mean(losses))
    return state, np.array(history)


def with_sizes(size=None, held_out=None, batches=None):
    """The solution, with sizes that are written down."""

    def train_and_validate(key, init, step, evaluate, x, y, x_val, y_val, epochs, batch_size):
        state, history = init(x), []
        for _ in range(epochs):
            key, order_key, steps_key = jax.random.split(key, 3)
            order = np.asarray(training.batches(order_key, size or len(x), batch_size))
            for i, step_key in zip(order, jax.random.split(steps_key, batches or len(order))):
                state, _ = step(state, step_key, x[i], y[i])
            total, count = 0.0, held_out or len(x_val)
            for start in range(0, count, batch_size):
                some = slice(start, min(count, start + batch_size))
                total += float(evaluate(state, x_val[some], y_val[some])) * len(x_val[some])
            history.append(total / count)
        return state, history

    return train_and_validate


answers.wrong("With other sizes there were 16 steps")(with_sizes(size=17))
answers.wrong("With other sizes there were 10 steps")(with_sizes(batches=5))
answers.wrong("With other sizes the validation loss")(with_sizes(held_out=8))
answers.right(with_sizes())
