//! Empty library of the package, whose binary is the command `anabranch`. The tests of the package
//! depend on this library, so that they are built with all features.
