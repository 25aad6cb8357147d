"""One association or connection over links that lose packets at random: a condition of `sctp` or `tcp`, with probabilities for its lists."""

import random

import sctp
import tcp


def draw(number: int) -> dict:
    """The condition with this number; SCTP if the number is even."""
    r = random.Random(f"loss {number}")
    kind = tcp if number % 2 else sctp
    c = kind.draw(2 * number)
    c |= {"random": True, "duration": 60}
    ways = c["paths"] if kind is sctp else [c]
    for way in ways:
        way |= {"lost": [], "lost_back": [], "rate": min(way["rate"], 2.0), "queue": r.choice([20, 50, 100])}
        way["loss"] = r.choice([0.003, 0.01, 0.02, 0.05, 0.1])
        way["loss_back"] = r.choice([0, 0, 0.01, 0.05])
    c["delayed"] = r.random() < 0.6
    if kind is tcp:
        return c | {"variant": "Sack1", "min_rto": 1.0}
    longest = max(2 * (path["delay"] + path["access_delay"]) for path in ways) / 1000
    # An answer to a HEARTBEAT that arrives after RTO.Max is accepted by ns-2 only.
    c["min_rto"] = max(c["min_rto"], round(1.5 * longest + 0.3, 3))
    return c | {"max_rto": max(c["max_rto"], c["min_rto"]), "streams": 1, "unordered": False}


def of(c: dict):
    """The module that writes the condition."""
    return tcp if c["kind"] == "tcp" else sctp


def tcl(c: dict) -> str:
    return of(c).tcl(c)


def spec(c: dict) -> str:
    return of(c).spec(c)
