"""Writes the Parquet files of the tests: the same rows as polars and pyarrow write them, with each codec."""

import pathlib

import polars
import pyarrow
import pyarrow.parquet

HERE = pathlib.Path(__file__).parent
ROWS = {"time_ms": [0, 5, 10, 15], "size": [100, None, 300, 100], "stream": [0, 700, None, 1]}

polars.DataFrame(ROWS).write_parquet(HERE / "polars.parquet")
frame = polars.DataFrame({"time": [0, 5, 10], "rate_mbps": [20.0, 8.0, 4.0]})
frame.with_columns(polars.col("time").cast(polars.Duration("ms"))).write_parquet(HERE / "duration.parquet")
for codec in ["zstd", "gzip", "lz4", "brotli", "snappy", "none"]:
    for version in ["1.0", "2.0"]:
        pyarrow.parquet.write_table(
            pyarrow.table(ROWS),
            HERE / f"{codec}-{version[0]}.parquet",
            compression=codec,
            data_page_version=version,
        )
