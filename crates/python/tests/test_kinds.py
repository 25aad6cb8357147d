import subprocess
import sys

import pytest

import anabranch
from anabranch import CongestionControl, Workload, congestion, workload


def goodput(spec, **arguments):
    table = anabranch.run(spec, replications=1, **arguments).measures().to_pyarrow().to_pylist()
    return [row["value"] for row in table]


@congestion("handed-on")
class HandedOn(CongestionControl):
    """The protocol's own control, called through Python."""


@congestion("four")
class Four(CongestionControl):
    """At most four segments in flight."""

    @property
    def cwnd(self):
        return min(self.base.cwnd, 4 * self.base.unit)


@pytest.mark.parametrize("protocol", ["sctp", "tcp"])
def test_a_control_that_hands_on_is_the_protocols_own(pair, protocol):
    pair["flow.upload.transport"] = {"protocol": protocol}
    own = goodput(pair)
    pair["flow.upload.transport.congestion"] = "handed-on"
    assert goodput(pair) == own


@pytest.mark.parametrize("protocol", ["sctp", "tcp"])
def test_a_control_holds_the_window(pair, protocol):
    pair["world.duration"] = "60 s"
    pair["link.wire.rate"] = "100 Mbit/s"
    pair["link.wire.delay"] = "50 ms"
    pair["flow.upload.transport"] = {"protocol": protocol, "congestion": "four"}
    without, _ = goodput(pair)
    # Four segments of some 1450 B in 100 ms.
    assert 430e3 < without < 470e3


def test_what_a_control_raises_ends_the_run(pair):
    @congestion("broken")
    class Broken(CongestionControl):
        def on_ack(self, ack):
            raise ZeroDivisionError("in on_ack")

    pair["flow.upload.transport.congestion"] = "broken"
    with pytest.raises(ZeroDivisionError, match="in on_ack"):
        goodput(pair)


def test_a_window_that_is_none_is_refused(pair):
    @congestion("no-window")
    class NoWindow(CongestionControl):
        cwnd = float("nan")

    pair["flow.upload.transport.congestion"] = "no-window"
    with pytest.raises(ValueError, match="cwnd"):
        goodput(pair)


def test_runs_of_another_code_are_not_taken(pair, tmp_path):
    pair["flow.upload.transport.congestion"] = "handed-on"
    first = goodput(pair, out=tmp_path)

    @congestion("handed-on")
    class Capped(CongestionControl):
        cwnd = 3000.0

    assert goodput(pair, out=tmp_path) != first
    congestion("handed-on")(HandedOn)


@workload("sensor", interval="1 s", first="100 B")
class Sensor(Workload):
    """One report per interval, each larger than the last by the size of the first."""

    def __init__(self, *, interval, first, **rest):
        super().__init__(**rest)
        self.interval, self.first = interval, first
        self.due, self.reports = None, 0

    def next(self, now):
        if self.due is None:
            self.due = now
        if self.due > now:
            return self.due
        self.due += self.interval
        self.reports += 1
        return self.first * self.reports


def test_a_workload_offers_what_it_says(pair):
    pair["world.duration"] = "10 s"
    pair["flow.upload.stop"] = "4.5 s"
    pair["flow.upload.workload"] = {"kind": "sensor"}
    pair["flow.upload.transport"] = {"protocol": "tcp"}
    # Reports of 100 to 500 B at 0 to 4 s: 1500 B in a run of 10 s.
    assert goodput(pair)[0] == 1500 * 8 / 10
    pair["flow.upload.workload.interval"] = "2 s"
    assert goodput(pair)[0] == 600 * 8 / 10


def test_parameters_of_a_workload_are_checked(pair):
    pair["flow.upload.workload"] = {"kind": "sensor", "intervall": "1 s"}
    with pytest.raises(anabranch.SpecError, match="interval"):
        goodput(pair)
    pair["flow.upload.workload"] = {"kind": "sensor", "interval": "1 MB"}
    with pytest.raises(anabranch.SpecError, match="interval"):
        goodput(pair)


def test_a_workload_that_offers_nonsense_ends_the_run(pair):
    @workload("nonsense")
    class Nonsense(Workload):
        def next(self, now):
            return -1

    pair["flow.upload.workload"] = {"kind": "nonsense"}
    with pytest.raises(TypeError, match="next"):
        goodput(pair)


def test_results_of_a_kind_are_shown_where_it_is_not_there(pair, tmp_path):
    @anabranch.congestion("there-and-gone")
    class Control(anabranch.CongestionControl):
        """The protocol's own."""

    pair["flow.upload.transport"] = {"protocol": "sctp", "congestion": "there-and-gone"}
    results = anabranch.run(pair, replications=1, out=tmp_path)
    results.write()
    assert results.manifest["added"] == ["there-and-gone"]
    page = (tmp_path / "report.html").read_text()
    assert "in the program that defines `there-and-gone`" in page
    script = "import anabranch, sys; r = anabranch.Results.open(sys.argv[1]); print(r.tables.keys(), r.notes, len(r.measures()))"
    shown = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.strip().endswith("2")
