//! The files that a spec refers to, such as traces. The engine opens no files: the caller that
//! plans a spec supplies a function that reads them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

type Read = dyn Fn(&str) -> Result<String, String> + Send + Sync;

/// Reader of the files that a spec refers to, with a cache of those read so far. By default no file
/// can be read.
#[derive(Clone, Default)]
pub struct Files(Option<Arc<Inner>>);

struct Inner {
    read: Box<Read>,
    known: Mutex<BTreeMap<String, Result<String, String>>>,
}

impl Files {
    /// Creates a reader that calls `read` with the name of a file as written in the spec. It reads
    /// each file only once.
    pub fn new(read: impl Fn(&str) -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(Inner {
            read: Box::new(read),
            known: Mutex::default(),
        })))
    }

    /// Creates a reader for a fixed set of files, given as text by name.
    pub fn of(texts: BTreeMap<String, String>) -> Self {
        Self::new(move |name| {
            let text = texts.get(name).cloned();
            text.ok_or_else(|| "it was not kept with the spec".to_owned())
        })
    }

    /// Contents of the file `name`.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub fn text(&self, name: &str) -> Result<String, String> {
        let Some(inner) = &self.0 else {
            return Err("this spec cannot name files".to_owned());
        };
        let mut known = inner.known.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .entry(name.to_owned())
            .or_insert_with(|| (inner.read)(name))
            .clone()
    }

    /// All files read so far, as text by name. They must be stored with the spec, so that it can be
    /// planned again.
    pub fn all(&self) -> BTreeMap<String, String> {
        let Some(inner) = &self.0 else {
            return BTreeMap::new();
        };
        let known = inner.known.lock().unwrap_or_else(PoisonError::into_inner);
        let read = known.iter().filter_map(|(name, text)| {
            let text = text.as_ref().ok()?;
            Some((name.clone(), text.clone()))
        });
        read.collect()
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Files").field(&self.0.is_some()).finish()
    }
}
