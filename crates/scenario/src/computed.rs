//! Values of a spec that follow from others.

use std::ops::Deref;

/// A value that follows from what a spec says: nobody writes it, and two specs are equal whether or
/// not it is known.
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
