//! Parameters that several metrics share.

use anabranch_settings::{
    FromParameters, Kind, KindError, KindParameters, Setting, SettingValue, spelled,
};
use anabranch_transport::{Nanos, Probe};

/// Kind of the values of a parameter that is a time.
pub const TIME: Kind = Kind::duration(0, Nanos::MAX);

/// Parameter `flow`: the flow that a metric observes.
pub const FLOW: Setting = Setting::new(
    "flow",
    " The flow; `flow[1]` is one member of it.",
    Kind::Name("flow"),
);

/// Parameter `link`: the link that a metric observes.
pub const LINK: Setting = Setting::new(
    "link",
    " The link; `link[1]` is one member of it.",
    Kind::Name("link"),
);

/// Parameter `window`: the part of the run that is measured.
pub const WINDOW: Setting = Setting::new(
    "window",
    " The part of the run to measure: `[\"10 s\", \"20 s\"]`. Default: the whole run.",
    PAIR,
)
.optional();

/// Parameter `windows`: several parts of the run, each with a separate value.
pub const WINDOWS: Setting = Setting::new(
    "windows",
    " Instead of `window`: several named parts of the run. Each part gives a measure whose name ends with the name of the part: `{ early = [\"0 s\", \"5 s\"], late = [\"5 s\", \"60 s\"] }`.",
    Kind::Named(&PAIR),
)
.optional();

const PAIR: Kind = Kind::Tuple(&[TIME, TIME]);

/// Parameter `clock`: the time from which windows count.
pub const CLOCK: Setting = Setting::new(
    "clock",
    " Where the times of windows start: at the beginning of the `run`, or at the start of each \
     member of the `flow`.",
    Clock::KIND,
)
.or("run");

/// Time from which the windows of a metric count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// The start of the run.
    #[default]
    Run,
    /// The start of each member of the flow.
    Flow,
}
spelled!(Clock: Clock::Run = "run", Clock::Flow = "flow");

/// Parameter `index`: only samples of one path or stream count.
pub const INDEX: Setting = Setting::new(
    "index",
    " Only samples with this index (of a path or stream). Default: all samples.",
    Kind::count(0, u16::MAX as u64),
)
.optional();

/// Parameter `path`: only one path counts.
pub const PATH: Setting = Setting {
    name: "path",
    about: " Only on this path; 0 is the primary path. Default: all paths.",
    ..INDEX
};

/// Parameter `name`: the name of a measure.
pub const NAME: Setting = Setting::new(
    "name",
    " The measure's name in results: letters, digits and `_`.",
    Kind::Text("letters, digits and `_`"),
);

/// Name of a measure, from the parameter [`NAME`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameParameter(
    /// The name, which consists of letters, digits and `_`.
    pub String,
);

impl FromParameters for NameParameter {
    fn read(parameters: &KindParameters<'_>) -> Result<Self, KindError> {
        let name: String = parameters.get(NAME.name)?;
        if is_name(&name) {
            return Ok(Self(name));
        }
        let message =
            format!("found {name:?}; a measure's name is made of letters, digits and `_`");
        Err(KindError::together(message))
    }
}

/// Whether a text consists only of letters, digits and `_`, and is not empty.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Checks the parameter `statistic`: no statistic may be listed twice.
pub(super) fn check_takes<T: PartialEq>(takes: &[T]) -> Result<(), KindError> {
    let again = |(at, take): (usize, &T)| takes[..at].contains(take);
    match takes.iter().enumerate().any(again) {
        true => Err(KindError::together("`statistic` names a value twice")),
        false if takes.is_empty() => {
            let message = "`statistic` is empty; it names a value at least";
            Err(KindError::together(message))
        }
        false => Ok(()),
    }
}

/// Definition of the bytes that count as carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// Payload that reached the applications, without duplicates. Its sum over the flows divided by
    /// the link's rate is the utilisation of many papers.
    #[default]
    UniquePayload,
    /// Like `UniquePayload`, plus the header of each segment, as in SCTP's windows and ns-2's
    /// packets: 16 bytes for each SCTP chunk, none for TCP.
    UniqueSegments,
    /// Every byte on the wire, including headers and retransmissions.
    Wire,
}
spelled!(Counting: Counting::UniquePayload = "unique-payload", Counting::UniqueSegments = "unique-segments",
    Counting::Wire = "wire");

/// Definition of the bytes that count as delivered to the applications: [`Counting`] without the
/// bytes on the wire, which are counted for links but not for flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeliveredCounting {
    /// [`Counting::UniquePayload`].
    #[default]
    UniquePayload,
    /// [`Counting::UniqueSegments`].
    UniqueSegments,
}
spelled!(DeliveredCounting: DeliveredCounting::UniquePayload = "unique-payload",
    DeliveredCounting::UniqueSegments = "unique-segments");

/// Parameter `counting` of a comparison of flows: the definition of the bytes that count as
/// delivered.
pub const DELIVERED_COUNTING: Setting = Setting::new(
    "counting",
    " What to count. `unique-payload`: payload that reached the applications, once. \
     `unique-segments`: the same, plus the header of each segment: 16 bytes per SCTP \
     chunk, none for TCP.",
    DeliveredCounting::KIND,
)
.or("unique-payload");

/// Parameter `counting` of a link: the definition of the bytes that count as carried.
pub const COUNTING: Setting = Setting::new(
    "counting",
    " What to count. `unique-payload`: payload that reached the applications, once (the \
     papers' sum of throughputs). `unique-segments`: the same, plus the header of each \
     segment: 16 bytes per SCTP chunk, none for TCP. `wire`: every byte on the wire, \
     including headers and retransmissions.",
    Counting::KIND,
)
.or("unique-payload");

/// Parameter `probe`: a probe of a flow.
pub const PROBE: Setting = Setting::new("probe", " The probe, such as `peer_rwnd`.", Probe::KIND);
