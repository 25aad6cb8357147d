//! The files that a spec names, such as traces. The engine opens none: whoever plans a spec hands in how one is read.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

type Read = dyn Fn(&str) -> Result<String, String> + Send + Sync;

/// How the files that a spec names are read, and what was read. By default none can be.
#[derive(Clone, Default)]
pub struct Files(Option<Arc<Inner>>);

struct Inner {
    read: Box<Read>,
    known: Mutex<BTreeMap<String, Result<String, String>>>,
}

impl Files {
    /// Files by their names as the spec writes them. Each is read once.
    pub fn new(read: impl Fn(&str) -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(Inner {
            read: Box::new(read),
            known: Mutex::default(),
        })))
    }

    /// These texts by their names, and no others.
    pub fn of(texts: BTreeMap<String, String>) -> Self {
        Self::new(move |name| {
            let text = texts.get(name).cloned();
            text.ok_or_else(|| "it was not kept with the spec".to_owned())
        })
    }

    /// The contents of a file.
    ///
    /// # Errors
    /// Why it cannot be read.
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

    /// All that was read, by name: what has to be kept with the spec, so that it can be planned again.
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
