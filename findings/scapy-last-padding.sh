#!/usr/bin/env bash
# scapy 2.8.0 (PyPI) computes a wrong CRC32c for an INIT whose last parameter is padded, when the
# INIT was read and not built.
#
# By RFC 9260 §3.2 the length of a chunk leaves the padding of its last parameter out. scapy
# takes these bytes for padding of the link, outside SCTP: the packet is written with the same
# bytes, but a checksum that is computed for it leaves them out. An INIT that scapy builds itself
# has them in its length (28 where the RFC has 26), and the right checksum. DATA is right both
# ways. So packets of real stacks that are read, changed and sent again by scapy are discarded.
#
# A reader expects a packet that is read and written to have the checksum it had.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
timeout 120 venv/bin/pip install --quiet --disable-pip-version-check scapy==2.8.0
cat > case.py <<'PY'
import struct

from scapy.layers.sctp import SCTP, SCTPChunkInit, SCTPChunkParamSupportedExtensions


def crc32c(data):
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return struct.pack("<I", register ^ 0xFFFFFFFF)


def is_right(packet):
    return packet[8:12] == crc32c(packet[:8] + bytes(4) + packet[12:])


def show(name, packet):
    read = SCTP(packet)
    del read.chksum
    written = bytes(read)
    print(f"{name}: length {packet[15]}, right {is_right(packet)};", end=" ")
    print(f"written again: same chunks {written[12:] == packet[12:]}, right {is_right(written)}")


def with_sum(packet):
    return packet[:8] + crc32c(packet) + packet[12:]


head = struct.pack("!HHII", 5000, 5000, 0, 0)
init = struct.pack("!BBHIIHHI", 1, 0, 26, 1, 65536, 10, 10, 1)
show("INIT", with_sum(head + init + struct.pack("!HHBBH", 0x8008, 6, 130, 192, 0)))
data = struct.pack("!BBHIHHI", 0, 3, 17, 1, 1, 0, 0)
show("DATA", with_sum(head + data + b"a\0\0\0"))
extensions = SCTPChunkParamSupportedExtensions(supported_extensions=[130, 192])
built = bytes(SCTP(sport=5000, dport=5000) / SCTPChunkInit(init_tag=1, params=[extensions]))
print(f"INIT built: length {built[15]}, right {is_right(built)}")
PY
seen=$(timeout 60 venv/bin/python case.py)
echo "$seen"
expected='INIT: length 26, right True; written again: same chunks True, right False
DATA: length 17, right True; written again: same chunks True, right True
INIT built: length 28, right True'
[[ $seen == "$expected" ]] || { echo "scapy-last-padding: the output is another one now" >&2; exit 1; }
