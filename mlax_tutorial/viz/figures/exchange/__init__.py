"""``viz.exchange``: what devices send each other in one call of a program, from its compiled text.

`exchange` compiles a function and reads its collectives; `Exchange` shows them: in a notebook as a ring of devices to step through, in
a terminal as a listing. The markup is made in `page`.
"""

import collections
from typing import Any

from mlax_tutorial.inspection import collectives
from mlax_tutorial.viz.figures.exchange import page

MOST_DEVICES, MOST_STEPS = 16, 60


class Exchange:
    """What `exchange` found; a notebook shows a figure, a terminal a listing.

    Attributes:
      devices: how many take part, by their positions in the mesh from 0.
      steps: the program's collectives, in its order, as `inspection.collectives.find` gives them.
      links: for each step the bytes that go from one device to another, ``{(from, to): bytes}``, in all runs of it together.
    """

    def __init__(self, devices: int, steps: list[collectives.Collective]):
        self.devices, self.steps = devices, steps
        self.links = [_links(step) for step in steps]

    @property
    def total(self) -> dict[tuple[int, int], int]:
        """The bytes of all steps together."""
        total = collections.Counter()
        for links in self.links:
            total.update(links)
        return dict(total)

    def _repr_html_(self):
        return page.write(self)

    def __repr__(self):
        return page.listing(self)


def exchange(fun: Any, *args: Any, **kwargs: Any) -> Exchange:
    """Show what devices send each other in one call ``fun(*args)``: step by step, with the bytes on each link.

    The function is compiled, not run, and its collectives are read from the compiled text. How a machine carries one out is
    its own choice; here the devices of a group pass data round a ring, as chips do whose links form one.

    Args:
      fun: a function, jitted or not, or a program that is compiled already, without arguments.
      *args, **kwargs: its arguments: arrays where they live, or ``jax.ShapeDtypeStruct`` with a sharding.

    Returns:
      An `Exchange`: as the last expression of a cell it is a figure with a button for each exchange. It has ``steps``, ``links`` and
      ``total``, too.

    Raises:
      ValueError: if there are more devices or exchanges than a figure can show.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import viz
      >>> viz.exchange(jnp.sum, jnp.ones(8))
      1 device, nothing is sent
    """
    steps = collectives.find(fun, *args, **kwargs)
    devices = 1 + max((device for step in steps for group in step.groups for device in group), default=0)
    if devices > MOST_DEVICES:
        raise ValueError(
            f"viz.exchange: shows up to {MOST_DEVICES} devices, got {devices}: take a smaller mesh"
        )
    if len(steps) > MOST_STEPS:
        mend = "put the layers into a jax.lax.scan, or show fewer of them"
        raise ValueError(f"viz.exchange: shows up to {MOST_STEPS} exchanges, got {len(steps)}: {mend}")
    return Exchange(devices, steps)


def _links(step):
    """The bytes on each link: round the ring of each group; from each to each in an all-to-all; from pair to pair."""
    links = {}
    for group in step.groups:
        if step.kind == "collective-permute":
            links[group] = step.times * step.bytes
        elif step.kind == "all-to-all":
            pairs = ((one, other) for one in group for other in group if one != other)
            links |= dict.fromkeys(pairs, round(step.times * step.bytes / len(group)))
        elif len(group) > 1:
            around = zip(group, group[1:] + group[:1])
            links |= dict.fromkeys(around, round(step.times * step.sent))
    return {link: size for link, size in links.items() if link[0] != link[1]}
