"""Progress of a run, on one line of standard error."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import Callable, Iterator, Optional, TextIO, Union

Heard = Callable[[int, int, float, float], None]


def span(seconds: float) -> str:
    """Formats a time span: 75 s is 1:15."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Line:
    """A line that is overwritten. Without a terminal, a single line at the end."""

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self.out = out
        self.clock = clock
        self.live = out.isatty() or "ipykernel" in sys.modules
        self.begun: Optional[float] = None
        self.next = 0.0
        self.width = 0
        self.last = ""

    def __call__(self, finished: int, runs: int, done: float, total: float) -> None:
        now = self.clock()
        if self.begun is None:
            self.begun = now
        elapsed = now - self.begun
        # The total is not always known in advance.
        text = f"{finished} of {runs} runs" if runs else f"{finished} runs"
        if total > 0:
            text += f", {100 * done / total:.0f} %"
        if elapsed > 0 and done > 0:
            text += f", {done / elapsed:.0f} simulated s/s"
            if done < total:
                text += f", {span((total - done) * elapsed / done)} left"
        self.last = text
        if self.live and now >= self.next:
            self.next = now + 0.2
            self.write(text)

    def write(self, text: str) -> None:
        self.out.write("\r" + text.ljust(self.width))
        self.out.flush()
        self.width = len(text)

    def close(self) -> None:
        if not self.last:
            return
        if self.live:
            self.write(self.last)
            self.out.write("\n")
        else:
            self.out.write(self.last + "\n")
        self.out.flush()


@contextmanager
def shown(progress: Union[None, bool, Heard]) -> Iterator[Optional[Heard]]:
    """The receiver of progress reports."""
    if progress is not True:
        yield progress or None
        return
    line = Line(sys.stderr)
    try:
        yield line
    finally:
        line.close()
