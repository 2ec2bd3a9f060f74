"""What a training tells while it runs: a progress bar."""

import sys


class Progress:
    """A progress bar on standard error. It draws in a terminal only: a notebook keeps what is printed for ever.

    Example:
      >>> with Progress(total=3) as progress:
      ...     for _ in range(3):
      ...         progress.advance()
    """

    WIDTH = 30

    def __init__(self, total: int, file=None):
        self.total, self.done, self.file = max(total, 1), 0, file or sys.stderr
        self.shown = None

    def advance(self) -> None:
        """One more is done."""
        self.done += 1
        filled = self.WIDTH * self.done // self.total
        if filled != self.shown and hasattr(self.file, "isatty") and self.file.isatty():
            self.shown = filled
            self._print(f"{'█' * filled}{'░' * (self.WIDTH - filled)} {self.done}/{self.total}")

    def _print(self, text):
        print(f"\r{text}", end="", file=self.file, flush=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.shown is not None:  # leave the line to what is printed next
            self._print(" " * (self.WIDTH + 2 + 2 * len(str(self.total))) + "\r")
