import concurrent.futures
import hashlib
import multiprocessing
import os
from pathlib import Path

import pytest

import anabranch
from anabranch import cluster


SPAWN = multiprocessing.get_context("spawn")


def contents(directory):
    """Files of results that should not depend on the way of execution, by name."""
    names = ["manifest.json", "measures.csv", "records.json"]
    files = [directory / name for name in names] + sorted(Path(directory, "series").iterdir())
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_batches_hold_each_run_once():
    seconds = {place: 1.0 + place % 3 for place in range(100)}
    for size, workers in [(None, 1), (None, 7), (9, 2)]:
        cut = list(cluster.batches(seconds, size, workers))
        assert [place for batch in cut for place in batch] == list(seconds)
    assert {len(batch) for batch in cluster.batches(seconds, 9)} == {9, 1}


def test_processes_give_what_one_gives(pair, tmp_path):
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    anabranch.run(pair, out=alone)
    heard = []
    with concurrent.futures.ProcessPoolExecutor(2, SPAWN) as executor:
        results = cluster.run(
            pair, executor, out=spread, batch=2, progress=lambda *report: heard.append(report)
        )
    assert results.runs == 6 and heard[-1] == (6, 6, 30.0, 30.0)
    assert contents(spread) == contents(alone)


def test_only_kinds_that_a_spec_names_must_be_found_by_workers(pair, tmp_path):
    class Here(anabranch.CongestionControl):
        pass

    Here.__module__ = "__main__"
    anabranch.congestion("declared-here")(Here)
    anabranch.run(pair, out=tmp_path / "alone")
    with concurrent.futures.ProcessPoolExecutor(1, SPAWN) as executor:
        cluster.run(pair, executor, out=tmp_path / "spread")
        assert contents(tmp_path / "spread") == contents(tmp_path / "alone")
        pair["flow.upload.transport.congestion"] = "declared-here"
        with pytest.raises(anabranch.RunError, match="declared-here.*__main__"):
            cluster.run(pair, executor)


def test_finished_runs_do_not_travel(pair, tmp_path):
    anabranch.run(pair, out=tmp_path)

    class Nobody:
        def submit(self, *_):
            raise AssertionError("nothing is left to do")

    assert cluster.run(pair, Nobody(), out=tmp_path).runs == 6


class Dying(concurrent.futures.ProcessPoolExecutor):
    """The worker of the first batch dies, once."""

    died = False

    def submit(self, work, *arguments):
        if not Dying.died:
            Dying.died = True
            return super().submit(os._exit, 9)
        return super().submit(work, *arguments)


def test_a_worker_that_dies_is_run_again(pair, tmp_path):
    Dying.died = False
    results = cluster.run(pair, lambda: Dying(2, SPAWN), out=tmp_path / "spread", batch=1)
    anabranch.run(pair, out=tmp_path / "alone")
    assert Dying.died and results.runs == 6
    assert contents(tmp_path / "spread") == contents(tmp_path / "alone")


def test_a_run_that_fails_is_not_begun_again():
    tried = []

    class Failing:
        def submit(self, *arguments):
            tried.append(arguments)
            future = concurrent.futures.Future()
            future.set_exception(anabranch.RunError("it fails"))
            return future

    spec = anabranch.Spec.example("own")
    with pytest.raises(anabranch.RunError, match="it fails"):
        cluster.run(spec, Failing(), batch=1000, quick=True)
    assert len(tried) == len({tuple(it[2]) for it in tried})
