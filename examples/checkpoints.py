"""Where the trainings here are saved, after each epoch or now and then, and go on from."""

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


def resume_step(checkpoints, state, settings, names, total):
    """The state and the step of the last checkpoint, or ``state`` and 0 where there is none; for trainings saved in an epoch, too.

    Raises:
      CheckpointError: if what lies there is of other ``settings``, which are called ``names``.
    """
    step = checkpoints.latest_step()
    if step is None:
        return state, 0
    saved = checkpoints.restore(jax.eval_shape(lambda: {"state": state, "settings": settings}))
    if saved["settings"].tolist() != settings.tolist():
        raise saving.CheckpointError(
            f"{checkpoints.directory} holds a run of other options ({names}): {saved['settings'].tolist()}"
        )
    print(f"resumed after step {step} of {total}")
    return saved["state"], step
