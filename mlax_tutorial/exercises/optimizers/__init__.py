"""The exercises of the chapter Optimizers."""

from mlax_tutorial.exercises.optimizers.nesterov import exercise as nesterov
from mlax_tutorial.exercises.optimizers.adamw import exercise as adamw
from mlax_tutorial.exercises.optimizers.warm_up import exercise as warm_up
from mlax_tutorial.exercises.optimizers.clipped import exercise as clipped
from mlax_tutorial.exercises.optimizers.lookahead import exercise as lookahead
from mlax_tutorial.exercises.optimizers.muon import exercise as muon
