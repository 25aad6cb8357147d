import datetime
import os
import signal
import threading

import pytest

import anabranch

SMALL = dict(streams=[1, 2], congestion=["sctp"], duration="5 s")


def test_advice_without_losses_is_the_share_of_what_the_pipe_holds(tmp_path):
    # The bandwidth-delay product is 1 Mbit/s x 100 ms = 12,500 bytes, of which the buffer needs 95 %. It may be larger, because buffers are
    # tried in steps of a quarter octave, and because data waits in the buffer for a SACK.
    advice = anabranch.advise("100 ms", "1 Mbit/s", 0, out=tmp_path, **SMALL)
    assert 11875 <= advice.buffer <= 16384
    assert (advice.streams, advice.congestion, advice.profile) == (1, "sctp", "rfc9260")
    assert advice.share[0] >= 0.95 > advice.half[0]
    assert 0.9e6 < advice.goodput[0] <= advice.unlimited[0] < 1e6
    assert advice.better is None and advice.candidates[0][:2] == ("rfc9260", "sctp")
    assert advice.text == str(advice) == (tmp_path / "advice.txt").read_text()
    assert "SO_RCVBUF" in advice.text
    assert str(advice.buffer) in repr(advice)
    assert "decision" in advice.results.experiments
    assert "Advice for any stack" in anabranch.report(advice.results).html


def test_equal_seeds_give_equal_advice():
    def asked(jobs):
        return anabranch.advise(
            datetime.timedelta(milliseconds=100), "1Mbit", "1 %", seed=3, jobs=jobs, **SMALL
        )

    one, four = asked(1), asked(4)
    assert one.text == four.text
    assert one.buffer == four.buffer


def test_what_earlier_advice_left_for_a_better_sender_goes(tmp_path):
    anabranch.advise("100 ms", "1 Mbit/s", 0, out=tmp_path / "better", **SMALL)
    anabranch.advise("100 ms", "1 Mbit/s", 0, out=tmp_path, **SMALL)
    assert not (tmp_path / "better").exists()
    (tmp_path / "better").mkdir()
    (tmp_path / "better" / "notes.txt").write_text("somebody's own")
    anabranch.advise("100 ms", "1 Mbit/s", 0, out=tmp_path, **SMALL)
    assert (tmp_path / "better" / "notes.txt").exists()


@pytest.mark.parametrize(
    "changed, key, allowed",
    [
        (dict(loss=0.6), "loss", "0 % to 50 %"),
        (dict(rtt="2 min"), "rtt", "1 us to 60 s"),
        (dict(congestion=["westwod"]), "congestion", "westwood"),
        (dict(streams=[0]), "streams", "1 to 65535"),
        (dict(goodput=1), "goodput", "1 % to 99 %"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_with_what_is_allowed(changed, key, allowed):
    question = dict(rtt="100 ms", rate="1 Mbit/s", loss=0.01, **SMALL)
    with pytest.raises(anabranch.SpecError) as raised:
        anabranch.advise(**{**question, **changed})
    (problem,) = raised.value.problems
    assert problem["key"] == key
    assert allowed in " ".join(problem["allowed"])
    if key == "congestion":
        assert problem["nearest"] == "westwood"


def test_a_quantity_without_its_unit_is_refused():
    with pytest.raises(anabranch.SpecError, match="rtt.*ms"):
        anabranch.advise(0.56, "1 Mbit/s", 0.01)


def test_progress_is_told_and_ctrl_c_ends_it():
    heard = []
    anabranch.advise("100 ms", "1 Mbit/s", 0, progress=lambda *report: heard.append(report), **SMALL)
    finished, runs, done, total = heard[-1]
    assert finished > 0 and runs == 0 and 0 < done <= total
    timer = threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT])
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        anabranch.advise("560 ms", "100 Mbit/s", 0.001, duration="1 h", jobs=1)
    timer.join()
