"""Conditions of one TCP connection, drawn at random: each as a script of ns-2.35 and as a spec of anabranch."""

import random

import replications
import sctp


def draw(number: int) -> dict:
    """The condition with this number."""
    r = random.Random(f"tcp {number}")
    variant = r.choice(["Sack1", "Sack1", "Sack1", "Newreno"])
    duration = r.choice([20, 40, 80])
    rate = r.choice([0.3, 0.5, 1.0, 1.5, 2.0, 3.3, 5.0, 8.0])
    delay = r.choice([1, 5, 10, 25, 40, 80, 150, 250, 400]) + r.randrange(1000) / 1000
    loss = r.choice([0, 0.003, 0.01, 0.02, 0.05, 0.1])
    back = r.choice([0, 0, 0, 0.01, 0.05])
    segment = r.choice([512, 536, 1000, 1448, 1460, 1460])
    packets = int(rate * 1e6 * duration / 8 / segment)
    tame = number % 2 == 0  # nothing depends on the order of simultaneous events
    window = r.choice([4, 8, 20, 45, 100, 300])
    # A timeout is always the minimum, independent of the phase of the clock, which ns-2 draws at random.
    longest = 2 * (delay + 5) / 1000 + window * (segment + 40) * 8 / rate / 1e6
    return {
        "kind": "tcp",
        "number": number,
        "variant": variant,
        "duration": duration,
        "segment": segment,
        "window": window,
        "initial": r.choice([1, 2, 2, 3, 4, 10]),
        "limited": r.random() < 0.5,
        "precise": r.random() < 0.5,
        "threshold": r.choice([3, 3, 3, 2, 5]),
        "delayed": False if tame else r.random() < 0.6,
        "ack_delay": r.choice([0.1, 0.2, 0.04]),
        "tick": 0.001,
        "min_rto": round(3 * longest + 0.2, 3),
        "access": r.choice([10.0, 100.0]),
        "access_delay": r.choice([0.5, 2, 3.7]),
        "rate": rate,
        "delay": delay,
        "queue": 100_000 if tame else r.choice([3, 5, 8, 12, 20, 50, 100]),
        "lost": [n for n in range(3, min(packets, 30000)) if r.random() < loss],
        "lost_back": [n for n in range(3, min(packets, 30000)) if r.random() < back],
    }


def tcl(c: dict) -> str:
    lines = [replications.SEED, "set ns [new Simulator]", "$ns use-scheduler Heap"]
    for name, value in {
        "packetSize_": c["segment"],
        "window_": c["window"],
        "windowInit_": c["initial"],
        "singledup_": int(c["limited"]),
        "precisionReduce_": str(c["precise"]).lower(),
        "numdupacks_": c["threshold"],
        "tcpTick_": c["tick"],
        "minrto_": c["min_rto"],
    }.items():
        lines.append(f"Agent/TCP set {name} {value}")
    sink = {"Sack1": "TCPSink/Sack1", "Newreno": "TCPSink"}[c["variant"]]
    if c["delayed"]:
        sink += "/DelAck"
        lines.append(f"Agent/{sink} set interval_ {int(c['ack_delay'] * 1000)}ms")
    lines += [
        "set trace [open [lindex $argv 0] w]",
        "" if c.get("random") else "$ns trace-all $trace",
        "set a [$ns node]",
        "set r [$ns node]",
        "set z [$ns node]",
        f"$ns simplex-link $a $r {c['access']}Mb {c['access_delay']}ms DropTail",
        f"$ns simplex-link $r $z {c['rate']}Mb {c['delay']}ms DropTail",
        f"$ns simplex-link $z $r 10Gb {c['delay']}ms DropTail",
        f"$ns simplex-link $r $a 10Gb {c['access_delay']}ms DropTail",
        "$ns queue-limit $a $r 100000",
        "$ns queue-limit $r $a 100000",
        f"$ns queue-limit $r $z {c['queue']}",
        "$ns queue-limit $z $r 100000",
        "$ns trace-queue $r $z $trace" if c.get("random") else "",
    ]
    lines += sctp.errors("$r $z", c["lost"], c.get("loss")) + sctp.errors("$z $r", c["lost_back"], c.get("loss_back"))
    lines += [
        f"set source [new Agent/TCP/{c['variant']}]",
        f"set sink [new Agent/{sink}]",
        "$ns attach-agent $a $source",
        "$ns attach-agent $z $sink",
        "$ns connect $source $sink",
        "set ftp [new Application/FTP]",
        "$ftp attach-agent $source",
        '$ns at 0.0 "$ftp start"',
        f'$ns at {c["duration"]} "$ns flush-trace; exit 0"',
        "$ns run",
    ]
    return "\n".join(lines) + "\n"


def spec(c: dict) -> str:
    out = ["anabranch = 1", 'name = "x"', "[world]", f'duration = "{c["duration"]} s"']
    for name in "arz":
        out.append(f'[[node]]\nname = "{name}"')
    forward, backward = sctp.loss(c["lost"], c.get("loss")), sctp.loss(c["lost_back"], c.get("loss_back"))
    losses = [f"{way} = {model}" for way, model in (("forward", forward), ("backward", backward)) if model]
    out += [
        '[[link]]\nname = "access0"\nbetween = ["a", "r"]',
        f'rate = {{ forward = "{c["access"]} Mbit/s", backward = "10 Gbit/s" }}',
        f'delay = "{c["access_delay"]} ms"\nqueue = "100000 packets"',
        '[[link]]\nname = "path0"\nbetween = ["r", "z"]',
        f'rate = {{ forward = "{c["rate"]} Mbit/s", backward = "10 Gbit/s" }}',
        f'delay = "{c["delay"]} ms"',
        f'queue = {{ forward = "{c["queue"]} packets", backward = "100000 packets" }}',
    ]
    if losses:
        out.append(f"loss = {{ {', '.join(losses)} }}")
    out += [
        '[[flow]]\nname = "x"\nfrom = "a"\nto = "z"',
        'workload = { kind = "bulk" }',
        '[flow.transport]\nprotocol = "tcp"\nprofile = "sack1"\nwindow_scale = true',
    ]
    values = {
        "mss": f'"{c["segment"]} B"',
        "receive_buffer": f'"{c["window"]} segments"',
        "initial_ssthresh": f'"{c["window"]} segments"',
        "initial_window": f'"{c["initial"]} segments"',
        "limited_transmit": str(c["limited"]).lower(),
        "integer_halving": str(not c["precise"]).lower(),
        "duplicate_threshold": c["threshold"],
        "rtt_granularity": f'"{c["tick"]} s"',
        "rto_min": f'"{c["min_rto"]} s"',
        "delayed_ack": str(c["delayed"]).lower(),
    }
    if c["delayed"]:
        values["delayed_ack_timeout"] = f'"{c["ack_delay"]} s"'
    if c["variant"] == "Newreno":
        values["sack"] = "false"  # and so RFC 6582
    out += [f"{key} = {value}" for key, value in values.items()]
    out.append('[[measure]]\nmetric = "goodput"\nflow = "x"')
    return "\n".join(out) + "\n"
