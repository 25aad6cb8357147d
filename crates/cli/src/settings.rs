//! `anabranch settings`: prints pages of the manual that are generated from declarations.

use std::io::{self, Write};

use anabranch_engine::kinds::Standard;
use anabranch_engine::manual;

use crate::failure::Failure;

/// A page of the manual: its name, and the function that generates it.
type Page = (&'static str, fn() -> String);

/// The pages that do not belong to a transport.
const PAGES: [Page; 2] = [("keys", manual::keys), ("metrics", manual::metrics)];

/// Prints the page of all settings, the part about one transport, or the page of keys or metrics.
pub fn settings(transport: Option<&str>) -> Result<(), Failure> {
    let text = match transport {
        None => manual::page(),
        Some(name) => {
            let kinds = Standard::default().transports.kinds().into_iter();
            let known = kinds.filter(|kind| kind.own().next().is_some());
            let kind = known.clone().find(|kind| kind.name == name);
            let page = PAGES.iter().find(|(known, _)| *known == name);
            match (kind, page) {
                (Some(kind), _) => manual::of(kind),
                (None, Some((_, page))) => page(),
                (None, None) => {
                    let pages = PAGES.iter().map(|(name, _)| *name);
                    let known = known.map(|kind| kind.name).chain(pages);
                    return Err(Failure::unknown("TRANSPORT", name, known));
                }
            }
        }
    };
    write!(io::stdout().lock(), "{text}")?;
    Ok(())
}
