"""`python -m tests.loaders.program LIBRARY PROCESS COUNT ADDRESS FOLDER`: one process that runs a recipe of *Many hosts*, read from the standard input.

It prints, as JSON, the rows of three epochs, batch by batch, and what became of the iterator's state.
"""

import json
import sys

import numpy as np

ROWS, SIZE, EPOCHS = 37, 8, 3


def grain(given, recipe):
    import absl.flags
    import grain

    def begin(text):
        names = given | {"absl": absl, "grain": grain, "source": np.arange(ROWS, dtype=np.int32)}
        exec(text, names)
        return names["iterator"]

    iterator, later = begin(recipe), begin(recipe)
    batches = [next(iterator) for _ in range(2)]
    saved = iterator.get_state()
    batches += [next(iterator) for _ in range(EPOCHS * (ROWS // SIZE) - 2)]
    later.set_state(saved)
    of_four = begin(recipe.replace("ShardByJaxProcess(", "ShardOptions(0, 4, "))
    try:
        of_four.set_state(saved)
    except ValueError as error:
        refused = str(error)
    else:
        refused = ""
    return batches, [next(later) for _ in range(len(batches) - 2)], {"refused": refused}


def tf(given, recipe):
    import tensorflow as tf

    def begin():
        names = given | {
            "tf": tf,
            "source": tf.data.Dataset.from_tensor_slices(np.arange(ROWS, dtype=np.int32)),
        }
        exec(recipe, names)
        return names["iterator"]

    iterator, later = begin(), begin()
    batches = [next(iterator).numpy() for _ in range(2)]
    path = tf.train.Checkpoint(iterator=iterator).write(f"{given['folder']}/{given['jax'].process_index()}")
    batches += [next(iterator).numpy() for _ in range(EPOCHS * (ROWS // SIZE) - 2)]
    tf.train.Checkpoint(iterator=later).read(path).assert_consumed()
    return batches, [next(later).numpy() for _ in range(len(batches) - 2)], {}


def torch(given, recipe):
    import torch.utils.data

    given |= {"torch": torch, "source": np.arange(ROWS, dtype=np.int32), "epoch": 0}
    exec(recipe, given)
    batches = []
    for epoch in range(EPOCHS):
        given["sampler"].set_epoch(epoch)
        batches += [batch.numpy() for batch in given["loader"]]
    skipped = [batch.numpy() for batch in given["loader"]][2:]
    return batches, skipped, {}


def main(library, process, count, address, folder):
    import jax
    from jax.sharding import AxisType, NamedSharding
    from jax.sharding import PartitionSpec as P

    jax.config.update("jax_platforms", "cpu")
    jax.distributed.initialize(address, num_processes=int(count), process_id=int(process))
    by_rows = NamedSharding(
        jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,)), P("data")
    )
    given = {"jax": jax, "size": SIZE, "folder": folder}
    batches, resumed, more = globals()[library](given, sys.stdin.read())
    whole = [jax.make_array_from_process_local_data(by_rows, np.asarray(batch)) for batch in batches]
    print(
        json.dumps(
            {
                "batches": [np.asarray(batch).tolist() for batch in batches],
                "resumed": [np.asarray(batch).tolist() for batch in resumed],
                "shapes": sorted({array.shape for array in whole}),
                **more,
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
