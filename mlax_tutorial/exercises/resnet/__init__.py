"""The exercises of the chapter ResNet."""

from mlax_tutorial.exercises.resnet.preactivation import exercise as preactivation
from mlax_tutorial.exercises.resnet.start_as_shortcut import exercise as start_as_shortcut
from mlax_tutorial.exercises.resnet.shift import exercise as shift
from mlax_tutorial.exercises.resnet.averaged import exercise as averaged
from mlax_tutorial.exercises.resnet.fold import exercise as fold
from mlax_tutorial.exercises.resnet.loss_scale import exercise as loss_scale
from mlax_tutorial.exercises.resnet.port import exercise as port
