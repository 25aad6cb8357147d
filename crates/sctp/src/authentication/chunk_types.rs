//! Sets of chunk types that an end accepts only if authenticated (RFC 4895 §3.2).

use anabranch_settings::{Choice, Datum, Kind, SettingValue};
use anabranch_wire::chunk::kind;

/// Names of the chunk types that the settings accept.
const NAMES: [(&str, u8); 19] = [
    ("data", kind::DATA),
    ("sack", kind::SACK),
    ("heartbeat", kind::HEARTBEAT),
    ("heartbeat_ack", kind::HEARTBEAT_ACK),
    ("abort", kind::ABORT),
    ("shutdown", kind::SHUTDOWN),
    ("shutdown_ack", kind::SHUTDOWN_ACK),
    ("error", kind::ERROR),
    ("cookie_echo", kind::COOKIE_ECHO),
    ("cookie_ack", kind::COOKIE_ACK),
    ("ecne", kind::ECNE),
    ("cwr", kind::CWR),
    ("i_data", kind::I_DATA),
    ("asconf_ack", kind::ASCONF_ACK),
    ("re_config", kind::RE_CONFIG),
    ("pad", kind::PAD),
    ("forward_tsn", kind::FORWARD_TSN),
    ("asconf", kind::ASCONF),
    ("i_forward_tsn", kind::I_FORWARD_TSN),
];

const CHOICES: [Choice; NAMES.len()] = {
    let mut choices = [Choice::new(""); NAMES.len()];
    let mut at = 0;
    while at < NAMES.len() {
        choices[at] = Choice::new(NAMES[at].0);
        at += 1;
    }
    choices
};

/// Set of chunk types, such as those that a peer must authenticate. The set never contains INIT,
/// INIT ACK, SHUTDOWN COMPLETE and AUTH (RFC 4895 §3.2).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ChunkTypes([u64; 4]);

impl ChunkTypes {
    /// Set of these types, without the types that RFC 4895 §3.2 excludes.
    pub fn of(types: &[u8]) -> Self {
        let mut set = Self::default();
        for &kind in types {
            if !matches!(
                kind,
                kind::INIT | kind::INIT_ACK | kind::SHUTDOWN_COMPLETE | kind::AUTH
            ) {
                set.0[usize::from(kind >> 6)] |= 1 << (kind & 63);
            }
        }
        set
    }

    /// Union of this set and `types`.
    #[must_use]
    pub(crate) fn and(&self, types: &[u8]) -> Self {
        let mut all = Self::of(types);
        for (both, own) in all.0.iter_mut().zip(self.0) {
            *both |= own;
        }
        all
    }

    /// Whether the set contains `kind`.
    pub fn has(&self, kind: u8) -> bool {
        self.0[usize::from(kind >> 6)] >> (kind & 63) & 1 == 1
    }

    /// Whether the set contains any of `types`.
    pub(crate) fn has_any(&self, types: &[u8]) -> bool {
        types.iter().any(|kind| self.has(*kind))
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Types in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        (0..=u8::MAX).filter(|kind| self.has(*kind))
    }
}

impl std::fmt::Debug for ChunkTypes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl SettingValue for ChunkTypes {
    const KIND: Kind = Kind::List(&Kind::Choice(&CHOICES));

    fn from_datum(datum: &Datum) -> Option<Self> {
        let of = |name: &str| NAMES.iter().find(|(known, _)| *known == name);
        let kind = |it: &Datum| of(it.text()?).map(|(_, kind)| *kind);
        let all: Option<Vec<u8>> = datum.items().iter().map(kind).collect();
        all.map(|all| Self::of(&all))
    }

    fn to_datum(&self) -> Datum {
        let names = NAMES.iter().filter(|(_, kind)| self.has(*kind));
        Datum::List(names.map(|(name, _)| Datum::word(name)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_types_are_never_asked_for() {
        let all: Vec<u8> = (0..=255).collect();
        let set = ChunkTypes::of(&all);
        assert_eq!(set.iter().count(), 252);
        for kind in [1, 2, 14, 15] {
            assert!(!set.has(kind), "{kind}");
        }
        assert!(ChunkTypes::of(&[1, 2, 14, 15]).is_empty());
    }

    #[test]
    fn a_setting_names_each_type_and_reads_back() {
        let set = ChunkTypes::of(&[kind::ASCONF, kind::DATA, kind::I_FORWARD_TSN]);
        let datum = set.to_datum();
        let words: Vec<_> = datum.items().iter().filter_map(Datum::text).collect();
        assert_eq!(words, ["data", "asconf", "i_forward_tsn"]);
        assert_eq!(ChunkTypes::from_datum(&datum), Some(set));
        assert_eq!(
            ChunkTypes::from_datum(&Datum::List(vec![Datum::word("init")])),
            None
        );
    }
}
