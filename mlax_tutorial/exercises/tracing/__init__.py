"""The exercises of the chapter Tracing."""

from mlax_tutorial.exercises.tracing.recorded import exercise as recorded
from mlax_tutorial.exercises.tracing.mystery import exercise as mystery
from mlax_tutorial.exercises.tracing.mystery import mystery_jaxpr
from mlax_tutorial.exercises.tracing.shapes import exercise as shapes
from mlax_tutorial.exercises.tracing.remember import exercise as remember
from mlax_tutorial.exercises.tracing.dead import exercise as dead
from mlax_tutorial.exercises.tracing.flops import exercise as flops
