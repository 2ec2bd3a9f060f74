"""The same network without its shortcuts: what they are worth."""

from benchmarks.twins import resnet

ABOUT = "the branches of that network, one after the other, without shortcuts"


def run(seed):
    return resnet.run(seed, skip=False)
