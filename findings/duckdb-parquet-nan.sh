#!/usr/bin/env bash
# DuckDB 2.0.1 takes max(), isnan() and comparisons of a Parquet column from the statistics of
# the file, which know no NaN (PyPI: duckdb 2.0.1, pyarrow 26.0.1).
#
# For DuckDB, NaN is greater than all numbers: in a table max() gives NaN, and `value > 1e308`
# and `isnan(value)` find the row. Writers leave NaN out of a column's least and greatest value,
# as Parquet asks. Read from such a file, the same rows have a finite max(), isnan() is true of
# none, and `not isnan(value)` keeps the NaN. A file that DuckDB itself wrote has no such
# statistics, and is read as the table.
#
# A reader expects the values to decide. Measurements with NaN for "no value" are not cleaned by
# `where not isnan(value)`: load them into a table first.
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
