"""The exercises of the chapter Normalization and dropout."""

from mlax_tutorial.exercises.normalization.rms_norm import exercise as rms_norm
from mlax_tutorial.exercises.normalization.group_norm import exercise as group_norm
from mlax_tutorial.exercises.normalization.running import exercise as running
from mlax_tutorial.exercises.normalization.masked import exercise as masked
from mlax_tutorial.exercises.normalization.weight_norm import exercise as weight_norm
from mlax_tutorial.exercises.normalization.drop_path import exercise as drop_path
