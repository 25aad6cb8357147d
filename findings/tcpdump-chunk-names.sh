#!/usr/bin/env bash
# tcpdump 4.99.3 (Debian 12, 4.99.3-1) prints an I-FORWARD-TSN chunk (type 194, RFC 8260) as [REL
# CTRL ACK], a name from a draft that never became an RFC.
#
# It has no names for AUTH (15, RFC 4895 of 2007), RE-CONFIG (130, RFC 6525 of 2012) and I-DATA
# (64, RFC 8260): it prints "Unknown chunk type", without length or content. The output for an
# association with message interleaving therefore shows no user data, and shows reports of skipped
# messages as another chunk.
#
# A reader would expect that a tool of 2023 knows chunks of 2007 and 2012, and that it prints an
# unknown type instead of the name of another chunk.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
chmod 755 "$work"
timeout 120 apt-get download -qq tcpdump=4.99.3-1 libpcap0.8=1.10.3-1 2> /dev/null
for package in *.deb; do dpkg -x "$package" root; done
python3 - <<'PY'
import struct


def chunk(kind, value):
    return struct.pack("!BBH", kind, 3 if kind == 64 else 0, 4 + len(value)) + value


chunks = [
    chunk(64, struct.pack("!IHHII", 1, 1, 0, 0, 51) + b"four"),
    chunk(15, struct.pack("!HH", 0, 1) + bytes(20)),
    chunk(130, struct.pack("!HHIII", 13, 16, 1, 2, 3)),
    chunk(194, struct.pack("!IHHI", 1, 1, 0, 0)),
]
with open("case.pcap", "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
    for one in chunks:
        sctp = struct.pack("!HHII", 5000, 5000, 1, 0) + one
        head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(sctp), 1, 0, 64, 132, 0,
                           bytes([192, 0, 2, 1]), bytes([192, 0, 2, 2]))
        file.write(struct.pack("<IIII", 0, 0, len(head + sctp), len(head + sctp)) + head + sctp)
PY
library=$(dirname "$(find root -name 'libpcap.so.0.8')")
seen=$(LD_LIBRARY_PATH=$library timeout 30 root/usr/bin/tcpdump -nr case.pcap 2> /dev/null |
  grep -o '\[[A-Z][^]]*\]')
echo "$seen"
expected='[Unknown chunk type: 0x40]
[Unknown chunk type: 0xf]
[Unknown chunk type: 0x82]
[REL CTRL ACK]'
[[ $seen == "$expected" ]] || { echo "tcpdump-chunk-names: the output is another one now" >&2; exit 1; }
