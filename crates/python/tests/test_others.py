"""Third-party executors and notebooks."""

import os
import signal

import pytest

import anabranch
from anabranch import cluster
from test_cluster import contents


def test_submitit_gives_what_one_process_gives(pair, tmp_path):
    submitit = pytest.importorskip("submitit")
    executor = submitit.LocalExecutor(folder=tmp_path / "jobs")
    executor.update_parameters(timeout_min=10)
    anabranch.run(pair, out=tmp_path / "alone")
    assert cluster.run(pair, executor, out=tmp_path / "spread", batch=3).runs == 6
    assert contents(tmp_path / "spread") == contents(tmp_path / "alone")


@pytest.fixture
def ray():
    module = pytest.importorskip("ray")
    module.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield module
    module.shutdown()


def test_ray_gives_what_one_process_gives(pair, ray, tmp_path):
    anabranch.run(pair, out=tmp_path / "alone")
    assert cluster.run(pair, cluster.Ray(ray), out=tmp_path / "spread", batch=1).runs == 6
    assert contents(tmp_path / "spread") == contents(tmp_path / "alone")


def test_the_runs_of_a_worker_of_ray_that_died_are_made_by_another(pair, ray, tmp_path):
    marker = tmp_path / "died"

    class Dying(cluster.Ray):
        def submit(self, function, *arguments):
            def once(*arguments):
                try:
                    marker.touch(exist_ok=False)
                except FileExistsError:
                    return function(*arguments)
                os.kill(os.getpid(), signal.SIGKILL)

            return super().submit(once, *arguments)

    results = cluster.run(pair, Dying(ray), out=tmp_path / "spread", batch=1)
    anabranch.run(pair, out=tmp_path / "alone")
    assert marker.exists() and results.runs == 6
    assert contents(tmp_path / "spread") == contents(tmp_path / "alone")


def test_marimo_shows_a_report_in_a_frame(pair):
    marimo = pytest.importorskip("marimo")
    shown = marimo.as_html(anabranch.report(anabranch.run(pair))).text
    assert shown.startswith("<iframe") and "srcdoc=" in shown
