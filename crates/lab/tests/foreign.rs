//! Parquet files that polars and pyarrow have written with each codec. `parquet/make.py` generates
//! them.

use std::path::Path;

use anabranch_lab::spec_files::files;
use anabranch_lab::spec_source::Folder;

#[test]
fn files_of_every_codec_have_the_same_rows() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parquet");
    let files = files(&Folder::Disk(folder.clone()));
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_string_lossy();
        if !name.ends_with(".parquet") {
            continue;
        }
        let expected = match &*name {
            "duration.parquet" => "time,rate_mbps\n0 ms,20\n5 ms,8\n10 ms,4\n",
            _ => "time_ms,size,stream\n0,100,0\n5,,700\n10,300,\n15,100,1\n",
        };
        let text = files.text(&name);
        assert_eq!(text.as_deref(), Ok(expected), "{name}");
        seen += 1;
    }
    assert_eq!(seen, 14);
}
