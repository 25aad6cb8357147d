import os
import signal

import pytest

import anabranch
from anabranch import cluster
from test_cluster import contents

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
# On a busy machine processes may start and answer slowly.
SLOW = {"distributed.comm.timeouts.connect": "600s", "distributed.comm.timeouts.tcp": "600s", "distributed.scheduler.worker-ttl": None}


@pytest.fixture
def client():
    with dask.config.set(SLOW), distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as local, distributed.Client(local, timeout=600) as client:
        yield client


def test_a_dask_cluster_gives_what_one_process_gives(pair, client, tmp_path):
    anabranch.run(pair, out=tmp_path / "alone")
    assert cluster.run(pair, client, out=tmp_path / "spread", batch=1).runs == 6
    assert contents(tmp_path / "spread") == contents(tmp_path / "alone")


def test_the_runs_of_a_killed_worker_are_made_by_another(pair, client, tmp_path):
    pair["world.duration"] = "100 s"
    pair["experiment.losses.replications"] = 10
    (victim, *_) = client.run(os.getpid).values()
    killed = []

    def kill(finished, *_):
        if finished >= 2 and not killed:
            killed.append(victim)
            os.kill(victim, signal.SIGKILL)

    results = cluster.run(pair, client, out=tmp_path / "spread", batch=1, progress=kill)
    anabranch.run(pair, out=tmp_path / "alone")
    assert killed and results.runs == 20
    assert contents(tmp_path / "spread") == contents(tmp_path / "alone")
