//! Takes plotly.js out of the crate that carries it, so that the program holds the script and nothing of that crate. The page is
//! handed the script by the program itself: nothing comes from elsewhere at run time.

use std::path::Path;
use std::{env, fs};

use plotly::Plot;

const BEGIN: &str = "<script type=\"text/javascript\">";
const END: &str = "</script>";
/// What the script says of itself.
const HEAD: &str = "plotly.js v";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The first script is plotly.js; the second, for formulas, is not wanted.
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
