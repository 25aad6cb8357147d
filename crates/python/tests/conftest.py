import signal

import pytest

import anabranch

# A background process of a shell ignores Ctrl-C, and Python then raises no KeyboardInterrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

PAIR = {
    "parameters": {"loss": 0.02},
    "world": {"duration": "5 s"},
    "node": [{"name": "a"}, {"name": "b"}],
    "link": [
        {
            "name": "wire",
            "between": ["a", "b"],
            "rate": "2 Mbit/s",
            "delay": "20 ms",
            "loss": {"model": "bernoulli", "probability": "$loss"},
        }
    ],
    "flow": [
        {
            "name": "upload",
            "from": "a",
            "to": "b",
            "workload": {"kind": "bulk"},
            "transport": {"protocol": "sctp"},
        }
    ],
    "measure": [{"metric": "goodput", "flow": "upload"}],
    "experiment": [
        {
            "id": "losses",
            "replications": 3,
            "sweep": [{"parameter": "loss", "values": [0.0, 0.02]}],
            "record": [{"flow": "upload", "probes": ["cwnd"]}],
        }
    ],
}


@pytest.fixture
def pair():
    """Two nodes, a lossy link, an upload; six runs of five seconds."""
    return anabranch.Spec("pair", **PAIR)
