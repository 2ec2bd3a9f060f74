"""The exercises of the chapter Many hosts."""

from mlax_tutorial.exercises.many_hosts.global_batch import exercise as global_batch
from mlax_tutorial.exercises.many_hosts.first_difference import exercise as first_difference
from mlax_tutorial.exercises.many_hosts.log_mean import exercise as log_mean
from mlax_tutorial.exercises.many_hosts.rows_at import exercise as rows_at
from mlax_tutorial.exercises.many_hosts.targets import exercise as targets
from mlax_tutorial.exercises.many_hosts.watchdog import exercise as watchdog
