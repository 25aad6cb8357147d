//! Careful Resume (RFC 9959) of a simulated association, separately for each path.

use anabranch_sctp::{AssociationId, Endpoint};
use anabranch_transport::{Nanos, Path};

use crate::agent::resume::Resuming;

/// Passes saved parameters to the paths that the association has now.
pub fn resume(
    now: Nanos,
    resuming: Option<&mut Resuming>,
    endpoint: &mut Endpoint,
    id: AssociationId,
) {
    let (Some(resuming), Some(association)) = (resuming, endpoint.association_mut(id)) else {
        return;
    };
    let all = association.paths().iter();
    let paths: Vec<(u16, Path)> = all.map(|(id, it)| (id.0.into(), it.path())).collect();
    for (index, path) in paths {
        if let Some(saved) = resuming.take(now, index, path) {
            association.resume(path.remote, saved);
        }
    }
}

/// Saves what the controllers of an association have observed on their paths.
pub fn observe(now: Nanos, resuming: &mut Resuming, endpoint: &Endpoint, id: AssociationId) {
    let paths = endpoint.association(id).into_iter();
    for (id, entry) in paths.flat_map(|it| it.paths().iter()) {
        if let Some(state) = entry.careful_resume() {
            resuming.observe(now, id.0.into(), entry.path(), state);
        }
    }
}
