//! `--add-address`, `--remove-address`, `--peer-primary`: scheduled changes of this host's
//! addresses in established associations (RFC 5061).

use std::net::IpAddr;
use std::time::Duration;

use anabranch_net::sctp::{Authentication, Config};
use anabranch_net::{AddressChange, AddressChangeOutcome, Association, Endpoint, Event};
use tokio::time::Instant;

use super::arguments::NetOptions;
use crate::failure::Failure;
use crate::stderr::note;

/// Scheduled changes, in order of time. Changes at the same time are requested in one chunk, so
/// that the only address can be replaced.
#[derive(Clone, Debug, Default)]
pub struct AddressSchedule(Vec<(Duration, Vec<AddressChange>)>);

impl AddressSchedule {
    /// Reads the options of the command line.
    ///
    /// # Errors
    /// The command line has such options, but the settings do not enable address changes.
    pub fn from_options(wire: &NetOptions, config: &Config) -> Result<Self, Failure> {
        let mut all: Vec<(Duration, Vec<AddressChange>)> = Vec::new();
        // Order of changes at the same time: a new address becomes primary before another is
        // removed.
        for (option, of, wanted) in [
            (
                "--add-address",
                &wire.add_address,
                AddressChange::Add as fn(IpAddr) -> AddressChange,
            ),
            (
                "--peer-primary",
                &wire.peer_primary,
                AddressChange::PeerPrimary,
            ),
            (
                "--remove-address",
                &wire.remove_address,
                AddressChange::Remove,
            ),
        ] {
            let off = !config.address_changes || config.authentication == Authentication::Off;
            if off && !of.is_empty() {
                return Err(Failure::Usage(format!(
                    "{option} needs --set address_changes=true and --set authentication=on (RFC 5061)"
                )));
            }
            for timed in of {
                let at = Duration::from_nanos(timed.at.0);
                let change = wanted(timed.address);
                match all.iter_mut().find(|(then, _)| *then == at) {
                    Some((_, changes)) => changes.push(change),
                    None => all.push((at, vec![change])),
                }
            }
        }
        all.sort_by_key(|(at, _)| *at);
        Ok(Self(all))
    }

    /// Requests the changes at their times, counted from this call. Errors are printed on standard
    /// error.
    pub fn start(&self, endpoints: &[Endpoint]) {
        if self.0.is_empty() {
            return;
        }
        let (moves, endpoints, begin) = (self.0.clone(), endpoints.to_vec(), Instant::now());
        tokio::spawn(async move {
            for (at, changes) in moves {
                tokio::time::sleep_until(begin + at).await;
                for endpoint in &endpoints {
                    if let Err(error) = endpoint.change_addresses(&changes) {
                        note(format_args!("addresses: {error}"));
                    }
                }
            }
        });
    }

    /// Prints the outcomes of changes in an association on standard error.
    pub fn print_outcomes(&self, association: &Association) {
        if self.0.is_empty() {
            return;
        }
        let association = association.clone();
        tokio::spawn(async move {
            while let Some(event) = association.next_event().await {
                if let Event::AddressChanged { change, outcome } = event {
                    note(words(&change, outcome));
                }
            }
        });
    }
}

fn words(change: &AddressChange, outcome: AddressChangeOutcome) -> String {
    let (address, done) = (change.address(), outcome == AddressChangeOutcome::Performed);
    let what = match (change, done) {
        (AddressChange::PeerPrimary(_), true) => "the peer sends to it first",
        (AddressChange::PeerPrimary(_), false) => "not chosen",
        (_, true) if change.adds().is_some() => "added",
        (_, true) => "removed",
        (_, false) if change.adds().is_some() => "not added",
        (_, false) => "not removed",
    };
    match outcome {
        AddressChangeOutcome::Refused { cause: Some(cause) } => {
            format!("{address}: {what}: the peer refused, cause {cause}")
        }
        AddressChangeOutcome::Refused { cause: None } => {
            format!("{address}: {what}: the peer refused")
        }
        AddressChangeOutcome::Failed => {
            format!("{address}: {what}: the peer was not asked, or did not answer")
        }
        _ => format!("{address}: {what}"),
    }
}
