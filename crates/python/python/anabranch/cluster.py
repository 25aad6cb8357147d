"""Runs of one spec on many processes or machines: batches of runs are distributed, and their results combined as in one process.

``executor`` is any object with ``submit(function, *arguments)`` that returns futures. Tested are the process pools of
:mod:`concurrent.futures`, a Dask ``Client``, executors of ``submitit``, and Ray with :class:`Ray`. Workers need the same version of
this package, but no shared file system.
"""

from __future__ import annotations

import concurrent.futures
import importlib
import io
import os
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence, Union

from . import _kinds, _progress
from ._native import Job, ResultsStore, Results, RunError
from ._run import Progress, SpecLike, job

#: Maximum number of attempts for the runs of a worker that died.
ATTEMPTS = 3


def work(saved: bytes, places: Sequence[int], modules: Sequence[str], attempt: int = 1) -> bytes:
    """Work of a worker: runs these run numbers, and returns their records and samples as a zip archive. ``attempt`` distinguishes
    attempts, because some executors merge equal calls.
    """
    for module in modules:
        importlib.import_module(module)
    with tempfile.TemporaryDirectory(prefix="anabranch-") as directory:
        Job.from_bytes(saved).run_subset(set(places), directory, 1)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
            for path in sorted(Path(directory).rglob("*")):
                if path.is_file() and path.name != ".lock":
                    archive.write(path, path.relative_to(directory).as_posix())
        return packed.getvalue()


def _take(kept: ResultsStore, places: Sequence[int], packed: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="anabranch-") as directory:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive:
            archive.extractall(directory)
        kept.take(set(places), directory)


class Ray:
    """Adapts Ray, which returns references instead of futures, to an executor: ``cluster.run(spec, cluster.Ray(ray))``.

    ray: the module, after ``ray.init``.
    options: options of ``ray.remote``, such as ``num_cpus``. A batch whose worker died is repeated by :func:`run`, not by Ray.
    """

    def __init__(self, ray: Any, **options: Any) -> None:
        self._ray = ray
        self._options = {"num_cpus": 1, **options, "max_retries": 0}
        self.max_workers = int(ray.cluster_resources().get("CPU", 1))

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Returns a future of :mod:`concurrent.futures`."""
        return self._ray.remote(**self._options)(function).remote(*arguments).future()


def batches(
    seconds: Mapping[int, float], size: Optional[int] = None, workers: int = 1
) -> Iterator[list[int]]:
    """Splits runs, given by number with their simulated seconds, into batches of ``size``; or of about equal time, eight per worker,
    so that no worker waits long for the last one.
    """
    most = sum(seconds.values()) / max(1, 8 * workers)
    batch: list[int] = []
    time_of = 0.0
    for place, long in seconds.items():
        batch.append(place)
        time_of += long
        full = len(batch) >= size if size is not None else time_of >= most
        if full:
            yield batch
            batch, time_of = [], 0.0
    if batch:
        yield batch


def _workers(executor: Any) -> int:
    for name in ("_max_workers", "max_workers"):
        if isinstance(getattr(executor, name, None), int):
            return int(getattr(executor, name))
    cores = getattr(executor, "ncores", None)
    return sum(cores().values()) if callable(cores) else os.cpu_count() or 1


def _finished(futures: Iterable[Any]) -> set[Any]:
    """The finished futures; waits for at least one."""
    futures = set(futures)
    if all(isinstance(future, concurrent.futures.Future) for future in futures):
        done, _ = concurrent.futures.wait(
            futures, timeout=1.0, return_when=concurrent.futures.FIRST_COMPLETED
        )
        return done
    while True:
        done = {future for future in futures if future.done()}
        if done:
            return done
        time.sleep(0.02)


def run(
    spec: SpecLike,
    executor: Union[Any, Callable[[], Any]],
    *,
    out: Union[None, str, "os.PathLike[str]"] = None,
    batch: Optional[int] = None,
    progress: Progress = None,
    **arguments: Any,
) -> Results:
    """Runs a spec on the workers of an executor. The results are byte-identical to those of :func:`anabranch.run`.

    executor: has ``submit``, whose futures have ``done``, ``result`` and ``cancel``; or a function that creates one, which is called
        again if the executor fails with a worker (``concurrent.futures`` does; Dask selects another worker by itself).
    out: a directory of this process, as in :func:`anabranch.run`; runs that are finished there are not repeated.
    batch: number of runs per batch; default about eight batches per worker.
    arguments: those of :func:`anabranch.run` that select runs and outputs: seed, replications, quick, only, set, record_all.

    A batch whose worker died is repeated, with at most three attempts; a run that fails is not. Kinds written in Python must be in a
    module that workers can import.
    """
    if not hasattr(executor, "submit") and not callable(executor):
        raise TypeError(
            f"executor: found {executor!r}; it has `submit`, or it is a function that makes one"
        )
    planned = job(spec, **arguments)
    temporary = None
    if out is None:
        temporary = tempfile.TemporaryDirectory(prefix="anabranch-")
        out = temporary.name
    out = Path(out)
    again: Optional[Callable[[], Any]] = None if hasattr(executor, "submit") else executor
    made: Any = executor if again is None else again()
    declared = {name: _kinds.modules[name] for name in planned.written_in_python}
    here = sorted(name for name, module in declared.items() if module == "__main__")
    if here:
        raise RunError(
            f"{' and '.join(here)}: declared in __main__, which workers cannot import; put it into a module"
        )
    modules = sorted(set(declared.values()))
    saved = planned.to_bytes()
    kept = planned.open_store(out)
    missing = kept.missing()
    lengths = planned.seconds
    seconds = {place: lengths[place] for place in missing}
    total = sum(seconds.values())
    finished, done = len(planned) - len(missing), 0.0
    waiting: dict[Any, tuple[list[int], int]] = {}

    def submit(places: list[int], attempt: int) -> None:
        waiting[made.submit(work, saved, places, modules, attempt)] = (places, attempt)

    with _progress.shown(progress) as heard:
        try:
            for places in batches(seconds, batch, _workers(made)):
                submit(places, 1)
            while waiting:
                for future in _finished(waiting):
                    places, attempt = waiting.pop(future)
                    try:
                        packed = future.result()
                    except (RunError, KeyboardInterrupt):
                        raise
                    except Exception as error:
                        if attempt >= ATTEMPTS or not _died(error):
                            raise
                        if isinstance(error, concurrent.futures.BrokenExecutor):
                            if again is None:
                                raise
                            # The broken executor has lost all batches in progress.
                            lost = [(places, attempt), *waiting.values()]
                            waiting.clear()
                            made = again()
                            for places, attempt in lost:
                                submit(places, attempt + 1)
                            break
                        submit(places, attempt + 1)
                        continue
                    _take(kept, places, packed)
                    finished += len(places)
                    done += sum(seconds[place] for place in places)
                    if heard is not None:
                        heard(finished, len(planned), done, total)
        except BaseException:
            for future in waiting:
                future.cancel()
            raise
        finally:
            if again is not None:
                made.shutdown()
    results = planned.combine(out)
    if temporary is not None:
        setattr(results, "_temporary", temporary)  # removed with the results
    return results


def _died(error: BaseException) -> bool:
    """Whether a worker died, as opposed to a failure of its work. Dask raises `KilledWorker`, Ray `WorkerCrashedError`."""
    if isinstance(error, (concurrent.futures.BrokenExecutor, ConnectionError, EOFError)):
        return True
    return type(error).__name__ in {"KilledWorker", "WorkerCrashedError", "CommClosedError"}
