"""The exercises of the chapter Where arrays live."""

from mlax_tutorial.exercises.placement.who_moves import exercise as who_moves
from mlax_tutorial.exercises.placement.standardizer import exercise as standardizer
from mlax_tutorial.exercises.placement.live_bytes import exercise as live_bytes
from mlax_tutorial.exercises.placement.bytes_per_device import exercise as bytes_per_device
from mlax_tutorial.exercises.placement.by_rules import exercise as by_rules
from mlax_tutorial.exercises.placement.placed_init import exercise as placed_init
from mlax_tutorial.exercises.placement.reused import exercise as reused
from mlax_tutorial.exercises.placement.stream import exercise as stream
