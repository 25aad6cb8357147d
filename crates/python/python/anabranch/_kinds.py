"""Kinds written in Python, for prototypes. Because the simulator waits for Python at each call, a run takes many times as long as
with the same kind in Rust; the manual has figures.
"""

from __future__ import annotations

import hashlib
import inspect
import secrets
from typing import Any, Callable, Optional, TypeVar, Union

from . import _native
from ._native import Ack, Base

Class = TypeVar("Class", bound=type)

#: Module in which each kind was declared, by name, because worker processes must import it.
modules: dict[str, str] = {}


def _code(cls: type) -> str:
    """Hash of the code on which a run with this kind depends. Code without source gets a unique value."""
    try:
        text = inspect.getsource(cls)
    except (OSError, TypeError):
        return secrets.token_hex(16)
    return hashlib.sha256(text.encode()).hexdigest()


def _about(cls: type) -> str:
    lines = (inspect.getdoc(cls) or "").splitlines()
    return lines[0] if lines else f"the class {cls.__name__}"


class CongestionControl:
    """Congestion control of one path: the protocol's own, which derived classes can change.

    ``self.base`` is the protocol's controller. Every method of this class forwards to it, and ``cwnd``, ``ssthresh`` and
    ``pacing_rate`` are read after each call. Sizes are in bytes, times in seconds. A class with a method
    ``on_sent(now, bytes, flightsize)`` gets a call for every sent packet, which is expensive.
    """

    def __init__(self, base: Base) -> None:
        self.base = base

    def on_ack(self, ack: Ack) -> None:
        """An acknowledgement arrived."""
        self.base.on_ack(ack)

    def on_loss(self, now: float, cause: str, flightsize: int) -> None:
        """A loss was detected by "fast-retransmit" or by "timeout". Called once per loss event."""
        self.base.on_loss(now, cause, flightsize)

    def on_ecn(self, now: float, flightsize: int) -> None:
        """The receiver reported packets marked with CE. Called once per window of data."""
        self.base.on_ecn(now, flightsize)

    def on_idle(self, now: float, idle_for: float, rto: float) -> None:
        """No packet was sent for ``idle_for`` seconds."""
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
        """Pacing rate in bytes per second; None: no pacing."""
        return None


class Workload:
    """Messages of an application over time.

    ``sizes`` are the minimum and maximum message size in bytes (None: unknown), ``paced`` means that offers follow the workload's
    own clock, ``endless`` that it never ends. A workload should only use random numbers seeded by ``seed``, so that equal seeds give
    equal runs.
    """

    sizes: Optional[tuple[int, int]] = None
    paced: bool = True
    endless: bool = False

    def __init__(self, *, seed: int, packet: int, **parameters: Any) -> None:
        self.seed = seed
        self.packet = packet

    def next(self, now: float) -> Union[int, float, str, None]:
        """Offer at time ``now``: an int (size of a message in bytes), a float (no message before that second), "waiting" (for an
        answer), or None (the end). Called again while the transport has buffer space.
        """
        raise NotImplementedError

    def answered(self, now: float) -> None:
        """The last byte of an answer arrived."""


def congestion(name: str) -> Callable[[Class], Class]:
    """Declares a class as the congestion control ``name``, which specs can then name for SCTP and TCP::

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
    """Declares a class as the workload ``name``. Each parameter has a default, which determines its kind: a span ("1 s"; the class
    gets seconds), a size ("100 B"; bytes), a rate ("2 Mbit/s"; bits per second), another text, a boolean, an int, a float::

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
