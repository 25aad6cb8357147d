"""Running specs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Optional, Union

from . import _progress
from ._native import Job, Results, Spec, setting

SpecLike = Union[Spec, str, "os.PathLike[str]"]
Progress = Union[None, bool, Callable[[int, int, float, float], None]]


def as_spec(spec: SpecLike) -> Spec:
    """A spec as it is, or the one in a file."""
    return spec if isinstance(spec, Spec) else Spec.read(Path(spec))


def settings(values: Optional[Mapping[str, Any]]) -> list[str]:
    """Overrides as the command line has them: a text stands as it is, all else as TOML."""
    return [setting(key, value) for key, value in (values or {}).items()]


def at_least(name: str, value: Optional[int], least: int) -> None:
    """Refuses a number that is too small."""
    if value is not None and value < least:
        raise ValueError(f"{name}: found {value}; allowed: {least} and more")


def job(
    spec: SpecLike,
    *,
    seed: int = 1,
    replications: Optional[int] = None,
    quick: bool = False,
    only: Union[str, Iterable[str]] = (),
    set: Optional[Mapping[str, Any]] = None,
    record_all: bool = False,
) -> Job:
    """Checks a spec and plans its runs, without making any. The arguments are those of :func:`run`."""
    at_least("seed", seed, 0)
    return Job(
        as_spec(spec),
        seed=seed,
        replications=replications,
        quick=quick,
        only=[only] if isinstance(only, str) else list(only),
        set=settings(set),
        record_all=record_all,
    )


def run(
    spec: SpecLike,
    *,
    seed: int = 1,
    replications: Optional[int] = None,
    quick: bool = False,
    only: Union[str, Iterable[str]] = (),
    set: Optional[Mapping[str, Any]] = None,
    record_all: bool = False,
    out: Union[None, str, "os.PathLike[str]"] = None,
    jobs: Optional[int] = None,
    progress: Progress = None,
) -> Results:
    """Runs a spec, or the spec in a file, and gives its results.

    seed: of all randomness. Equal seeds give equal results, on every machine and with any number of ``jobs``.
    replications: runs of each point, instead of the spec's numbers. ``quick``: the spec's few for a first look.
    only: ids of the experiments, tables or figures that are wanted; all if empty.
    set: values of parameters, or of keys by their path, as ``--set`` of the command: ``{"loss": 0.02}``.
    record_all: keep the samples of all replications, whatever the spec says.
    out: a directory. Runs that are finished there are not made again. Without it the results stand in a temporary
        directory that goes with them.
    jobs: runs at a time; if left out one for each core, and one where the spec names a kind written in Python. Python code is free to go on meanwhile in other threads.
    progress: True shows a line on standard error; or a function of (runs finished, runs, simulated seconds done, simulated
        seconds to do), called some times a second by the calling thread.

    Ctrl-C ends it at once. What was finished is in ``out``, and the same call goes on from there.

    Raises SpecError for a spec that is wrong (nothing is run), RunError for a run that fails, and whatever Python code of a
    congestion control or workload raises.
    """
    at_least("jobs", jobs, 1)
    planned = job(
        spec,
        seed=seed,
        replications=replications,
        quick=quick,
        only=only,
        set=set,
        record_all=record_all,
    )
    with _progress.shown(progress) as heard:
        return planned.run(None if out is None else Path(out), jobs, heard)


def reproduce(paper: str, **arguments: Any) -> Results:
    """Reproduces a paper: runs its spec, and compares with what it printed. :func:`papers` lists them. The arguments are those of
    :func:`run`; a whole run takes minutes, ``quick=True`` seconds, and judges less.
    """
    return run(Spec.paper(paper), **arguments)
