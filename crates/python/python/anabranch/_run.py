"""Runs of specs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, Optional, Union

from . import _progress
from ._native import Job, Results, Spec, setting

SpecLike = Union[Spec, str, "os.PathLike[str]"]
Progress = Union[None, bool, Callable[[int, int, float, float], None]]


def as_spec(spec: SpecLike) -> Spec:
    """A spec, or the spec in a file."""
    return spec if isinstance(spec, Spec) else Spec.read(Path(spec))


def settings(values: Optional[Mapping[str, Any]]) -> list[str]:
    """Overrides as on the command line: a text is unchanged, other values are written as TOML."""
    return [setting(key, value) for key, value in (values or {}).items()]


def at_least(name: str, value: Optional[int], least: int) -> None:
    """Raises ValueError if a number is too small."""
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
    """Checks a spec and plans its runs, without running them. The arguments are those of :func:`run`."""
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
    """Runs a spec, or the spec in a file, and returns its results.

    seed: seed of all random numbers. Equal seeds give equal results, on every machine and with any number of ``jobs``.
    replications: runs of each point; default the spec's number. ``quick``: the spec's small number for a first look.
    only: ids of the requested experiments, tables or figures; all if empty.
    set: values of parameters, or of keys by their path, like ``--set`` of the command: ``{"loss": 0.02}``.
    record_all: keep the samples of all replications, regardless of the spec.
    out: a directory. Runs that are finished there are not repeated. Without it the results are in a temporary directory that is
        removed with them.
    jobs: number of concurrent runs; default one per core, or one if the spec names a kind written in Python. Other Python threads
        continue meanwhile.
    progress: True shows a line on standard error; or a function of (finished runs, total runs, completed simulated seconds, total
        simulated seconds), called a few times per second by the calling thread.

    Ctrl-C ends it at once. Finished runs are in ``out``, and the same call continues from there.

    Raises SpecError if the spec is invalid (nothing is run), RunError if a run fails, and any exception of a congestion control or
    workload written in Python.
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
    """Reproduces a paper: runs its spec, and compares the results with the printed values. :func:`papers` lists the papers. The
    arguments are those of :func:`run`; a complete run takes minutes, ``quick=True`` seconds, with fewer verdicts.
    """
    return run(Spec.paper(paper), **arguments)
