"""Conditions of one SCTP association, drawn at random: each as a script of ns-2.35 and as a spec of anabranch."""

import random

import replications

QUIET = 100_000  # HEARTBEAT beyond the end, s


def draw(number: int) -> dict:
    """The condition with this number."""
    r = random.Random(f"sctp {number}")
    mtu = r.choice([576, 1000, 1280, 1480, 1500, 1500, 1500, 4000])
    largest = (mtu - 32) // 4 * 4
    chunk = largest if r.random() < 0.75 else r.randrange(40, largest, 4)
    duration = r.choice([20, 40, 80])
    access = r.choice([2.0, 5.0, 10.0, 100.0])
    rate = r.choice([0.3, 0.5, 1.0, 1.5, 2.0, 3.3, 5.0, 8.0])
    paths = r.choice([1, 1, 1, 2, 2, 3])
    condition = {
        "kind": "sctp",
        "number": number,
        "mtu": mtu,
        "chunk": chunk,
        "duration": duration,
        "rwnd": r.choice([4096, 8192, 16384, 32768, 65536, 65536, 131072, 500_000]),
        "ssthresh": r.choice([8192, 16384, 65536, 65536, 1_000_000]),
        "delayed": r.random() < 0.6,
        "sack_delay": r.choice([0.2, 0.2, 0.1, 0.05, 0.5]),
        "trigger": r.choice([3, 3, 4, 2, 5]),
        "streams": r.choice([1, 1, 2, 5, 16]),
        "unordered": r.random() < 0.2,
        "min_rto": r.choice([1.0, 1.0, 0.3, 0.5, 2.0]),
        "max_burst": r.random() < 0.8,
        "heartbeat": QUIET,
        "rtx_to_alt": r.choice([1, 1, 0, 2]),
        "path_max_retrans": r.choice([5, 5, 2, 1, 0]),
        "paths": [],
    }
    # ns-2 also measures round trips whose measurement was cancelled, and its HEARTBEATs are larger: no timeout may depend on this.
    condition["max_rto"] = condition["min_rto"]
    tame = number % 2 == 0  # nothing depends on the order of simultaneous events
    if tame:
        condition["delayed"] = False
    for path in range(paths):
        if path:
            rate = r.choice([rate, 0.5, 1.0, 2.0, 4.0])
        delay = r.choice([1, 5, 10, 25, 40, 80, 150, 250, 400]) + r.randrange(1000) / 1000
        loss = r.choice([0, 0, 0.003, 0.01, 0.02, 0.05, 0.1])
        back = r.choice([0, 0, 0, 0.01, 0.05])
        packets = int(rate * 1e6 * duration / 8 / 300)
        def lost(share, first=12, packets=packets):
            return [n for n in range(first, min(packets, 20000)) if r.random() < share]
        condition["paths"].append({
            "access": access,
            "access_delay": r.choice([0.5, 2, 3.7]),
            "rate": rate,
            "delay": delay,
            "queue": 100_000 if tame else r.choice([3, 5, 8, 12, 20, 50, 100, 1000]),
            "lost": lost(loss),
            "lost_back": lost(back),
        })
    longest = max(2 * (path["delay"] + path["access_delay"]) for path in condition["paths"])
    if 1000 * condition["min_rto"] < 1.5 * longest:
        condition["path_max_retrans"] = 5  # else HEARTBEATs are given up before their answers can come
    return condition


def hosts(c: dict) -> list[str]:
    """Number of the sender's node on each path in the trace of ns-2: nodes are numbered in the order of their creation."""
    count = len(c["paths"])
    return ["0"] if count == 1 else [str(2 + 3 * path) for path in range(count)]


def wires(c: dict) -> list[tuple]:
    """Router, receiver and queue limit of each path."""
    return [
        (str(int(host) + 1), str(int(host) + 2), path["queue"])
        for host, path in zip(hosts(c), c["paths"])
    ]


def errors(way: str, lost: list[int], rate: float | None) -> list[str]:
    """Lines of the script of ns-2 that lose packets: those with these numbers, or a share at random."""
    if not lost and not rate:
        return []
    return [
        f"set errors [new ErrorModel{'/List' if lost else ''}]",
        "$errors unit pkt",
        "$errors drop-target [new Agent/Null]",
        f"$errors droplist {{{' '.join(map(str, lost))}}}" if lost else f"$errors set rate_ {rate}",
        f"$ns lossmodel $errors {way}",
    ]


def loss(lost: list[int], rate: float | None) -> str | None:
    """The same losses as a model of anabranch."""
    if lost:
        return f'{{ model = "ordinals", packets = {lost} }}'
    return f'{{ model = "bernoulli", probability = {rate} }}' if rate else None


def tcl(c: dict) -> str:
    many = len(c["paths"]) > 1
    lines = ["Trace set show_sctphdr_ 1", "set ns [new Simulator]", "$ns use-scheduler Heap"]
    lines.append(replications.SEED)
    for name, value in {
        "mtu_": c["mtu"],
        "dataChunkSize_": c["chunk"],
        "initialRwnd_": c["rwnd"],
        "initialSsthresh_": c["ssthresh"],
        "useDelayedSacks_": int(c["delayed"]),
        "sackDelay_": c["sack_delay"],
        "fastRtxTrigger_": c["trigger"],
        "numOutStreams_": c["streams"],
        "unordered_": int(c["unordered"]),
        "minRto_": c["min_rto"],
        "maxRto_": c["max_rto"],
        "useMaxBurst_": int(c["max_burst"]),
        "heartbeatInterval_": c["heartbeat"],
        "rtxToAlt_": c["rtx_to_alt"],
        "pathMaxRetrans_": c["path_max_retrans"],
        "associationMaxRetrans_": 1000,
    }.items():
        lines.append(f"Agent/SCTP set {name} {value}")
    lines.append("set trace [open [lindex $argv 0] w]")
    if not c.get("random"):
        lines.append("$ns trace-all $trace")
    if many:
        lines += ["set a [$ns node]", "set z [$ns node]"]
    for i, p in enumerate(c["paths"]):
        lines += [f"set a{i} [$ns node]", f"set r{i} [$ns node]", f"set z{i} [$ns node]"]
        if many:
            lines += [f"$ns multihome-add-interface $a $a{i}", f"$ns multihome-add-interface $z $z{i}"]
        lines += [
            f"$ns duplex-link $a{i} $r{i} {p['access']}Mb {p['access_delay']}ms DropTail",
            f"$ns duplex-link $r{i} $z{i} {p['rate']}Mb {p['delay']}ms DropTail",
            f"$ns queue-limit $a{i} $r{i} 100000",
            f"$ns queue-limit $r{i} $a{i} 100000",
            f"$ns queue-limit $r{i} $z{i} {p['queue']}",
            f"$ns queue-limit $z{i} $r{i} 100000",
        ]
        if c.get("random"):
            lines.append(f"$ns trace-queue $r{i} $z{i} $trace")
        lines += errors(f"$r{i} $z{i}", p["lost"], p.get("loss"))
        lines += errors(f"$z{i} $r{i}", p["lost_back"], p.get("loss_back"))
    lines += ["set source [new Agent/SCTP]", "set sink [new Agent/SCTP]"]
    if many:
        lines += ["$ns multihome-attach-agent $a $source", "$ns multihome-attach-agent $z $sink"]
    else:
        lines += ["$ns attach-agent $a0 $source", "$ns attach-agent $z0 $sink"]
    lines.append("$ns connect $source $sink")
    if many:
        lines.append("$source set-primary-destination $z0")
    lines += [
        "set ftp [new Application/FTP]",
        "$ftp attach-agent $source",
        '$ns at 0.0 "$ftp start"',
        f'$ns at {c["duration"]} "$ns flush-trace; exit 0"',
        "$ns run",
    ]
    return "\n".join(lines) + "\n"


RETRANSMISSION = {0: "same_path", 1: "alternate_path", 2: "alternate_after_timeout"}


def spec(c: dict) -> str:
    out = ['anabranch = 1', 'name = "x"', "[world]", f'duration = "{c["duration"]} s"']
    for name in ["a", "z"] + [f"r{i}" for i in range(len(c["paths"]))]:
        out.append(f'[[node]]\nname = "{name}"')
    for i, p in enumerate(c["paths"]):
        out += [
            f'[[link]]\nname = "access{i}"\nbetween = ["a", "r{i}"]',
            f'rate = "{p["access"]} Mbit/s"\ndelay = "{p["access_delay"]} ms"\nqueue = "100000 packets"',
            f'[[link]]\nname = "path{i}"\nbetween = ["r{i}", "z"]',
            f'rate = "{p["rate"]} Mbit/s"\ndelay = "{p["delay"]} ms"',
            f'queue = {{ forward = "{p["queue"]} packets", backward = "100000 packets" }}',
        ]
        # The HEARTBEAT of the receiver, which ns-2 does not send, increases the numbers by one.
        forward = loss([n + (i > 0) for n in p["lost"]], p.get("loss"))
        backward = loss([n + (i > 0) for n in p["lost_back"]], p.get("loss_back"))
        losses = [f"{way} = {model}" for way, model in (("forward", forward), ("backward", backward)) if model]
        if losses:
            out.append(f"loss = {{ {', '.join(losses)} }}")
    heartbeat = f"{min(c['heartbeat'], 86400)} s"
    out += [
        '[[flow]]\nname = "x"\nfrom = "a"\nto = "z"',
        f'workload = {{ kind = "bulk", message = "{c["chunk"] - 16} B" }}',
    ]
    if len(c["paths"]) > 1:
        pairs = ", ".join(f'{{ from = "access{i}", to = "path{i}" }}' for i in range(len(c["paths"])))
        out.append(f"paths = [{pairs}]")
    out += ['[flow.transport]\nprotocol = "sctp"\nprofile = "ns2"']
    values = {
        "mtu": f'"{c["mtu"]} B"',
        "streams": c["streams"],
        "receive_buffer": f'"{c["rwnd"]} B"',
        "initial_ssthresh": f'"{c["ssthresh"]} B"',
        "delayed_sack": str(c["delayed"]).lower(),
        "missing_reports": c["trigger"],
        "unordered": str(c["unordered"]).lower(),
        "rto_min": f'"{c["min_rto"]} s"',
        "rto_max": f'"{c["max_rto"]} s"',
        "heartbeat_interval": f'"{heartbeat}"',
        "path_max_retrans": c["path_max_retrans"],
        "association_max_retrans": 1000,
    }
    # With one path these settings have no effect, and the program refuses them.
    if len(c["paths"]) > 1:
        values["primary_switchover_max_retrans"] = c["path_max_retrans"]
        values["retransmission_path"] = f'"{RETRANSMISSION[c["rtx_to_alt"]]}"'
    if c["delayed"]:
        values["sack_delay"] = f'"{c["sack_delay"]} s"'
    if not c["max_burst"]:
        values["max_burst_applies"] = '"off"'
    out += [f"{key} = {value}" for key, value in values.items()]
    out.append('[[measure]]\nmetric = "goodput"\nflow = "x"')
    return "\n".join(out) + "\n"
