//! The command `anabranch` is the binary of this package. The library is empty: the package's tests depend on it, so that they are built with
//! all features.
