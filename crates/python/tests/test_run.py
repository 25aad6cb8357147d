import os
import pathlib
import signal
import textwrap
import threading
import time

import pyarrow
import pytest

import anabranch

README = pathlib.Path(__file__).parents[1] / "README.md"


def rows(table):
    return table.to_pyarrow().to_pylist()


def test_a_run_gives_arrow_tables(pair):
    results = anabranch.run(pair, seed=3)
    assert (results.runs, results.experiments) == (6, ["losses"])
    measures = rows(results.measures())
    assert len(measures) == 6
    assert {row["loss"] for row in measures} == {0.0, 0.02}
    assert all(row["metric"] == "goodput" and row["unit"] == "bit/s" for row in measures)
    without = [row["value"] for row in measures if row["loss"] == 0.0]
    assert all(1.6e6 < value < 2e6 for value in without)
    samples = results.samples()
    assert samples.column_names[-2:] == ["time_s", "value"]
    assert len(samples) > 100
    assert pyarrow.table(samples).num_rows == len(samples)
    assert results.tables.keys() == {"losses"}
    assert "iframe" in anabranch.report(results)._repr_html_()


def test_equal_seeds_give_equal_results(pair, tmp_path):
    first = anabranch.run(pair, seed=5, jobs=1, out=tmp_path / "kept")
    again = anabranch.run(pair, seed=5, jobs=4)
    other = anabranch.run(pair, seed=6)
    assert rows(first.measures()) == rows(again.measures())
    assert rows(first.measures()) != rows(other.measures())
    assert rows(anabranch.Results.open(tmp_path / "kept").measures()) == rows(first.measures())


def test_what_is_finished_is_not_made_again(pair, tmp_path):
    heard = []
    anabranch.run(pair, out=tmp_path)
    anabranch.run(pair, out=tmp_path, progress=lambda *report: heard.append(report))
    assert heard[-1] == (6, 6, 0.0, 0.0)


def test_progress_counts_runs(pair):
    heard = []
    anabranch.run(pair, progress=lambda *report: heard.append(report))
    assert heard[-1] == (6, 6, 30.0, 30.0)
    assert [report[0] for report in heard] == sorted(report[0] for report in heard)


def test_what_progress_raises_ends_the_run(pair):
    def refuse(*_):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        anabranch.run(pair, progress=refuse)


def test_ctrl_c_ends_a_long_run_at_once(pair, tmp_path):
    pair["world.duration"] = "100000 s"
    timer = threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT])
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        anabranch.run(pair, jobs=1)
    timer.join()


def test_other_threads_go_on_during_a_run(pair):
    pair["world.duration"] = "60 s"
    count = 0
    over = threading.Event()

    def work():
        nonlocal count
        while not over.is_set():
            count += 1
            time.sleep(0)

    thread = threading.Thread(target=work)
    thread.start()
    anabranch.run(pair, jobs=1)
    over.set()
    thread.join()
    assert count > 100


def test_settings_are_those_of_the_command(pair):
    results = anabranch.run(pair, set={"link.wire.rate": "1 Mbit/s"}, replications=1)
    assert results.runs == 2
    assert max(row["value"] for row in rows(results.measures())) < 1e6
    with pytest.raises(anabranch.SpecError, match="lost"):
        anabranch.run(pair, set={"lost": 0.1})


def test_notes_are_those_of_the_command(pair, tmp_path):
    assert anabranch.run(pair, replications=1).notes == []
    pair["link.wire.delay"] = "500 ms"
    pair["parameters.loss"] = 0.0
    pair["experiment.losses.sweep"] = []
    results = anabranch.run(pair, out=tmp_path)
    window, equal = results.notes
    assert window.startswith("`flow.upload.transport.receive_buffer`: left out, so 64 KiB; with a round trip of 1 s")
    assert equal.startswith("all 3 replications of losses are equal")
    assert anabranch.Results.open(tmp_path).notes == results.notes
    pair["flow.upload.transport.receive_buffer"] = "1 MiB"
    assert len(anabranch.run(pair, replications=1).notes) == 0


def test_two_results_are_compared_replication_by_replication(pair):
    slow = anabranch.run(pair)
    pair["link.wire.rate"] = "4 Mbit/s"
    fast = anabranch.run(pair)
    (without, lossy) = rows(anabranch.compare(slow, fast))
    assert without["loss"] == 0.0 and without["paired"] and without["replications"] == 3
    assert without["difference"] == pytest.approx(without["b"] - without["a"])
    assert without["difference"] > 1.5e6 > without["ci95"]
    (same, _) = rows(anabranch.compare(slow, slow))
    assert (same["difference"], same["ci95"]) == (0.0, 0.0)


def test_a_paper_is_judged():
    results = anabranch.reproduce("alamgir2002", quick=True, only=["fig-8"])
    assert "reproduced" in " ".join(results.tallies)
    assert results.figures["fig-8"].svg.startswith("<svg")


def test_the_first_words_of_the_package_are_true():
    code = textwrap.dedent(anabranch.__doc__.split("::", 1)[1].split("Values of a spec")[0]).strip()
    assert code in README.read_text().replace(", progress=True", "")
    heard = {}
    exec(code.replace(".to_pandas()", ".to_pyarrow()"), heard)
    assert heard["results"].runs == 50
    with pytest.raises(ValueError, match="delay, watch"):
        heard["results"].measures()
