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
    message_size: Optional[str] = None,
    queue: Optional[str] = None,
    qdisc: Optional[str] = None,
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
    """Recommends a receive buffer, a number of streams and a congestion control for a path, by simulation: the smallest buffer,
    then the fewest streams, that reach (with 95 % confidence) the requested share of the same sender's goodput with an unlimited
    buffer. It takes about a minute. ``docs/ADVISE.md`` describes the method and its limits.

    rtt: round-trip time of the empty path: ``"560 ms"``, or a timedelta; None with ``satellites``.
    rate: rate of the link in each direction: ``"10 Mbit/s"``.
    loss: probability that a packet of the data direction is lost, from 0 to 0.5: ``0.01`` or ``"1 %"``.
    goodput: requested share, 0.01 to 0.99.
    mtu: largest IP packet, default 1500 B. ``message_size``: message size, default one that fills a packet.
    queue: capacity of the link's queue, ``"50 packets"`` or ``"64 KiB"``; default one bandwidth-delay product.
    qdisc: queue discipline: ``"codel"``, ``"fq-codel"``, ``"pie"`` ...; default drop-tail.
    satellites: instead of ``rtt``, the two ends of a satellite path and optional properties of it: ``{"from": "40.7,-74.0", "to":
        "51.5,-0.1", "shell": "starlink-1", "handover": "50 ms"}``.
    streams: numbers of streams to try; default 1, 2, 4 and 8.
    congestion, profile: names to try, in order of preference; ``docs/ADVISE.md`` lists the defaults.
    recovery: loss recoveries to try with each: ``"standard"``, ``"rack"``, ``"paced"``.
    duration: measured simulated time of each run; default depends on the path.
    seed: seed of all random numbers. Equal seeds give equal answers, on every machine and with any number of ``jobs``.
    out: a directory for the evidence: report, tables, figures, and a spec that can be changed and run again. Without it the results
        are in a temporary directory that is removed with the answer.
    jobs, progress: see :func:`run`; because the number of runs is not known in advance, a ``progress`` function gets 0 for it.

    Ctrl-C ends it at once. Raises SpecError for an invalid question, with the allowed values in ``problems``, or one without an
    answer; RunError if a run fails.
    """
    with _progress.shown(progress) as heard:
        return _native.advise(
            rtt,
            rate,
            loss,
            goodput=goodput,
            mtu=mtu,
            message_size=message_size,
            queue=queue,
            qdisc=qdisc,
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
