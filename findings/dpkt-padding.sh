#!/usr/bin/env bash
# dpkt 1.9.8 (PyPI) skips the padding of SCTP chunks only after DATA chunks.
#
# By RFC 9260 §3.2 a chunk of any type is padded to a multiple of four bytes, and its length does
# not include the padding. dpkt skips the padding of a DATA chunk. After a chunk of another type
# it starts to read the next chunk within the padding, so that the types and lengths of all later
# chunks are wrong. A packet with one such chunk and no chunk after it is not decoded at all.
#
# A reader would expect the same rule for all chunks, because it works for DATA.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
timeout 120 venv/bin/pip install --quiet --disable-pip-version-check dpkt==1.9.8
cat > case.py <<'PY'
import struct

import dpkt


def chunk(kind, value):
    length = 4 + len(value)
    return struct.pack("!BBH", kind, 3, length) + value + bytes(-length % 4)


def data(number):
    return chunk(0, struct.pack("!IHHI", number, 1, 0, 0) + b"12345")


def i_data(number):
    return chunk(64, struct.pack("!IHHII", number, 1, 0, 0, 0) + b"12345")


def show(name, *chunks):
    packet = struct.pack("!HHII", 5000, 5000, 1, 1) + b"".join(chunks)
    try:
        read = [(chunk.type, chunk.len) for chunk in dpkt.sctp.SCTP(packet).chunks]
    except dpkt.UnpackError:
        read = "not decoded"
    print(f"{name}: {read}")


show("DATA of 21 bytes, DATA of 21 bytes", data(1), data(2))
show("I-DATA of 25 bytes, DATA of 21 bytes", i_data(1), data(2))
show("I-DATA of 25 bytes", i_data(1))
PY
seen=$(timeout 30 venv/bin/python case.py)
echo "$seen"
expected='DATA of 21 bytes, DATA of 21 bytes: [(0, 21), (0, 21)]
I-DATA of 25 bytes, DATA of 21 bytes: [(64, 25), (0, 0)]
I-DATA of 25 bytes: not decoded'
[[ $seen == "$expected" ]] || { echo "dpkt-padding: the output is another one now" >&2; exit 1; }
