//! Empty library of the package. The command `anabranch` is its binary; the package's tests depend
//! on the library, so that they are built with all features.
