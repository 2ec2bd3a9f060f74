"""The exercises of the chapter Many devices."""

from mlax_tutorial.exercises.many_devices.data_parallel import exercise as data_parallel
from mlax_tutorial.exercises.many_devices.ring_sum import exercise as ring_sum
from mlax_tutorial.exercises.many_devices.fsdp_loss import exercise as fsdp_loss
from mlax_tutorial.exercises.many_devices.pair import exercise as pair
from mlax_tutorial.exercises.many_devices.accumulate import exercise as accumulate
from mlax_tutorial.exercises.many_devices.pipeline import exercise as pipeline
from mlax_tutorial.exercises.many_devices.halo import exercise as halo
