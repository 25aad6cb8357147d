"""TCP connections that share a RED queue, drawn at random: each condition as a script of ns-2.35 and as a spec of anabranch.

Even numbers: the probability is next to nothing below `max`, and 1 above it, so that nothing is random. Odd numbers: many seeds.
"""

import random

import replications

LIMIT = 1000  # packets, never reached
SURE = 1e12  # one over the probability


def draw(number: int) -> dict:
    """The condition with this number."""
    r = random.Random(f"red {number}")
    sure = number % 2 == 0
    least = r.choice([2, 3, 5, 8])
    rate = r.choice([0.5, 1.0, 2.0, 3.3])
    flows = r.choice([1, 1, 2, 3])
    segment = r.choice([536, 1000, 1460])
    window = r.choice([20, 45, 100])
    delay = r.choice([5, 10, 25, 40, 80, 150]) + r.randrange(1000) / 1000
    access_delays = [r.choice([0.5, 2, 11, 23]) + r.randrange(1000) / 1000 for _ in range(flows)]
    # A timeout is always the minimum, independent of the phase of the clock, which ns-2 draws at random.
    longest = 2 * (delay + max(access_delays)) / 1000 + flows * window * (segment + 40) * 8 / rate / 1e6
    return {
        "kind": "red",
        "number": number,
        "random": not sure,
        "duration": r.choice([20, 40]) if sure else 60,
        "segment": segment,
        "window": window,
        "access_delays": access_delays,
        "delay": delay,
        "rate": rate,
        "least": least,
        "most": least * r.choice([2, 3]),
        "weight": r.choice([0.002, 0.002, 0.01, 0.1]),
        "inverse": SURE if sure else r.choice([10, 10, 3, 50]),
        "gentle": not sure and r.random() < 0.6,
        "wait": r.random() < 0.6,
        "min_rto": round(3 * longest + 0.2, 3) if sure else 1.0,
    }


def hosts(c: dict) -> list[str]:
    """Number of each sender's node in the trace of ns-2: nodes are numbered in the order of their creation."""
    return [str(2 + flow) for flow in range(len(c["access_delays"]))]


def tcl(c: dict) -> str:
    lines = [replications.SEED, "set ns [new Simulator]", "$ns use-scheduler Heap"]
    for agent, name, value in [
        ("Agent/TCP", "packetSize_", c["segment"]),
        ("Agent/TCP", "window_", c["window"]),
        ("Agent/TCP", "tcpTick_", 0.001),
        ("Agent/TCP", "minrto_", c["min_rto"]),
        ("Queue/RED", "bytes_", "false"),
        ("Queue/RED", "queue_in_bytes_", "false"),
        ("Queue/RED", "mean_pktsize_", c["segment"] + 40),
        ("Queue/RED", "thresh_", c["least"]),
        ("Queue/RED", "maxthresh_", c["most"]),
        ("Queue/RED", "q_weight_", c["weight"]),
        ("Queue/RED", "linterm_", c["inverse"]),
        ("Queue/RED", "gentle_", str(c["gentle"]).lower()),
        ("Queue/RED", "wait_", str(c["wait"]).lower()),
    ]:
        lines.append(f"{agent} set {name} {value}")
    lines += ["set z [$ns node]", "set r [$ns node]"]
    for i, delay in enumerate(c["access_delays"]):
        lines += [
            f"set a{i} [$ns node]",
            f"$ns simplex-link $a{i} $r 10Mb {delay}ms DropTail",
            f"$ns simplex-link $r $a{i} 10Gb {delay}ms DropTail",
            f"$ns queue-limit $a{i} $r 100000",
            f"$ns queue-limit $r $a{i} 100000",
        ]
    lines += [
        f"$ns simplex-link $r $z {c['rate']}Mb {c['delay']}ms RED",
        f"$ns simplex-link $z $r 10Gb {c['delay']}ms DropTail",
        f"$ns queue-limit $r $z {LIMIT}",
        "$ns queue-limit $z $r 100000",
        "set trace [open [lindex $argv 0] w]",
        "$ns trace-queue $r $z $trace",
    ]
    for i in range(len(c["access_delays"])):
        if not c["random"]:
            lines.append(f"$ns trace-queue $a{i} $r $trace")
        lines += [
            f"set source{i} [new Agent/TCP/Sack1]",
            f"set sink{i} [new Agent/TCPSink/Sack1]",
            f"$ns attach-agent $a{i} $source{i}",
            f"$ns attach-agent $z $sink{i}",
            f"$ns connect $source{i} $sink{i}",
            f"set ftp{i} [new Application/FTP]",
            f"$ftp{i} attach-agent $source{i}",
            f'$ns at 0.0 "$ftp{i} start"',
        ]
    lines += [f'$ns at {c["duration"]} "$ns flush-trace; exit 0"', "$ns run"]
    return "\n".join(lines) + "\n"


def spec(c: dict) -> str:
    flows = range(len(c["access_delays"]))
    out = ["anabranch = 1", 'name = "x"', "[world]", f'duration = "{c["duration"]} s"']
    for name in [f"a{i}" for i in flows] + ["r", "z"]:
        out.append(f'[[node]]\nname = "{name}"')
    for i, delay in enumerate(c["access_delays"]):
        out += [
            f'[[link]]\nname = "access{i}"\nbetween = ["a{i}", "r"]',
            'rate = { forward = "10 Mbit/s", backward = "10 Gbit/s" }',
            f'delay = "{delay} ms"\nqueue = "100000 packets"',
        ]
    packet = (c["segment"] + 40) * 8 / c["rate"]  # us
    red = ", ".join(
        [
            'kind = "red"',
            f'min_th = {c["least"]}, max_th = {c["most"]}',
            f'max_p = {1 / c["inverse"]}, w_q = {c["weight"]}',
            f'packet_time = "{round(1000 * packet)} ns"',
            f'gentle = {str(c["gentle"]).lower()}, wait = {str(c["wait"]).lower()}',
            f'spare = true, waiting_only = true, limit = "{LIMIT + 1} packets"',
        ]
    )
    out += [
        '[[link]]\nname = "path0"\nbetween = ["r", "z"]',
        f'rate = {{ forward = "{c["rate"]} Mbit/s", backward = "10 Gbit/s" }}',
        f'delay = "{c["delay"]} ms"',
        f'queue = {{ forward = {{ {red} }}, backward = "100000 packets" }}',
    ]
    for i in flows:
        out += [
            f'[[flow]]\nname = "x{i}"\nfrom = "a{i}"\nto = "z"',
            'workload = { kind = "bulk" }',
            '[flow.transport]\nprotocol = "tcp"\nprofile = "sack1"\nwindow_scale = true',
            f'mss = "{c["segment"]} B"',
            f'receive_buffer = "{c["window"]} segments"\ninitial_ssthresh = "{c["window"]} segments"',
            'initial_window = "2 segments"\nlimited_transmit = true\ninteger_halving = false',
            f'rtt_granularity = "1 ms"\nrto_min = "{c["min_rto"]} s"\ndelayed_ack = false',
        ]
    for i in flows:
        out.append(f'[[measure]]\nmetric = "goodput"\nflow = "x{i}"')
    return "\n".join(out) + "\n"
