"""Joins of measures and samples in files, with polars, pandas and duckdb."""

import copy

import pytest

import anabranch
from conftest import PAIR


@pytest.fixture
def files(tmp_path):
    """The two files of an experiment that sweeps times, four runs."""
    spec = copy.deepcopy(PAIR)
    spec["parameters"]["delay"] = "20 ms"
    spec["link"][0]["delay"] = "$delay"
    spec["experiment"][0]["replications"] = 2
    spec["experiment"][0]["sweep"] = [{"parameter": "delay", "values": ["500 ms", "1 s"]}]
    anabranch.run(anabranch.Spec("times", **spec), out=tmp_path / "out", record_all=True)
    return [tmp_path / "out" / folder / "losses.parquet" for folder in ["measures", "series"]]


KEYS = ["experiment", "delay", "replication"]


def test_polars_joins(files):
    polars = pytest.importorskip("polars")
    measures, samples = map(polars.read_parquet, files)
    joined = measures.join(samples, on=KEYS)
    assert len(joined) == len(samples) > 0
    assert set(joined["delay"]) == {0.5, 1.0}


def test_pandas_joins(files):
    pandas = pytest.importorskip("pandas")
    measures, samples = map(pandas.read_parquet, files)
    joined = measures.merge(samples, on=KEYS)
    assert len(joined) == len(samples) > 0
    assert set(joined["delay"]) == {0.5, 1.0}


def test_duckdb_joins(files):
    duckdb = pytest.importorskip("duckdb")
    measures, samples = files
    text = f"select count(*) from '{measures}' join '{samples}' using ({', '.join(KEYS)})"
    ((joined,),) = duckdb.sql(text).fetchall()
    ((count,),) = duckdb.sql(f"select count(*) from '{samples}'").fetchall()
    assert joined == count > 0
