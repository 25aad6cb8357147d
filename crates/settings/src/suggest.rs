//! Suggestions for unknown names: the nearest spelling, or the name that this project uses for a
//! term of other programs.

use crate::renamed::renamed;

/// Minimum number of letters of an unambiguous prefix that counts as a match.
const MIN_PREFIX: usize = 3;

/// Maximum length of a compared word in bytes, and maximum number of candidates. Limits are needed
/// because the work grows with the product of both lengths and with the number of candidates.
const MAX_BYTES: usize = 256;
const MAX_CANDIDATES: usize = 1_000;

/// Terms of other programs and papers, each with the names that are used here. The first of these
/// names that is allowed at the position is suggested. If none is allowed, similar spellings are
/// not suggested either; for example, a round-trip time is neither a `rate` nor a one-way delay.
const FOREIGN: &[(&[&str], &[&str])] = &[
    (
        &[
            "bandwidth",
            "bw",
            "bitrate",
            "capacity",
            "datarate",
            "data_rate",
            "speed",
        ],
        &["rate", "link_utilization"],
    ),
    (
        &["latency", "propagation", "owd"],
        &["delay", "mean_one_way_delay"],
    ),
    (&["rtt"], &["srtt"]),
    (
        &["buffer", "buffer_size", "queue_size", "qdisc", "aqm"],
        &["queue", "receive_buffer", "receive_window"],
    ),
    (
        &["plr", "per", "ber", "loss_rate", "loss_ratio", "error_rate"],
        &["loss", "probability", "drops"],
    ),
    (
        &[
            "rwnd",
            "rwin",
            "rcvbuf",
            "rcvwnd",
            "receive_window",
            "receive_buffer",
        ],
        &["receive_buffer", "receive_window", "peer_rwnd"],
    ),
    (&["sndbuf", "send_window"], &["send_buffer"]),
    (&["segment", "segment_size"], &["mss", "mtu"]),
    (
        &["cc", "cca", "congestion_control", "algorithm"],
        &["congestion"],
    ),
    (&["reno"], &["newreno", "sctp"]),
    (&["packet_size", "payload", "message_size"], &["message"]),
    (
        &["size", "byte", "bytes", "octets", "file_size", "volume"],
        &["total", "limit", "bytes", "size", "B"],
    ),
    (&["src", "source", "sender"], &["from"]),
    (&["dst", "dest", "destination", "receiver"], &["to"]),
    (
        &[
            "runs",
            "repetitions",
            "repeats",
            "trials",
            "reps",
            "seeds",
            "iterations",
        ],
        &["replications"],
    ),
    (&["type", "kind", "model"], &["kind", "model"]),
    (&["throughput"], &["goodput"]),
    (&["fct", "completion_time"], &["flow_completion_time"]),
    (&["utilisation"], &["link_utilization"]),
    (&["retransmits"], &["retransmissions"]),
    (&["bar", "line", "scatter", "plot"], &["sweep"]),
    (&["fifo", "droptail", "pfifo", "tail_drop"], &["drop-tail"]),
    (&["uniform", "random", "iid"], &["bernoulli"]),
    (&["burst", "bursty", "markov", "ge"], &["gilbert-elliott"]),
    (&["poisson"], &["transfers"]),
    (&["ftp", "file", "greedy"], &["bulk"]),
    (&["http"], &["request-response"]),
    (&["mbps"], &["Mbit/s"]),
    (&["kbps"], &["kbit/s"]),
    (&["gbps"], &["Gbit/s"]),
    (&["percent"], &["%"]),
    (&["sec", "secs", "second", "seconds"], &["s"]),
    (
        &["msec", "msecs", "millis", "millisecond", "milliseconds"],
        &["ms"],
    ),
    (
        &["usec", "usecs", "micros", "microsecond", "microseconds"],
        &["us"],
    ),
    (&["nsec", "nanosecond", "nanoseconds"], &["ns"]),
    (&["minute", "minutes", "mins"], &["min"]),
    (&["hour", "hours", "hr", "hrs"], &["h"]),
    (&["pkt", "pkts"], &["packets"]),
    (&["metre", "metres", "meter", "meters"], &["m"]),
    (&["watt", "watts"], &["W"]),
    (&["hertz"], &["Hz"]),
];

/// The candidate that is suggested for `found`. A candidate of which `found` is a former name, or a
/// term in other programs, is preferred. If there is none, the most similar candidate is suggested;
/// if no candidate is similar, the only one that begins with `found` or contains it as a word.
pub fn nearest<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if found.len() > MAX_BYTES {
        return None;
    }
    let wanted = found.to_lowercase();
    let short = |it: &&str| it.len() <= MAX_BYTES;
    let candidates = candidates.into_iter().filter(short);
    let candidates: Vec<&str> = candidates.take(MAX_CANDIDATES).collect();
    if let Some(new) = renamed(found, candidates.iter().copied()) {
        return Some(new);
    }
    let meant = foreign(&wanted);
    let word = meant.and_then(|meant| {
        let mut meant = meant.iter();
        meant.find_map(|word| candidates.iter().copied().find(|known| known == word))
    });
    let spelt_alike = || {
        let near = candidates.iter().copied().map(|candidate| {
            let distance = strsim::damerau_levenshtein(&wanted, &candidate.to_lowercase());
            (distance, candidate)
        });
        let near = near.filter(|(distance, candidate)| {
            let longer = candidate.len().max(found.len());
            meant.is_none() && *distance <= 1 + longer / 4 && *distance < longer
        });
        let nearest = near.min_by_key(|(distance, _)| *distance);
        nearest.map(|(_, candidate)| candidate)
    };
    let known = wanted.len() >= MIN_PREFIX;
    let only = |is: &dyn Fn(&str) -> bool| {
        let mut such = candidates.iter().copied().filter(|it| known && is(it));
        such.next().filter(|_| such.next().is_none())
    };
    word.or_else(spelt_alike)
        .or_else(|| only(&|it| it.to_lowercase().starts_with(&wanted)))
        .or_else(|| {
            only(&|it| {
                it.to_lowercase()
                    .split(['_', '-'])
                    .any(|word| word == wanted)
            })
        })
}

/// Names that this project uses for a term of other programs, if `wanted` is one.
fn foreign(wanted: &str) -> Option<&'static [&'static str]> {
    let plain = wanted.replace(['-', ' '], "_");
    let mut all = FOREIGN.iter();
    all.find_map(|(words, meant)| words.contains(&plain.as_str()).then_some(*meant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_enough_where_one_alone_begins_so() {
        let papers = ["alamgir2002", "atiquzzaman2002", "ho2008"];
        assert_eq!(nearest("alamgir", papers), Some("alamgir2002"));
        assert_eq!(nearest("Ati", papers), Some("atiquzzaman2002"));
        assert_eq!(nearest("al", papers), None);
        assert_eq!(nearest("ho2007", papers), Some("ho2008"));
        assert_eq!(
            nearest("max", ["max_message", "max_init_retransmits"]),
            None
        );
    }

    #[test]
    fn synonyms_of_other_programs_are_suggested() {
        let link = ["name", "between", "rate", "delay", "queue", "loss", "mtu"];
        assert_eq!(nearest("Bandwidth", link), Some("rate"));
        assert_eq!(nearest("latency", link), Some("delay"));
        assert_eq!(nearest("buffer", link), Some("queue"));
        assert_eq!(nearest("loss-rate", link), Some("loss"));
        let metrics = ["goodput", "throughput_increase", "jain_fairness", "probe"];
        assert_eq!(nearest("throughput", metrics), Some("goodput"));
        assert_eq!(
            nearest("reno", ["newreno", "cubic", "veno"]),
            Some("newreno")
        );
        assert_eq!(nearest("reno", ["sctp", "cubic", "veno"]), Some("sctp"));
    }

    /// An ambiguous or dissimilar suggestion would be worse than none.
    #[test]
    fn nothing_is_said_where_nothing_is_meant() {
        assert_eq!(nearest("rtt", ["rate", "delay"]), None);
        assert_eq!(nearest("m", ["l"]), None);
        assert_eq!(
            nearest("buffer", ["buffer-sizing", "leo"]),
            Some("buffer-sizing")
        );
        assert_eq!(nearest("bandwidth", ["between", "width"]), None);
    }

    #[test]
    fn a_word_of_a_name_is_enough_where_one_alone_has_it() {
        let metrics = ["goodput", "jain_fairness", "queue_delay", "one_way_delay"];
        assert_eq!(nearest("fairness", metrics), Some("jain_fairness"));
        assert_eq!(nearest("delay", metrics), None);
    }

    /// A term that is listed twice would be found only once, and a term that is not normalised
    /// would never be found.
    #[test]
    fn each_foreign_word_stands_once_and_can_be_found() {
        let all: Vec<&str> = FOREIGN
            .iter()
            .flat_map(|(words, _)| *words)
            .copied()
            .collect();
        for word in &all {
            assert!(foreign(word).is_some(), "{word}");
            assert_eq!(all.iter().filter(|it| it == &word).count(), 1, "{word}");
        }
    }
}
