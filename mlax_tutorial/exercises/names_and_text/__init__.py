"""The exercises of the chapter Recurrent networks on names and text."""

from mlax_tutorial.exercises.names_and_text.bounds import exercise as bounds
from mlax_tutorial.exercises.names_and_text.bucketed import exercise as bucketed
from mlax_tutorial.exercises.names_and_text.weighted import exercise as weighted
from mlax_tutorial.exercises.names_and_text.pooled import exercise as pooled
from mlax_tutorial.exercises.names_and_text.one_mask import exercise as one_mask
from mlax_tutorial.exercises.names_and_text.recurrence import exercise as recurrence
from mlax_tutorial.exercises.names_and_text.convolution import exercise as convolution
