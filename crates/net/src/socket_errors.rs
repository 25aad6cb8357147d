//! Socket errors, counted by reason.

use std::fmt;
use std::io;

/// Maximum number of reasons that are counted separately; the last entry counts all others.
const MAX_REASONS: usize = 16;

/// The operation that returned an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketOperation {
    /// Sending: the packets were lost.
    Sending,
    /// Receiving: no packet was lost.
    Receiving,
}

/// Count of the errors of an endpoint's sockets for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketError {
    /// The operation that failed.
    pub doing: SocketOperation,
    /// The kind of the error; `Other` for all errors beyond 16 reasons.
    pub kind: io::ErrorKind,
    /// The error number of the system (`errno`), if any.
    pub code: Option<i32>,
    /// Number of calls that returned the error.
    pub count: u64,
}

impl fmt::Display for SocketError {
    /// For example `receiving: Bad file descriptor (os error 9) 12`, with the count at the end.
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

/// Counters of all errors of a driver's sockets.
#[derive(Debug, Default)]
pub(crate) struct SocketErrors {
    reasons: Vec<SocketError>,
    all: u64,
}

impl SocketErrors {
    /// Counts an error. Only the first error of each reason (operation, kind and code) is logged.
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
            // The last entry counts all errors with further reasons.
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

    /// Total number of errors.
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
