"""Answers of unusual style to the exercises of Errors: right ones pass, and wrong ones that look right do not."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import checkify

from mlax_tutorial.exercises import errors
from tests.exercises.right_answers import FAILED, PASSED, Answers

right, wrong = Answers(PASSED), Answers(FAILED)


# clip_total


@right(errors.clip_total)
@jax.jit
def chosen(x, limit):
    total = x.sum()
    return jnp.where(total > limit, limit, total)


@right(errors.clip_total)
def by_cond(x, limit):
    total = jnp.sum(x)
    return lax.cond(total > limit, lambda: limit, lambda: total)


right(errors.clip_total)(lambda x, limit: lax.select(x.sum() > limit, limit, x.sum()))
right(errors.clip_total)(lambda x, limit: jnp.clip(jnp.sum(x), max=limit))
right(errors.clip_total)(lambda x, limit: lax.min(jnp.sum(x), limit))


@wrong(errors.clip_total)
def by_callback(x, limit):
    return jax.pure_callback(
        lambda x, limit: np.minimum(x.sum(), limit), jax.ShapeDtypeStruct((), jnp.float32), x, limit
    )


@wrong(errors.clip_total)
def clips_softly(x, limit):
    return limit - jax.nn.relu(limit - jnp.sum(x) - 1e-3)


@wrong(errors.clip_total)
def once_for_each_limit(x, limit):
    try:
        return jnp.float32(limit) if float(jnp.sum(x)) > float(limit) else jnp.sum(x)
    except jax.errors.ConcretizationTypeError:
        return jnp.sum(x)


# pick


@right(errors.pick)
def padded(table, i):
    n = len(table)
    longer = jnp.concatenate([jnp.asarray(table), jnp.array([jnp.nan])])
    i = jnp.where(i < 0, i + n, i)
    return longer[jnp.where((i < 0) | (i >= n), n, i)]


@right(errors.pick)
def chosen_by_mask(table, i):
    inside = (-len(table) <= i) & (i < len(table))
    return jnp.where(inside, jnp.array(table)[i], jnp.nan)


@right(errors.pick)
def compared(table, i):
    n = len(table)
    i = jnp.asarray(i)[..., None]
    hit = (i == jnp.arange(n)) | (i == jnp.arange(-n, 0))
    found = jnp.sum(jnp.where(hit, table, 0.0), axis=-1)
    return jnp.where(hit.any(axis=-1), found, jnp.nan)


right(errors.pick)(lambda table, i: jnp.take(table, i, mode="fill", fill_value=jnp.nan))


@wrong(errors.pick)
def takes_by_default_of_brackets(table, i):
    return jnp.where(i > len(table), jnp.nan, jnp.asarray(table)[i])


@wrong(errors.pick)
def one_too_many_below(table, i):
    n = len(table)
    return jnp.where((i >= -n - 1) & (i < n), jnp.asarray(table)[i], jnp.nan)


# mean_of_positive


@right(errors.mean_of_positive)
def guarded_outside(x):
    count = jnp.count_nonzero(x > 0)
    total = jnp.sum(x, where=x > 0, initial=0.0)
    return jnp.where(count > 0, total / jnp.where(count > 0, count, 1), 0.0)


@right(errors.mean_of_positive)
@jax.jit
def in_a_loop(x):
    def step(carry, value):
        total, count = carry
        return (total + jnp.where(value > 0, value, 0.0), count + (value > 0)), None

    (total, count), _ = lax.scan(step, (jnp.float32(0.0), jnp.int32(0)), x)
    return total / jnp.maximum(count, 1)


@right(errors.mean_of_positive)
def with_where(x):
    return jnp.where(
        jnp.any(x > 0), jnp.mean(jnp.where(x > 0, x, 0.0)) * x.size / jnp.maximum((x > 0).sum(), 1), 0.0
    )


@wrong(errors.mean_of_positive)
def with_relu(x):
    return jax.nn.relu(x).sum() / jnp.maximum((x > 0).sum(), 1)


@wrong(errors.mean_of_positive)
def mean_where(x):
    return jnp.nan_to_num(jnp.mean(x, where=x >= 0))


# trajectory


@right(errors.trajectory)
def writes_into_an_array(x, rate):
    def step(i, state):
        x, way = state
        x = x - rate * 4 * x**3
        return x, way.at[i].set(x)

    return lax.fori_loop(0, 10, step, (x, jnp.zeros((10, *x.shape))))


@right(errors.trajectory)
@jax.jit
def last_of_the_way(x, rate):
    slope = jax.grad(lambda x: (x**4).sum())
    _, way = lax.scan(lambda x, _: ((y := x - rate * slope(x)), y), x, jnp.arange(10))
    return way[-1], way


@wrong(errors.trajectory)
def eleven_steps(x, rate):
    _, way = lax.scan(lambda x, _: (x - rate * 4 * x**3, x), x, length=11)
    return way[-1], way[1:] * 1.001


@wrong(errors.trajectory)
def forgets_the_rate(x, rate):
    rate = lax.stop_gradient(rate)
    return lax.scan(lambda x, _: ((y := x - rate * 4 * x**3), y), x, length=10)


@wrong(errors.trajectory)
def nine_and_one(x, rate):
    last, way = lax.scan(lambda x, _: ((y := x - rate * 4 * x**3), y), x, length=9)
    return last, jnp.concatenate([way, last[None]])


# window


right(errors.window)(lambda x, start: x[start + jnp.arange(3)])
right(errors.window)(lambda x, start: jnp.roll(x, -start, axis=0)[:3])
right(errors.window)(lambda x, start: jnp.stack([x[start], x[start + 1], x[start + 2]]))
right(errors.window)(jax.jit(lambda x, start: lax.dynamic_slice(x, (start, 0), (3, x.shape[1]))))
right(errors.window)(lambda x, start: jnp.take(x, jnp.arange(3) + start, axis=0))
if hasattr(jax, "ds"):  # not in 0.7.2
    right(errors.window)(lambda x, start: x[jax.ds(start, 3)])
wrong(errors.window)(lambda x, start: jnp.stack([x[start]] * 3))
wrong(errors.window)(lambda x, start: x[jnp.minimum(start + jnp.arange(3), len(x) - 2)])


# running_mean


@right(errors.running_mean)
def sums_and_counts(x):
    return jnp.cumsum(x, axis=0) / jnp.arange(1, len(x) + 1, dtype=x.dtype)[:, None]


@right(errors.running_mean)
def numpy_hands_over_to_jax(x):
    return np.cumsum(x, axis=0) / jnp.arange(1, len(x) + 1)[:, None].astype(x.dtype)


@right(errors.running_mean)
def count_from_outside(x):
    def step(total, pair):
        row, count = pair
        total = total + row
        return total, total / count

    return lax.scan(step, jnp.zeros_like(x[0]), (x, jnp.arange(1, len(x) + 1)))[1]


@right(errors.running_mean)
@jax.jit
def by_a_tree(x):
    total, count = lax.associative_scan(
        lambda a, b: (a[0] + b[0], a[1] + b[1]), (x, jnp.ones((len(x), 1), x.dtype))
    )
    return total / count


@wrong(errors.running_mean)
def always_float32(x):
    return jnp.cumsum(x.astype(jnp.float32), axis=0) / jnp.arange(1, len(x) + 1)[:, None]


@wrong(errors.running_mean)
def written_out_in_slices(x):
    return jnp.stack([x[: i + 1].mean(axis=0) for i in range(len(x))])


# entropy


@right(errors.entropy)
def twice_where(p):
    safe = jnp.where(p > 0, p, 0.5)
    return -jnp.sum(jnp.where(p > 0, p * jnp.log(safe), 0.0))


@jax.custom_jvp
def with_its_own_rule(p):
    return -jnp.sum(jnp.where(p > 0, p * jnp.log(p), 0.0))


@with_its_own_rule.defjvp
def _rule(primals, tangents):
    (p,), (t,) = primals, tangents
    slope = jnp.where(p > 0, -jnp.log(jnp.where(p > 0, p, 1.0)) - 1.0, 0.0)
    return with_its_own_rule(p), jnp.vdot(slope, t)


right(errors.entropy)(lambda p: with_its_own_rule(p))


@right(errors.entropy)
@jax.jit
def by_vmap(p):
    def term(p):
        return lax.cond(p > 0, lambda p: -p * jnp.log(p), lambda p: 0.0 * p, p)

    return jax.vmap(term)(p).sum()


@wrong(errors.entropy)
def clips_at_the_least(p):
    return -jnp.sum(p * jnp.log(jnp.maximum(p, jnp.finfo(p.dtype).tiny)))


@wrong(errors.entropy)
def xlogy(p):
    return -jnp.sum(jax.scipy.special.xlogy(p, p))


@wrong(errors.entropy)
def straight_through(p):
    value = -jnp.sum(jnp.where(p > 0, p * jnp.log(p), 0.0))
    return lax.stop_gradient(value) + jnp.sum(p - lax.stop_gradient(p))


# train_step


@right(errors.train_step)
@jax.jit
def with_vjp(w, x, y, rate):
    def loss(w):
        predictions = jnp.tanh(x @ w)
        return jnp.mean((predictions - y) ** 2), predictions

    value, pull, predictions = jax.vjp(loss, w, has_aux=True)
    (gradient,) = pull(jnp.ones_like(value))
    return w - rate * gradient, value, predictions


@right(errors.train_step)
def by_hand(w, x, y, rate):
    predictions = jnp.tanh(x @ w)
    residual = predictions - y
    gradient = x.T @ (2 * residual * (1 - predictions**2)) / residual.size
    return w - rate * gradient, jnp.mean(residual**2), predictions


@right(errors.train_step)
def value_as_well(w, x, y, rate):
    def loss(w):
        predictions = jnp.tanh(jnp.dot(x, w))
        value = jnp.square(predictions - y).mean()
        return value, (value, predictions)

    gradient, (value, predictions) = jax.grad(loss, has_aux=True)(w)
    return w - rate * gradient, value, predictions


@wrong(errors.train_step)
def sums(w, x, y, rate):
    def loss(w):
        predictions = jnp.tanh(x @ w)
        return jnp.sum((predictions - y) ** 2), predictions

    (value, predictions), gradient = jax.value_and_grad(loss, has_aux=True)(w)
    return w - rate * gradient, value / predictions.size, predictions


@wrong(errors.train_step)
def predicts_again(w, x, y, rate):
    value, gradient = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)
    return w - rate * gradient, value, jnp.tanh(x @ w)


# features


@right(errors.features)
def as_an_array(x, activation, powers):
    return _from_an_array(x, activation, jnp.array(powers))


@functools.partial(jax.jit, static_argnums=1)
def _from_an_array(x, activation, powers):
    return activation(x) ** powers[:, None]


@functools.lru_cache
def _program(activation, powers):
    return jax.jit(lambda x: jnp.stack([activation(x) ** n for n in powers]))


right(errors.features)(lambda x, activation, powers: _program(activation, tuple(powers))(x))


@right(errors.features)
def as_text(x, activation, powers):
    return _from_text(x, activation, " ".join(map(str, powers)))


@functools.partial(jax.jit, static_argnames=("activation", "powers"))
def _from_text(x, activation, powers):
    y = activation(x)
    return jnp.stack([y ** int(n) for n in powers.split()])


@wrong(errors.features)
def remembers_results(x, activation, powers, seen={}):  # noqa: B006
    key = activation, tuple(powers)
    if key not in seen:
        seen[key] = jnp.stack([activation(x) ** n for n in powers])
    return seen[key]


@wrong(errors.features)
def only_the_last_list(x, activation, powers, kept=[None, None]):  # noqa: B006
    key = activation, tuple(powers)
    if kept[0] != key:
        kept[:] = key, jax.jit(lambda x: jnp.stack([activation(x) ** n for n in key[1]]))
    return kept[1](x)


# mean_log


@right(errors.mean_log)
@jax.jit
@functools.partial(checkify.checkify, errors=checkify.user_checks)
def decorated(x):
    bad = (x <= 0).sum()
    checkify.check(~jnp.any(x <= 0), "{n} elements are not positive", n=bad)
    return jnp.log(x).mean()


def _checked(x):
    count = jnp.count_nonzero(x <= 0)
    checkify.check(count < 1, "x is bad: {count} elements are not positive!", count=count)
    return jnp.log(x).sum() / x.size


right(errors.mean_log)(jax.jit(checkify.checkify(_checked)))


def _forever_one(x):
    checkify.check(jnp.all(x > 0), "2 elements are not positive")
    return jnp.log(x).mean()


wrong(errors.mean_log)(jax.jit(checkify.checkify(_forever_one)))


def _harmless(x):
    checkify.check(jnp.all(x > 0), "{n} elements are not positive", n=(x <= 0).sum())
    return jnp.log(jnp.maximum(x, 2.0)).mean()


wrong(errors.mean_log)(jax.jit(checkify.checkify(_harmless)))


test_right_answers_pass, test_wrong_answers_fail = right.test(), wrong.test()
