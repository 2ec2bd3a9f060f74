"""The exercises of the chapter Control flow."""

from mlax_tutorial.exercises.control_flow.recorded import exercise as recorded
from mlax_tutorial.exercises.control_flow.recurrent import exercise as recurrent
from mlax_tutorial.exercises.control_flow.newton import exercise as newton
from mlax_tutorial.exercises.control_flow.cumulative import exercise as cumulative
from mlax_tutorial.exercises.control_flow.settle import exercise as settle
from mlax_tutorial.exercises.control_flow.norm import exercise as norm
