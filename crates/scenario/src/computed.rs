//! Values of a spec that are derived from other values.

use std::ops::Deref;

/// A value that is derived from others. It is never written in a spec, and is ignored when two
/// specs are compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Computed<T>(pub T);

impl<T> PartialEq for Computed<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Deref for Computed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
