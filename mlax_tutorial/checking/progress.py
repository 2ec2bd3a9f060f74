"""What the reader has done, in a local file. Nothing of it leaves the machine."""


def record(chapter, name, status):
    return ""
