"""Packets that a sender transmitted, from the traces of ns-2.35 and the captures of anabranch."""

import struct


def ns2_sctp(path: str, sources: list[str]) -> list[tuple]:
    """(time, path, TSN) of each chunk of DATA, when the transmission of its packet begins; TSN 0 is the first."""
    sent = []
    with open(path) as trace:
        for line in trace:
            if not line.startswith("- "):
                continue
            words = line.split()
            if words[2] not in sources:
                continue
            kind, path = words[6][-1], sources.index(words[2])
            if kind == "D":
                sent.append((float(words[1]), path, int(words[11]) - 1))
            elif kind in "HB" and sent:
                sent.append((float(words[1]), path, "HEARTBEAT" if kind == "H" else "HEARTBEAT ACK"))
    return sent


def blocks(data: bytes):
    """(interface, time in ns, options, packet) of each enhanced packet block of a pcapng file."""
    at = 0
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            interface, high, low, captured, _ = struct.unpack_from("<IIIII", data, at + 8)
            begin = at + 28
            padded = (captured + 3) & ~3
            options = data[begin + padded : at + length - 4]
            yield interface, high << 32 | low, options, data[begin : begin + captured]
        at += length


def outbound(options: bytes) -> bool:
    code, length, flags = struct.unpack_from("<HHI", options, 0)
    assert code == 2 and length == 4
    return flags & 3 == 2


def chunks(datagram: bytes):
    at = (datagram[0] & 15) * 4 + 12
    while at + 4 <= len(datagram):
        kind, _, length = struct.unpack_from(">BBH", datagram, at)
        if length < 4:
            return
        yield kind, datagram[at : at + length]
        at += (length + 3) & ~3


def ours_sctp(captures: list[str]) -> list[tuple]:
    sent, first = [], None
    for path, file in enumerate(captures):
        with open(file, "rb") as capture:
            data = capture.read()
        for interface, time, options, datagram in blocks(data):
            if interface != 0 or not outbound(options):
                continue
            for kind, chunk in chunks(datagram):
                if kind == 0:
                    sent.append((time, path, struct.unpack_from(">I", chunk, 4)[0]))
                elif kind in (4, 5):
                    sent.append((time, path, "HEARTBEAT" if kind == 4 else "HEARTBEAT ACK"))
    sent.sort(key=lambda it: it[0])
    while sent and isinstance(sent[0][2], str):
        sent.pop(0)
    if sent:
        first = sent[0][2]
    return [
        (time / 1e9, path, what if isinstance(what, str) else (what - first) % 2**32)
        for time, path, what in sent
    ]


SIMULTANEOUS = 1.6e-6  # ns-2 prints whole microseconds


def ties(path: str, wires: list[tuple], sack_delay: float) -> list[float]:
    """Times at which the result of ns-2 depends on the order of simultaneous events, which the rounding of its clock decides: a packet arrives
    at a full queue when another leaves it, or DATA at a receiver when its SACK timer expires. `wires`: router, receiver, limit."""
    found = []
    limits = {(a, z): limit for a, z, limit in wires}
    receivers = {z for _, z, _ in wires}
    waiting = dict.fromkeys(limits, 0)
    left = dict.fromkeys(limits, -1.0)
    came = dict.fromkeys(limits, (-1.0, 0))
    arrivals: list[float] = []
    packet = {}
    begin = 0
    expired: list[float] = []
    with open(path) as trace:
        for line in trace:
            words = line.split()
            what, time, wire = words[0], float(words[1]), (words[2], words[3])
            identity = words[12] if words[4] == "sctp" else words[11]
            if wire in limits:
                if what in "+-" and packet.get((what, wire)) == identity:
                    continue  # another chunk of the same packet
                if what in "+-":
                    packet[what, wire] = identity
                if what == "+":
                    waiting[wire] += 1
                    came[wire] = (time, waiting[wire])
                    if abs(time - left[wire]) < SIMULTANEOUS and waiting[wire] + 1 >= limits[wire]:
                        found.append(time)
                elif what == "-":
                    full = waiting[wire] + 1 >= limits[wire]
                    waiting[wire] -= 1
                    left[wire] = time
                    if full and abs(time - came[wire][0]) < SIMULTANEOUS:
                        found.append(time)
                elif what == "d":
                    if abs(time - left[wire]) < SIMULTANEOUS:
                        found.append(time)
                    came[wire] = (time, waiting[wire])
                elif what == "r" and (words[6][-1] == "D" or words[4] == "tcp"):
                    arrivals.append(time)
            elif what == "+" and words[2] in receivers and (words[6][-1] == "S" or words[4] == "ack"):
                while begin < len(arrivals) and arrivals[begin] < time - sack_delay - SIMULTANEOUS:
                    begin += 1
                timer = begin < len(arrivals) and abs(arrivals[begin] + sack_delay - time) < SIMULTANEOUS
                if timer:
                    expired.append(time)
    at = 0
    for time in expired:
        while at < len(arrivals) and arrivals[at] < time - SIMULTANEOUS:
            at += 1
        if at < len(arrivals) and arrivals[at] < time + SIMULTANEOUS:
            found.append(time)
    return sorted(found)


def ns2_tcp(path: str, sources: list[str]) -> list[tuple]:
    """(time, which of the sources, number) of each segment when its transmission begins; number 0 is the first of data."""
    sent = []
    with open(path) as trace:
        for line in trace:
            words = line.split()
            if words[0] == "-" and words[2] in sources and words[4] == "tcp" and words[10] != "0":
                sent.append((float(words[1]), sources.index(words[2]), int(words[10]) - 1))
    return sent


def ours_tcp(captures: list[str], segment: int) -> list[tuple]:
    sent = []
    for source, capture in enumerate(captures):
        first = None
        with open(capture, "rb") as file:
            data = file.read()
        for interface, time, options, datagram in blocks(data):
            if interface != 0 or not outbound(options):
                continue
            ip = (datagram[0] & 15) * 4
            number = struct.unpack_from(">I", datagram, ip + 4)[0]
            if len(datagram) <= ip + (datagram[ip + 12] >> 4) * 4:
                continue
            if first is None:
                first = number
            sent.append((time / 1e9, source, (number - first) % 2**32 // segment))
    return sorted(sent, key=lambda it: it[0])


def meetings(path: str, wire: tuple[str, str]) -> list[float]:
    """Times at which a packet arrived at a queue when another left it."""
    found, last = [], {"+": (-1.0, ""), "-": (-1.0, ""), "d": (-1.0, "")}
    with open(path) as trace:
        for line in trace:
            words = line.split()
            what, time = words[0], float(words[1])
            if what not in last or (words[2], words[3]) != wire:
                continue
            others = [last["-"]] if what in "+d" else [last["+"], last["d"]]
            if any(abs(time - then) < SIMULTANEOUS and words[11] != packet for then, packet in others):
                found.append(time)
            last[what] = (time, words[11])
    return found


def repeats_of_the_last(path: str) -> list[float]:
    """Times at which the last segment in order arrived at the TCP sink again."""
    found, came, last = [], set(), 0
    with open(path) as trace:
        for line in trace:
            words = line.split()
            if words[0] != "r" or words[3] != "2" or words[4] != "tcp":
                continue
            number = int(words[10])
            if number == last and number in came:
                found.append(float(words[1]))
            came.add(number)
            while last + 1 in came:
                last += 1
    return found


def arrivals(path: str, sinks: list[str]) -> tuple[dict[str, set], int, int]:
    """Numbers of the segments or TSNs that arrived at the sinks, for each flow, and numbers of data packets that arrived or were dropped."""
    numbers: dict[str, set] = {}
    came = dropped = 0
    last = {}
    with open(path) as trace:
        for line in trace:
            words = line.split()
            what, sctp = words[0], words[4] == "sctp"
            if what not in "rd" or words[3] not in sinks:
                continue
            if sctp and words[6][-1] == "D":
                flow, number, identity = "", int(words[11]) - 1, words[12]
            elif words[4] == "tcp" and words[10] != "0":
                flow, number, identity = words[9], int(words[10]) - 1, words[11]
            else:
                continue
            another = last.get(what) != identity  # and not another chunk of the same packet
            last[what] = identity
            if what == "d":
                dropped += another
            else:
                came += another
                numbers.setdefault(flow, set()).add(number)
    return numbers, came, dropped


def in_order(numbers: set) -> int:
    """Number of consecutive numbers from 0 on."""
    count = 0
    while count in numbers:
        count += 1
    return count
