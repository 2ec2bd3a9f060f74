"""The exercises of the chapter GPT."""

from mlax_tutorial.exercises.gpt.mixed import exercise as mixed
from mlax_tutorial.exercises.gpt.nucleus import exercise as nucleus
from mlax_tutorial.exercises.gpt.written import exercise as written
from mlax_tutorial.exercises.gpt.start import exercise as start
from mlax_tutorial.exercises.gpt.prefill import exercise as prefill
from mlax_tutorial.exercises.gpt.speculate import exercise as speculate
from mlax_tutorial.exercises.gpt.merges import exercise as merges
