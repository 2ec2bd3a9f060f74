"""The exercises of the chapter Diffusion."""

from mlax_tutorial.exercises.diffusion.optimum import exercise as optimum
from mlax_tutorial.exercises.diffusion.factors import exercise as factors
from mlax_tutorial.exercises.diffusion.shares import exercise as shares
from mlax_tutorial.exercises.diffusion.heun import exercise as heun
from mlax_tutorial.exercises.diffusion.copies import exercise as copies
from mlax_tutorial.exercises.diffusion.guided import exercise as guided
from mlax_tutorial.exercises.diffusion.completed import exercise as completed
