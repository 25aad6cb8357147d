//! Path states.

macro_rules! states {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $code:literal;)*) => {
        /// Path state, which determines whether a path may carry data.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum PathState { $($(#[$doc])* $variant),* }

        impl PathState {
            /// All states.
            pub const ALL: &'static [PathState] = &[$(PathState::$variant),*];

            /// Name of the state in reports.
            pub const fn name(self) -> &'static str {
                match self { $(PathState::$variant => $name),* }
            }

            /// Value recorded by [`Probe::PathState`](anabranch_transport::Probe::PathState).
            pub const fn code(self) -> f64 {
                match self { $(PathState::$variant => $code),* }
            }
        }
    };
}

states! {
    /// The address was not confirmed yet by a HEARTBEAT or the handshake (RFC 9260 §5.4).
    Unconfirmed = "unconfirmed", 3.0;
    /// The path works and may carry data.
    Active = "active", 1.0;
    /// The path has more consecutive errors than PFMR. It is probed, and carries data only if no
    /// path is active (RFC 7829 §3).
    PotentiallyFailed = "potentially failed", 2.0;
    /// The path has more consecutive errors than Path.Max.Retrans, and carries no data while
    /// another path is active (RFC 9260 §8.2).
    Inactive = "inactive", 0.0;
}
