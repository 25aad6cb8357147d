//! The files that a spec names, such as traces, found beside it.

use anabranch_engine::files::Files;

use crate::folder::Folder;

/// The files that a spec in this folder may name: by paths below it, or, where the folder is on the disk, absolute ones.
pub fn files(folder: &Folder) -> Files {
    let folder = folder.clone();
    Files::new(move |name| folder.read(name).map_err(|error| error.to_string()))
}
