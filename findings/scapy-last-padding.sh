#!/usr/bin/env bash
# scapy 2.8.0 (PyPI) computes a wrong CRC32c for an INIT whose last parameter is padded, if the
# INIT was read from bytes and not built by scapy.
#
# By RFC 9260 §3.2 the length of a chunk does not include the padding of its last parameter. scapy
# treats these bytes as padding of the link, outside of SCTP: it writes the packet with the same
# bytes, but omits them when it computes the checksum. In an INIT that scapy builds itself, the
# length includes the padding (28, but 26 by the RFC), and the checksum is correct. DATA has a
# correct checksum in both cases. Packets of real stacks that scapy reads, changes and sends are
# therefore discarded.
#
# A reader would expect that a packet that is read and written has the same checksum as before.
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
