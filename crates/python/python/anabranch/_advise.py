"""Advice on a path."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Iterable, Mapping, Optional, Union

from . import _native, _progress
from ._native import Advice
from ._run import Progress


def advise(
    rtt: Union[None, str, timedelta],
    rate: str,
    loss: Union[str, float],
    *,
    goodput: Union[str, float] = 0.95,
    mtu: Optional[str] = None,
    message: Optional[str] = None,
    queue: Optional[str] = None,
    discipline: Optional[str] = None,
    satellites: Optional[Mapping[str, Union[str, timedelta]]] = None,
    streams: Iterable[int] = (),
    congestion: Iterable[str] = (),
    profile: Iterable[str] = (),
    recovery: Iterable[str] = (),
    duration: Union[None, str, timedelta] = None,
    seed: int = 1,
    out: Union[None, str, "os.PathLike[str]"] = None,
    jobs: Optional[int] = None,
    progress: Progress = None,
) -> Advice:
    """Says which receive buffer, how many streams and which congestion control a path needs, by simulating it: the smallest buffer,
    then the fewest streams, that surely (with 95 % confidence) carry the wanted share of what the same sender carries with a buffer
    without limit. It takes about a minute. ``docs/ADVISE.md`` tells how it is found and what it does not know.

    rtt: round-trip time of the empty path: ``"560 ms"``, or a timedelta; None with ``satellites``.
    rate: of the link, in each direction: ``"10 Mbit/s"``.
    loss: probability that a packet of the data direction is lost, from 0 to 0.5: ``0.01`` or ``"1 %"``.
    goodput: the share wanted, 0.01 to 0.99.
    mtu: largest IP packet, 1500 B if left out. ``message``: size of a message, what fills a packet if left out.
    queue: what the link's queue holds, ``"50 packets"`` or ``"64 KiB"``; a round trip's worth of packets if left out.
    discipline: of the queue: ``"codel"``, ``"fq-codel"``, ``"pie"`` ...; drop-tail if left out.
    satellites: instead of ``rtt``, the two ends of a path over satellites and what else is known of it: ``{"from": "40.7,-74.0", "to":
        "51.5,-0.1", "shell": "starlink-1", "handover": "50 ms"}``.
    streams: numbers of streams to try; 1, 2, 4 and 8 if left out.
    congestion, profile: names to try, the preferred one first; ``docs/ADVISE.md`` lists what is tried if they are left out.
    recovery: loss recoveries to try with each: ``"standard"``, ``"rack"``, ``"paced"``.
    duration: how long each run is measured, in simulated time; by the path if left out.
    seed: of all randomness. Equal seeds give equal answers, on every machine and with any number of ``jobs``.
    out: a directory for the evidence: report, tables, figures, and a spec to change and run again. Without it the results stand
        in a temporary directory that goes with the answer.
    jobs, progress: as with :func:`run`; the number of runs is not known before, so that a ``progress`` of one's own gets 0 for it.

    Ctrl-C ends it at once. Raises SpecError for a question that makes no sense, with what is allowed in ``problems``, or that has no
    answer; RunError for a run that fails.
    """
    with _progress.shown(progress) as heard:
        return _native.advise(
            rtt,
            rate,
            loss,
            goodput=goodput,
            mtu=mtu,
            message=message,
            queue=queue,
            discipline=discipline,
            satellites=None if satellites is None else dict(satellites),
            streams=list(streams),
            congestion=list(congestion),
            profile=list(profile),
            recovery=list(recovery),
            duration=duration,
            seed=seed,
            out=None if out is None else Path(out),
            jobs=jobs,
            progress=heard,
        )
