//! Errors of sockets, counted by reason.

use std::fmt;
use std::io;

/// Number of reasons that are counted separately; all further reasons are counted together.
const MAX_REASONS: usize = 16;

/// The operation that returned an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketOperation {
    /// Sending: the packets are lost.
    Sending,
    /// Receiving: no packet was lost.
    Receiving,
}

/// A reason for errors of an endpoint's sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketError {
    /// The operation.
    pub doing: SocketOperation,
    /// The kind of the error; `Other` also for all beyond 16 reasons.
    pub kind: io::ErrorKind,
    /// The system's number (`errno`), if the error is the system's.
    pub code: Option<i32>,
    /// Calls that returned it.
    pub count: u64,
}

impl fmt::Display for SocketError {
    /// `receiving: Bad file descriptor (os error 9) 12`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let doing = match self.doing {
            SocketOperation::Sending => "sending",
            SocketOperation::Receiving => "receiving",
        };
        match self.code {
            Some(code) => write!(f, "{doing}: {} ", io::Error::from_raw_os_error(code))?,
            None => write!(f, "{doing}: {} ", self.kind)?,
        }
        write!(f, "{}", self.count)
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct SocketErrors {
    reasons: Vec<SocketError>,
    all: u64,
}

impl SocketErrors {
    /// Counts one. A reason that is new is logged.
    #[cold]
    pub(crate) fn count(&mut self, doing: SocketOperation, error: &io::Error) {
        self.all += 1;
        let (kind, code) = (error.kind(), error.raw_os_error());
        let full = self.reasons.len() >= MAX_REASONS;
        let known = |it: &&mut SocketError| (it.doing, it.kind, it.code) == (doing, kind, code);
        if let Some(reason) = self.reasons.iter_mut().find(known) {
            reason.count += 1;
            return;
        }
        if full {
            // The last entry counts all further reasons.
            if let Some(other) = self.reasons.last_mut() {
                (other.kind, other.code) = (io::ErrorKind::Other, None);
                other.count += 1;
            }
            return;
        }
        tracing::warn!(%error, ?doing, "a socket gives errors");
        self.reasons.push(SocketError {
            doing,
            kind,
            code,
            count: 1,
        });
    }

    /// Number of errors.
    pub(crate) fn all(&self) -> u64 {
        self.all
    }

    /// Number of errors for each reason.
    pub(crate) fn reasons(&self) -> &[SocketError] {
        &self.reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_by_reason_and_reasons_are_bounded() {
        let mut failures = SocketErrors::default();
        let bad = io::Error::from_raw_os_error(9);
        failures.count(SocketOperation::Receiving, &bad);
        failures.count(SocketOperation::Receiving, &bad);
        failures.count(SocketOperation::Sending, &bad);
        failures.count(
            SocketOperation::Sending,
            &io::ErrorKind::PermissionDenied.into(),
        );
        let shown: Vec<String> = failures.reasons().iter().map(ToString::to_string).collect();
        assert!(shown[0].starts_with("receiving: ") && shown[0].ends_with(" 2"));
        assert_eq!(shown[2], "sending: permission denied 1");
        for code in 100..200 {
            failures.count(
                SocketOperation::Sending,
                &io::Error::from_raw_os_error(code),
            );
        }
        assert_eq!(failures.reasons().len(), MAX_REASONS);
        let counted = failures.reasons().iter().map(|it| it.count);
        assert_eq!((counted.sum::<u64>(), failures.all()), (104, 104));
    }
}
