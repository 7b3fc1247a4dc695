"""How long an operation waits until views show it: the model of paper 004.

The time that one operation takes one view server gives the most operations a second
(equation 1) and, with the length of the queue, how long what is written now has to wait (equation 2).

::

    max throughput = numVS / latency                        (1)
    staleness      = (queue size / numVS) · latency         (2)

The paper's view servers take one operation after another. Ours take many in one epoch, and an epoch costs
something however few they are: starting tasks, committing. So the time of an epoch is a line::

    seconds = rest + (operations / numVS) · latency

Its two numbers are fitted to the last epochs (:class:`Pace`), and ``rest`` is what an operation waits in
addition to (2). If all epochs are equally large the two cannot be distinguished; then all of it is
latency, which is the paper's case. If all are small, all of it is ``rest``: their times differ too
little to show what an operation takes, least of all what a hundred thousand do. If larger ones
took no longer, all of it is ``rest``, too.

    >>> round(max_throughput(50, 0.0012))
    41667
    >>> staleness(100_000, 25, 0.0012)
    4.8
    >>> pace = Pace().after(1_000, 2, 0.3).after(100_000, 2, 0.498)
    >>> round(pace.rest, 6), round(pace.latency, 9)
    (0.298, 4e-06)
"""

from __future__ import annotations

from dataclasses import dataclass

FADING = 0.95
"""What an epoch counts for, compared with the one after it."""
SMALL = 1000
"""Operations of a server that take next to no time, compared with what an epoch takes without any."""


def max_throughput(servers: int, latency: float) -> float | None:
    """Equation 1: operations per second, at most. ``latency``: seconds of one server per operation;
    None where that is too little to be measured."""
    return servers / latency if latency > 0 else None


def staleness(queue: int, servers: int, latency: float, rest: float = 0.0) -> float:
    """Equation 2: seconds until everything in the queue is shown."""
    return rest + queue / servers * latency if queue else 0.0


@dataclass(frozen=True)
class Pace:
    """How long epochs take, by how many operations each server has: sums over the last ones, the older
    the less."""

    weight: float = 0.0
    loads: float = 0.0
    seconds: float = 0.0
    squares: float = 0.0
    products: float = 0.0

    def after(self, operations: int, servers: int, seconds: float) -> Pace:
        """With one more epoch."""
        load = operations / servers
        return Pace(
            self.weight * FADING + 1,
            self.loads * FADING + load,
            self.seconds * FADING + seconds,
            self.squares * FADING + load * load,
            self.products * FADING + load * seconds,
        )

    @property
    def known(self) -> bool:
        return self.loads > 0

    @property
    def rest(self) -> float:
        """Seconds of an epoch without operations."""
        return self._line[0]

    @property
    def latency(self) -> float:
        """Seconds that one more operation takes one server."""
        return self._line[1]

    @property
    def _line(self) -> tuple[float, float]:
        """The line through the last epochs, which neither falls nor begins below zero."""
        if not self.known:
            return 0.0, 0.0
        if self.squares < SMALL * SMALL * self.weight:
            return self.seconds / self.weight, 0.0
        spread = self.squares * self.weight - self.loads * self.loads
        if spread > 1e-9 * self.squares * self.weight:
            latency = (self.products * self.weight - self.loads * self.seconds) / spread
            rest = (self.seconds - latency * self.loads) / self.weight
            if latency <= 0:
                return self.seconds / self.weight, 0.0
            if rest > 0:
                return rest, latency
        return 0.0, self.seconds / self.loads
