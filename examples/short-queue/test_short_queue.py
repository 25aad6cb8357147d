"""The control in Rust, by a wheel of its own beside the package's, against the one in Python that a notebook declares."""

import concurrent.futures
import importlib
import json
import multiprocessing
import pathlib

import pytest

import anabranch
from anabranch import cluster

NOTEBOOK = pathlib.Path(__file__).parents[2] / "crates/python/notebooks/own-congestion-control.ipynb"


@pytest.fixture
def in_python(tmp_path, monkeypatch):
    """The notebook's control, by another name."""
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    (code,) = [text for text in ("".join(cell["source"]) for cell in cells) if "class ShortQueue" in text]
    assert '@congestion("short-queue")' in code
    (tmp_path / "notebook.py").write_text(code.replace('"short-queue"', '"in-python"'))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("notebook")


def spec(protocol, control):
    """An upload over a lossy radio. Losses follow from the point of the sweep, so that they are the same for each control."""
    return anabranch.Spec(
        "short-queue",
        parameters={"loss": 0.01},
        world={"duration": "30 s"},
        node=[{"name": "a"}, {"name": "b"}],
        link=[
            {
                "name": "radio",
                "between": ["a", "b"],
                "rate": "5 Mbit/s",
                "delay": "50 ms",
                "queue": "60 packets",
                "loss": {"forward": {"model": "bernoulli", "probability": "$loss"}},
            }
        ],
        flow=[
            {
                "name": "upload",
                "from": "a",
                "to": "b",
                "workload": {"kind": "bulk"},
                "transport": {"protocol": protocol, "congestion": control},
            }
        ],
        measure=[{"metric": "goodput", "flow": "upload"}],
        experiment=[
            {
                "id": "losses",
                "replications": 4,
                "sweep": [{"parameter": "loss", "values": [0.005, 0.01]}],
            }
        ],
    )


def goodputs(results):
    return [row["value"] for row in results.measures().to_pyarrow().to_pylist()]


@pytest.mark.parametrize("protocol, own", [("sctp", "sctp"), ("tcp", "newreno")])
def test_it_does_what_the_one_in_python_does(in_python, protocol, own):
    rust = goodputs(anabranch.run(spec(protocol, "short-queue")))
    assert rust == goodputs(anabranch.run(spec(protocol, "in-python")))
    assert sum(rust) > 1.3 * sum(goodputs(anabranch.run(spec(protocol, own))))


def test_workers_have_it_too():
    spawn = multiprocessing.get_context("spawn")
    sweep = spec("sctp", "short-queue")
    with concurrent.futures.ProcessPoolExecutor(2, spawn) as executor:
        spread = cluster.run(sweep, executor, batch=1)
    assert goodputs(spread) == goodputs(anabranch.run(sweep))
