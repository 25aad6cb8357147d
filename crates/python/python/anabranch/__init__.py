"""SCTP and TCP over satellite, wireless and multiple paths: simulation, comparison, reproduction of papers.

A first comparison::

    import anabranch

    spec = anabranch.Spec.example("own")
    spec["parameters.rate"] = "2 Mbit/s"
    results = anabranch.run(spec, replications=10)
    results.measures("delay").to_pandas()

Values of a spec are written as in a TOML file: quantities are text with a unit ("40 ms", "2 Mbit/s", "64 KiB"); other values
are numbers, booleans, lists or dicts. Results are Arrow tables.
"""

from . import _carrier

_carrier.take()

from ._native import (
    Ack,
    Advice,
    Base,
    Error,
    Figure,
    Job,
    Results,
    RunError,
    Spec,
    SpecError,
    Table,
    __version__,
    compare,
    examples,
    papers,
)
from ._advise import advise
from ._kinds import CongestionControl, Workload, congestion, workload
from ._report import Report, report
from ._run import reproduce, run

__all__ = [
    "Ack",
    "Advice",
    "Base",
    "CongestionControl",
    "Error",
    "Figure",
    "Job",
    "Report",
    "Results",
    "RunError",
    "Spec",
    "SpecError",
    "Table",
    "Workload",
    "__version__",
    "advise",
    "compare",
    "congestion",
    "examples",
    "papers",
    "report",
    "reproduce",
    "run",
    "workload",
]
