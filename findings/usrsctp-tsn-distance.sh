#!/usr/bin/env bash
# usrsctp 0.9.5 (Debian 12, libusrsctp2 and libusrsctp-examples 0.9.5.0-2) silently drops a DATA
# chunk whose TSN is 4,096 or more above the cumulative TSN, regardless of its receive window.
#
# RFC 9260 limits the data in flight by bytes (a_rwnd) only. Here four bytes with a TSN 4,000
# above the cumulative TSN are accepted and reported in a Gap Ack Block; four bytes with a TSN
# 4,096 above it are not, although the SACK announces 128 KiB. A sender of messages of four bytes
# that has lost one packet reaches the limit with 16 KiB in flight, and has to send later data
# again. pion/sctp 1.12.1, sctp-proto 0.10.8, aiortc 1.16.0 and werift 0.25.2 accept a TSN 5,000
# above the cumulative TSN.
#
# A reader would expect the window to be the only limit.
set -euo pipefail
work=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill "$server" 2> /dev/null || true; rm -rf "$work"' EXIT
cd "$work"
chmod 755 "$work"
timeout 120 apt-get download -qq libusrsctp2=0.9.5.0-2 libusrsctp-examples=0.9.5.0-2 2> /dev/null
for package in *.deb; do dpkg -x "$package" root; done
cat > case.py <<'PY'
import select
import socket
import struct
import sys


def crc32c(data):
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def send(tag, kind, flags, value):
    packet = struct.pack("!HHIIBBH", 5000, 9, tag, 0, kind, flags, 4 + len(value)) + value
    peer.send(packet[:8] + struct.pack("<I", crc32c(packet)) + packet[12:])


def receive(kind):
    found = None
    while select.select([peer], [], [], 0.5)[0]:
        packet = peer.recv(4000)
        if packet[12] == kind:
            found = packet[16:]
    return found


peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
peer.bind(("127.0.0.1", int(sys.argv[2])))
peer.connect(("127.0.0.1", int(sys.argv[1])))
send(0, 1, 0, struct.pack("!IIHHI", 1, 65536, 10, 10, 100))
answer = receive(2)
tag = struct.unpack("!I", answer[:4])[0]
at = 16
while struct.unpack("!H", answer[at : at + 2])[0] != 7:
    at += (struct.unpack("!H", answer[at + 2 : at + 4])[0] + 3) // 4 * 4
send(tag, 10, 0, answer[at + 4 : at + struct.unpack("!H", answer[at + 2 : at + 4])[0]])
receive(11)
for distance in 1, 4001, 4097:
    # TSN 100 is the first, so the cumulative TSN is 99 before it and 100 after it.
    send(tag, 0, 7, struct.pack("!IHHI", 99 + distance, 1, 0, 51) + b"four")
    sack = receive(3)
    cumulative, window, blocks = struct.unpack("!IIH", sack[:10])
    print(f"{99 + distance - 100} above 100: cumulative {cumulative}, {blocks} blocks, window {window}")
PY
read -r local remote < <(python3 -c '
import socket
pair = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in "12"]
for one in pair: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in pair))')
library=$(dirname "$(find root -name 'libusrsctp.so.2')")
LD_LIBRARY_PATH=$library timeout 60 root/usr/lib/usrsctp/discard_server "$local" "$remote" > /dev/null 2>&1 &
server=$!
sleep 2
seen=$(timeout 30 python3 case.py "$local" "$remote")
echo "$seen"
expected='0 above 100: cumulative 100, 0 blocks, window 131072
4000 above 100: cumulative 100, 1 blocks, window 131072
4096 above 100: cumulative 100, 1 blocks, window 131072'
[[ $seen == "$expected" ]] || { echo "usrsctp-tsn-distance: the output is another one now" >&2; exit 1; }
