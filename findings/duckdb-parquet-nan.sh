#!/usr/bin/env bash
# For a Parquet column DuckDB 2.0.1 computes max(), isnan() and comparisons from the statistics in
# the file, which ignore NaN (PyPI: duckdb 2.0.1, pyarrow 26.0.1).
#
# In DuckDB NaN is greater than all numbers: in a table max() is NaN, and `value > 1e308` and
# `isnan(value)` find the row. As Parquet requires, writers ignore NaN when they store the minimum
# and maximum of a column. If the same rows are read from such a file, max() is finite, isnan() is
# true for no row, and `not isnan(value)` keeps the NaN. A file that DuckDB itself wrote has no
# such statistics, and gives the same results as the table.
#
# A reader would expect the results to depend on the values only. `where not isnan(value)` does
# not remove measurements with NaN for "no value"; load the file into a table first.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
timeout 240 venv/bin/pip install --quiet --disable-pip-version-check duckdb==2.0.1 pyarrow==26.0.1
cat > case.py <<'PY'
import duckdb
import pyarrow
import pyarrow.parquet

pyarrow.parquet.write_table(pyarrow.table({"value": [1.0, float("nan"), 2.0]}), "arrow.parquet")
duckdb.sql("create table kept as select * from 'arrow.parquet'")
duckdb.sql("copy kept to 'duckdb.parquet'")
for name in "kept", "'arrow.parquet'", "'duckdb.parquet'":
    greatest = duckdb.sql(f"select max(value) from {name}").fetchall()[0][0]
    found = [
        duckdb.sql(f"select count(*) from {name} where {rule}").fetchall()[0][0]
        for rule in ("isnan(value)", "value > 1e308", "not isnan(value)")
    ]
    print(f"{name}: max {greatest}, isnan {found[0]}, above 1e308 {found[1]}, not isnan {found[2]}")
PY
seen=$(timeout 60 venv/bin/python case.py)
echo "$seen"
expected="kept: max nan, isnan 1, above 1e308 1, not isnan 2
'arrow.parquet': max 2.0, isnan 0, above 1e308 0, not isnan 3
'duckdb.parquet': max nan, isnan 1, above 1e308 1, not isnan 2"
[[ $seen == "$expected" ]] || { echo "duckdb-parquet-nan: the output is another one now" >&2; exit 1; }
