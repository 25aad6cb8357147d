import copy
import datetime

import pytest

import anabranch
from anabranch import cluster


def test_a_spec_is_built_read_changed_and_written(pair, tmp_path):
    path = tmp_path / "pair.toml"
    pair.write(path)
    assert anabranch.Spec.read(path) == pair
    assert anabranch.Spec.parse(pair.to_toml()) == pair
    assert pair.name == "pair"
    assert pair["link.wire.rate"] == "2 Mbit/s"
    assert pair["flow.0.name"] == "upload"
    other = copy.copy(pair)
    other["link.wire.rate"] = "4 Mbit/s"
    assert (pair["link.wire.rate"], other["link.wire.rate"]) == ("2 Mbit/s", "4 Mbit/s")
    assert other != pair
    assert "link.wire.rate" in pair and "link.air" not in pair
    assert pair.get("link.air", "none") == "none"
    with pytest.raises(KeyError, match="link.air.rate: there are: wire"):
        pair["link.air.rate"]
    with pytest.raises(FileNotFoundError, match="none.toml"):
        anabranch.Spec.read(tmp_path / "none.toml")
    with pytest.raises(KeyError, match="wire"):
        pair["link.air.rate"] = "1 Mbit/s"


def test_values_of_python_are_values_of_a_spec(pair):
    class Number:
        def __float__(self):
            return 0.25

    pair["parameters.loss"] = Number()
    pair["link.wire.delay"] = datetime.timedelta(milliseconds=20)
    assert pair["parameters.loss"] == 0.25
    assert pair["link.wire.delay"] == "0.02 s"
    with pytest.raises(TypeError, match="timedelta"):
        pair["title"] = object()


def test_a_file_keeps_its_text_until_it_is_changed(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(anabranch.Spec.example("own").to_toml())
    spec = anabranch.Spec.read(path)
    assert spec.to_toml() == path.read_text()
    assert "#" in spec.to_toml()


def test_errors_carry_the_place():
    text = anabranch.Spec.example("own").to_toml().replace("[world]", "[world]\nduratoin = 3", 1)
    with pytest.raises(anabranch.SpecError) as raised:
        anabranch.run(anabranch.Spec.parse(text))
    (fault,) = [it for it in raised.value.problems if "duratoin" in it["key"]]
    line = text.splitlines().index("duratoin = 3") + 1
    assert (fault["line"], fault["nearest"]) == (line, "duration")
    assert "duratoin" in str(raised.value) and "nothing was run" in str(raised.value)


def test_arguments_that_make_no_sense_are_refused(pair):
    for arguments in [{"seed": -1}, {"jobs": 0}]:
        with pytest.raises(ValueError, match="found"):
            anabranch.run(pair, **arguments)
    with pytest.raises(anabranch.SpecError, match='found "none"'):
        anabranch.run(pair, only="none")
    with pytest.raises(TypeError, match="executor"):
        cluster.run(pair, 3)


def test_what_does_not_exist_is_named():
    with pytest.raises(anabranch.SpecError, match="alamgir2002"):
        anabranch.Spec.paper("alamgir2003")
    with pytest.raises(anabranch.SpecError, match="failover"):
        anabranch.Spec.example("no such")
    assert "alamgir2002" in dict(anabranch.papers())
    assert "failover" in anabranch.examples()


def test_a_table_can_be_set(pair):
    job = cluster.job(pair, set={"flow.upload.transport": {"protocol": "tcp", "rto_min": "100 ms"}}, replications=1)
    assert len(job) == 2
    results = anabranch.run(pair, set={"flow.upload.transport": {"protocol": "tcp"}, "link.wire.delay": "1 ms"}, replications=1)
    assert results.manifest["overrides"] == [
        'flow.upload.transport={ protocol = "tcp" }',
        "link.wire.delay=1 ms",
    ]
    # The call that the report prints for equal runs should be accepted.
    again = dict(it.split("=", 1) for it in results.manifest["overrides"])
    assert len(cluster.job(pair, set=again, replications=1)) == 2


def test_numbers_and_arrays_of_numpy_are_values_of_a_spec(pair):
    numpy = pytest.importorskip("numpy")
    values = "experiment.losses.sweep.0.values"
    pair[values] = numpy.array([0.0, 0.25])
    assert pair[values] == [0.0, 0.25]
    pair["experiment.losses.replications"] = numpy.int64(2)
    pair["experiment.losses.common_random_numbers"] = numpy.bool_(True)
    assert pair["experiment.losses.common_random_numbers"] is True
    pair["world.duration"] = numpy.timedelta64(2, "s")
    assert pair["world.duration"] == "2000000000 ns"
    assert len(cluster.job(pair, set={values: numpy.logspace(-3, -1, 3)})) == 6
    job = cluster.job(pair, set={values: [numpy.float32(0.5)], "experiment.losses.replications": numpy.uint8(4)})
    assert len(job) == 4
    with pytest.raises(TypeError, match="found a value of type complex128"):
        pair[values] = numpy.complex128(1)
    with pytest.raises(TypeError, match="found a value of type object"):
        pair[values] = object()
