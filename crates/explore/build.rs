//! Build script that extracts plotly.js from the crate that contains it, so that the program
//! contains only the script. The program serves the script itself, because the page must load
//! nothing from other hosts.

use std::path::Path;
use std::{env, fs};

use plotly::Plot;

const BEGIN: &str = "<script type=\"text/javascript\">";
const END: &str = "</script>";
/// Text at the start of the script.
const HEAD: &str = "plotly.js v";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Only the first script, plotly.js, is used; the second one is for formulas.
    let scripts = Plot::offline_js_sources();
    let script = scripts
        .split_once(BEGIN)
        .and_then(|(_, rest)| rest.split_once(END))
        .map(|(script, _)| script)
        .filter(|script| script.get(..200).is_some_and(|head| head.contains(HEAD)))
        .expect("the crate plotly carries plotly.js as its first script");
    let folder = env::var_os("OUT_DIR").expect("cargo names OUT_DIR");
    fs::write(Path::new(&folder).join("plotly.min.js"), script).expect("OUT_DIR can be written");
}
