"""Where the trainings here are saved after each epoch, and go on from."""

import jax
import jax.numpy as jnp

from mlax_tutorial import saving


def save(checkpoints, run, losses, settings):
    arrays = {
        "losses": jnp.float32(losses),
        "settings": jnp.int32(settings),
        "epoch": jnp.int32(run["epoch"]),
    }
    checkpoints.save(run["epoch"], run | arrays)


def resume(checkpoints, run, settings):
    """The last checkpoint, with the losses so far; or the run as it is, where there is none.

    Raises:
      CheckpointError: if what lies there is of another seed or another number of epochs, on which the rates depend.
    """
    epoch = checkpoints.latest_step()
    if epoch is None:
        return run, []
    arrays = {"losses": jnp.zeros(epoch), "settings": jnp.int32(settings), "epoch": jnp.int32(epoch)}
    saved = checkpoints.restore(jax.eval_shape(lambda: run | arrays))
    if saved["settings"].tolist() != list(settings):
        raise saving.CheckpointError(
            f"{checkpoints.directory} holds a run of other epochs or another seed, {saved['settings'].tolist()}: name another directory"
        )
    losses = saved.pop("losses").tolist()
    del saved["settings"]
    print(f"resumed after epoch {epoch}")
    return saved | {"epoch": epoch}, losses
