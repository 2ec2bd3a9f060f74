"""Drawing tokens, and going on from prompts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from mlax_tutorial import nn
from mlax_tutorial.generation import generate, sample
from mlax_tutorial.inspection import jaxprs

KEY = jax.random.key(0)
LOGITS = jnp.log(jnp.array([0.05, 0.4, 0.25, 0.3]))
VOCAB, LENGTH = 11, 9


def counts(draws=4000, **options):
    ids = sample(KEY, jnp.broadcast_to(LOGITS, (draws, 4)), **options)
    return jnp.bincount(ids.ravel(), length=4)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, [0.05, 0.4, 0.25, 0.3]),
        ({"temperature": 0.5}, np.array([0.05, 0.4, 0.25, 0.3]) ** 2 / 0.315),
        ({"top_k": 2}, [0, 4 / 7, 0, 3 / 7]),
        ({"top_p": 0.69}, [0, 4 / 7, 0, 3 / 7]),  # 0.4 is too few
        ({"top_p": 0.71}, [0, 0.4 / 0.95, 0.25 / 0.95, 0.3 / 0.95]),
        ({"top_k": 1}, [0, 1, 0, 0]),
        ({"top_p": 0.0}, [0, 1, 0, 0]),
        ({"temperature": 0}, [0, 1, 0, 0]),
    ],
)
def test_draws_have_the_wanted_frequencies(options, wanted):
    found, wanted = np.asarray(counts(**options)), np.asarray(wanted)
    assert found[wanted == 0].sum() == 0
    some = wanted > 0
    chi_square = ((found - 4000 * wanted) ** 2)[some] / (4000 * wanted[some])
    assert chi_square.sum() < 16.3  # of 3 degrees of freedom, 1 in 1,000


def test_of_equal_logits_greedy_takes_the_first_and_rows_have_their_own_temperature():
    assert sample(KEY, jnp.zeros(5), top_k=1) == sample(KEY, jnp.zeros(5), temperature=0.0) == 0
    rows = jnp.broadcast_to(LOGITS, (2, 500, 4)).astype(jnp.bfloat16)
    ids = sample(KEY, rows, temperature=jnp.array([0.0, 1.0])[:, None] * jnp.ones((2, 500)))
    assert (ids[0] == 1).all() and len(set(ids[1].tolist())) == 4


def models():
    body = nn.Residual(nn.MultiHeadAttention(2, causal=True, rotary_base=100))
    yield "attention", nn.Series(nn.Embed(VOCAB, 8), nn.Stack(body, 2), nn.Linear(VOCAB))
    memory = nn.Series(nn.Conv(8, (2,), padding="CAUSAL"), nn.Recurrent(nn.GRUCell(8)))
    yield "recurrent", nn.Series(nn.Embed(VOCAB, 8), memory, nn.Linear(VOCAB))


MODELS = dict(models())
PROMPT = jax.random.randint(jax.random.key(1), (3, 4), 0, VOCAB)


def by_hand(model, variables, row, index, stop, keys):
    """One row alone, without a cache. Of the keys' draws it takes its own."""
    tokens = list(row)
    while len(tokens) < LENGTH:
        if stop is not None and stop in tokens[len(row) :]:
            tokens.append(0)
            continue
        logits = model.fwd(jnp.array(tokens), *variables, inference_mode=True)[0][-1]
        rows = jnp.zeros((3, VOCAB)).at[index].set(logits)
        tokens.append(int(sample(keys[len(tokens)], rows, 1.5)[index]))
    return tokens


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("lengths", [None, (4, 1, 2)])
def test_equals_a_loop_without_a_cache(name, lengths):
    model = MODELS[name]
    variables = model.init(KEY, PROMPT)
    options = {"length": LENGTH, "key": KEY, "temperature": 1.5}
    free = generate(model, *variables, PROMPT, lengths and jnp.array(lengths), **options)
    stop = int(free[0, 5])
    found = generate(model, *variables, PROMPT, lengths and jnp.array(lengths), stop=stop, **options)
    rows = [PROMPT[i, : (lengths or (4, 4, 4))[i]].tolist() for i in range(3)]
    keys = jax.random.split(KEY, LENGTH)
    assert found.tolist() == [by_hand(model, variables, row, i, stop, keys) for i, row in enumerate(rows)]
    assert not found[0, 6:].any()  # nothing after the stop token but padding


def test_lengths_outside_of_the_prompt_count_as_the_nearest():
    model = MODELS["recurrent"]
    variables = model.init(KEY, PROMPT)
    options = {"length": LENGTH, "key": KEY}
    far, near = (
        generate(model, *variables, PROMPT, jnp.array(each), **options) for each in ([9, 0, 2], [4, 1, 2])
    )
    assert far.tolist() == near.tolist()


@pytest.mark.parametrize("options", [{}, {"top_k": 2}, {"top_p": 0.9}, {"top_k": 9}])
def test_only_what_must_be_ordered_is_sorted(options):
    names = jaxprs.count(lambda key, row: sample(key, row, **options), KEY, LOGITS)
    assert bool(names.keys() & {"sort", "top_k"}) == bool(options)


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"^sample: top_k must be an integer of at least 1, got 0\."):
        sample(KEY, LOGITS, top_k=0)
    model = MODELS["recurrent"]
    variables = model.init(KEY, PROMPT)
    with pytest.raises(
        ValueError, match=r"^generate: prompt expects ids of shape \(\.\.\., steps\), 1 to length=3 steps"
    ):
        generate(model, *variables, PROMPT, length=3, key=KEY)
    with pytest.raises(nn.LayerError, match="does not decode"):
        generate(nn.Series(nn.Embed(3, 4), nn.LayerNorm(axes=2)), {}, (), PROMPT, length=9, key=KEY)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1.0}, "temperature must be one number, finite and at least 0, got -1.0"),
        ({"temperature": float("nan")}, "temperature must be one number, finite and at least 0, got nan"),
        ({"temperature": np.inf}, "temperature must be one number, finite and at least 0, got inf"),
        ({"temperature": "a"}, "temperature must be one number, finite and at least 0, got 'a'"),
        ({"temperature": None}, "temperature must be one number, finite and at least 0, got None"),
        ({"temperature": jnp.ones(3)}, r"temperature must be one number, .*, got float32\[3\]"),
        ({"top_p": 1.5}, r"top_p must be one number, in \[0, 1\], got 1\.5"),
        ({"top_p": -0.1}, r"top_p must be one number, in \[0, 1\], got -0\.1"),
        ({"top_p": np.float32("nan")}, "top_p must be one number, .*nan"),
        ({"top_k": 2.0}, "top_k must be an integer of at least 1, got 2.0"),
        ({"top_k": True}, "top_k must be an integer of at least 1, got True"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=f"^sample: {message}"):
        sample(KEY, LOGITS, **options)
    model = MODELS["recurrent"]
    with pytest.raises(ValueError, match=f"^generate: {message}"):
        generate(model, *model.init(KEY, PROMPT[0]), PROMPT[0], length=5, key=KEY, **options)


def test_numbers_may_be_traced_and_a_size_may_be_jaxs():
    def draw(temperature, top_p):
        return sample(KEY, LOGITS, temperature, top_p=top_p)

    assert jax.jit(draw)(0.5, 0.9) == draw(0.5, 0.9) == draw(jnp.float32(0.5), np.float64(0.9))
    assert sample(KEY, LOGITS, top_k=jnp.int32(2)) == sample(KEY, LOGITS, top_k=2)


@pytest.mark.parametrize(
    ("logits", "got"),
    [
        (jnp.arange(4), r"int32\[4\]"),
        (jnp.float32(1), r"float32\[\]"),
        (jnp.zeros((3, 0)), r"float32\[3,0\]"),
        ([0.0, 1.0], "a list of length 2"),
    ],
)
def test_logits_that_are_none_are_refused(logits, got):
    with pytest.raises(ValueError, match=rf"^sample: logits expect .* of shape \(\.\.\., vocab\), got {got}"):
        sample(KEY, logits)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stop": 1.0}, r"stop must be an integer of at least 0, got 1\.0"),
        ({"stop": (1, 2)}, r"stop must be an integer of at least 0, got \(1, 2\)"),
        ({"stop": -1}, "stop must be an integer of at least 0, got -1"),
        ({"stop": VOCAB}, "stop must be one of the 11 ids of the model, got 11"),
        ({"padding": 1.5}, r"padding must be an integer of at least 0, got 1\.5"),
        ({"length": 9.0}, r"length must be an integer of at least 1, got 9\.0"),
        ({"prompt": [[1, 2]]}, "prompt expects ids .*, got a list of length 1"),
        ({"prompt": PROMPT + 0.7}, r"prompt expects ids .*, got float32\[3,4\]"),
        ({"lengths": jnp.array([1.7, 2, 3])}, r"lengths expect integers of shape \(3,\), got float32\[3\]"),
        ({"lengths": jnp.array([1, 2])}, r"lengths expect integers of shape \(3,\), got int32\[2\]"),
        ({"lengths": [True, True, True]}, r"lengths expect integers of shape \(3,\), got bool\[3\]"),
    ],
)
def test_prompts_and_ids_that_are_none_are_refused(options, message):
    model = MODELS["recurrent"]
    options = {"prompt": PROMPT, "length": 9, "key": KEY} | options
    with pytest.raises(ValueError, match=f"^generate: {message}"):
        generate(model, *model.init(KEY, PROMPT), **options)


def test_prompts_and_keys_of_their_own_on_several_devices():
    mesh = jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,))
    model = nn.Series(nn.Embed(VOCAB, 4), nn.Recurrent(nn.GRUCell(4)), nn.Linear(VOCAB))
    prompts, keys = jnp.array([[1, 2], [3, 4]]), jax.random.split(KEY)
    variables = model.init(KEY, prompts)

    def local(prompts, keys):
        return generate(model, *variables, prompts, length=5, key=keys[0], stop=0)

    for in_specs, given in ((P("data"), prompts), (P(), prompts[:1])):
        spread = jax.shard_map(local, mesh=mesh, in_specs=(in_specs, P("data")), out_specs=P("data"))
        for found, key, prompt in zip(spread(given, keys), keys, jnp.broadcast_to(given, (2, 2))):
            np.testing.assert_array_equal(
                found, generate(model, *variables, prompt[None], length=5, key=key, stop=0)[0]
            )
