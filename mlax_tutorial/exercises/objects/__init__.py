"""The exercises of the chapter From functions to objects."""

from mlax_tutorial.exercises.objects.matching import exercise as matching
from mlax_tutorial.exercises.objects.leaks import exercise as leaks
from mlax_tutorial.exercises.objects.pure_call import exercise as pure_call
from mlax_tutorial.exercises.objects.limiter import exercise as limiter
from mlax_tutorial.exercises.objects.center import exercise as center
from mlax_tutorial.exercises.objects.carry import exercise as carry
