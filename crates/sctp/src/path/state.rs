//! Path states.

macro_rules! states {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $code:literal;)*) => {
        /// Whether a path may carry data.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum PathState { $($(#[$doc])* $variant),* }

        impl PathState {
            /// All states.
            pub const ALL: &'static [PathState] = &[$(PathState::$variant),*];

            /// Name of the state in reports.
            pub const fn name(self) -> &'static str {
                match self { $(PathState::$variant => $name),* }
            }

            /// The value recorded by [`Probe::PathState`](anabranch_transport::Probe::PathState).
            pub const fn code(self) -> f64 {
                match self { $(PathState::$variant => $code),* }
            }
        }
    };
}

states! {
    /// Not yet confirmed by a HEARTBEAT or the handshake (RFC 9260 §5.4).
    Unconfirmed = "unconfirmed", 3.0;
    /// In use.
    Active = "active", 1.0;
    /// More consecutive errors than PFMR: probed, and used only if no path is active (RFC 7829 §3).
    PotentiallyFailed = "potentially failed", 2.0;
    /// More consecutive errors than Path.Max.Retrans (RFC 9260 §8.2).
    Inactive = "inactive", 0.0;
}
