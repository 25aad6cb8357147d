"""Kinds written in Python: for trying an idea. The simulator waits for Python at each call, so a run takes many times as long as
with the same kind in Rust; the manual says how long.
"""

from __future__ import annotations

import hashlib
import inspect
import secrets
from typing import Any, Callable, Optional, TypeVar, Union

from . import _native
from ._native import Ack, Base

Class = TypeVar("Class", bound=type)

#: The module in which each kind was declared, by its name: a worker process imports it.
modules: dict[str, str] = {}


def _code(cls: type) -> str:
    """What a run with this kind depends on. Code that cannot be found is like no other."""
    try:
        text = inspect.getsource(cls)
    except (OSError, TypeError):
        return secrets.token_hex(16)
    return hashlib.sha256(text.encode()).hexdigest()


def _about(cls: type) -> str:
    lines = (inspect.getdoc(cls) or "").splitlines()
    return lines[0] if lines else f"the class {cls.__name__}"


class CongestionControl:
    """How much may fly on one path: the protocol's own control, to be changed by a class derived from this.

    ``self.base`` is the protocol's controller. Every method of this class hands on to it, and ``cwnd``, ``ssthresh`` and
    ``pacing_rate`` are read after each call. Sizes are bytes, times seconds. A class that also has
    ``on_sent(now, bytes, flightsize)`` hears of every packet sent, which costs a call each.
    """

    def __init__(self, base: Base) -> None:
        self.base = base

    def on_ack(self, ack: Ack) -> None:
        """An acknowledgement arrived."""
        self.base.on_ack(ack)

    def on_loss(self, now: float, cause: str, flightsize: int) -> None:
        """A loss was found: by "fast-retransmit" or by "timeout". Called once for an event of loss."""
        self.base.on_loss(now, cause, flightsize)

    def on_ecn(self, now: float, flightsize: int) -> None:
        """The receiver told of packets marked with CE. Called once for a window of data."""
        self.base.on_ecn(now, flightsize)

    def on_idle(self, now: float, idle_for: float, rto: float) -> None:
        """Nothing was sent for ``idle_for`` seconds."""
        self.base.on_idle(now, idle_for, rto)

    @property
    def cwnd(self) -> float:
        """The congestion window, bytes."""
        return self.base.cwnd

    @property
    def ssthresh(self) -> float:
        """The slow-start threshold, bytes."""
        return self.base.ssthresh

    @property
    def pacing_rate(self) -> Optional[float]:
        """How fast packets are to go, bytes per second; None: as the window lets them."""
        return None


class Workload:
    """When an application offers what.

    ``sizes`` are the least and the largest message in bytes (None: not known), ``paced`` says that it offers by a clock of its own, ``endless`` that it
    never runs dry. A workload draws from a generator seeded by ``seed`` alone, so that equal seeds give equal runs.
    """

    sizes: Optional[tuple[int, int]] = None
    paced: bool = True
    endless: bool = False

    def __init__(self, *, seed: int, packet: int, **parameters: Any) -> None:
        self.seed = seed
        self.packet = packet

    def next(self, now: float) -> Union[int, float, str, None]:
        """What there is at ``now``: an int (a message of so many bytes), a float (nothing before that second), "waiting" (for an
        answer), or None (nothing any more). Asked again while the transport has room.
        """
        raise NotImplementedError

    def answered(self, now: float) -> None:
        """The last byte of an answer arrived."""


def congestion(name: str) -> Callable[[Class], Class]:
    """Declares a class as the congestion control ``name``, which specs can name for SCTP and TCP from now on::

        @anabranch.congestion("timid")
        class Timid(anabranch.CongestionControl):
            def on_loss(self, now, cause, flightsize):
                super().on_loss(now, cause, flightsize)
                self.base.cwnd = self.base.unit
    """

    def declare(cls: Class) -> Class:
        _native.add_congestion(name, _about(cls), cls, _code(cls))
        modules[name] = cls.__module__
        return cls

    return declare


def workload(name: str, **parameters: Any) -> Callable[[Class], Class]:
    """Declares a class as the workload ``name``. Each parameter has a default, which says what it is: a span ("1 s"; the class is
    given seconds), a size ("100 B"; bytes), a rate ("2 Mbit/s"; bits per second), another text, a truth value, an int, a float::

        @anabranch.workload("sensor", interval="1 s", size="100 B")
        class Sensor(anabranch.Workload):
            def __init__(self, *, interval, size, **rest):
                super().__init__(**rest)
                self.interval, self.size, self.due = interval, size, 0.0

            def next(self, now):
                if now < self.due:
                    return self.due
                self.due = now + self.interval
                return self.size
    """

    def declare(cls: Class) -> Class:
        _native.add_workload(name, _about(cls), cls, parameters, _code(cls))
        modules[name] = cls.__module__
        return cls

    return declare
