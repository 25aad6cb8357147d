"""Conditions with random numbers: means over many seeds, and whether those of ns-2.35 and of anabranch agree."""

import csv
import math
import statistics

import traces

# A line of the script of ns-2, which discards 100 random numbers: the first one after a small seed is so small, about a 2000th of the
# seed, that the first packet would always be lost.
SEED = "if {$argc > 1} {ns-random [lindex $argv 1]; for {set i 0} {$i < 100} {incr i} {ns-random}}"
CONFIDENCE = 0.99  # for each mean: one in a hundred lies apart by chance


def quantile(probability: float, freedom: float) -> float:
    """Quantile of Student's t, by the expansion around the normal distribution; accurate to 0.02 from ten degrees of freedom on."""
    z = statistics.NormalDist().inv_cdf(probability)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


def apart(theirs: list[float], ours: list[float]) -> tuple[bool, str]:
    """Whether 0 lies outside Welch's interval of the difference, and the interval in words."""
    means = [statistics.fmean(it) for it in (theirs, ours)]
    parts = [statistics.variance(it) / len(it) for it in (theirs, ours)]
    error = math.sqrt(sum(parts))
    if error == 0:
        # No random number was used: all runs are equal, except for packets in flight at the end.
        return abs(means[1] - means[0]) > 0.002 * means[0], f"{means[0]:.6g}, ours {means[1]:.6g}"
    freedom = sum(parts) ** 2 / sum(part**2 / (len(it) - 1) for part, it in zip(parts, (theirs, ours)))
    half = error * quantile((1 + CONFIDENCE) / 2, freedom)
    difference = means[1] - means[0]
    return abs(difference) > half, f"{means[0]:.6g}, ours {difference:+.3g} ± {half:.2g}"


NAMES = ("goodput, bit/s", "packets that came", "packets dropped")


def measures(flows: list[str], links: list[str]) -> str:
    """The same three measures of runs of anabranch, as a part of a spec."""
    return "".join(
        [f'[[measure]]\nmetric = "packets"\nflow = "{flow}"\nstatistic = ["received"]\n' for flow in flows]
        + [
            f'[[measure]]\nmetric = "drops"\nlink = "{link}"\nreason = "{reason}"\n'
            for link in links
            for reason in ("queue-full", "aqm")
        ]
    )


def theirs(path: str, sinks: list[str], payload: int, duration: float) -> tuple[float, ...]:
    """The three measures of a run of ns-2."""
    arrived, came, dropped = traces.arrivals(path, sinks)
    chunks = sum(traces.in_order(numbers) for numbers in arrived.values())
    return chunks * payload * 8 / duration, came, dropped


def ours(path: str) -> list[tuple[float, ...]]:
    """The three measures of each run of anabranch, from `measures.csv`."""
    runs: dict[str, list[float]] = {}
    with open(path) as file:
        for row in csv.DictReader(file):
            run = runs.setdefault(row["replication"], [0.0, 0.0, 0.0])
            which = 2 if row["metric"].startswith("drops") else 1 if row["metric"].startswith("packets") else 0
            run[which] += float(row["value"])
    return [tuple(run) for run in runs.values()]


def judge(theirs: list[tuple], ours: list[tuple], count: int) -> str:
    """`agree`, or the names of those of the first `count` means that differ."""
    found = [
        f"{name}: ns-2 {words}"
        for name, one, other in list(zip(NAMES, zip(*theirs), zip(*ours)))[:count]
        for far, words in [apart(one, other)]
        if far
    ]
    if found:
        return "apart, " + "; ".join(found)
    _, goodput = apart(*[[run[0] for run in runs] for runs in (theirs, ours)])
    return f"agree, goodput {goodput}"
