//! Files that a spec refers to, such as traces.

use std::path::Path;

use anabranch_engine::files::Files;

use crate::rows;
use crate::spec_source::Folder;

/// Access to the files that a spec in this folder may name: relative paths are below the folder;
/// absolute paths are allowed if the folder is on disk. A Parquet file (`.parquet`) is converted to
/// lines of text, with the column names in the first line.
pub fn files(folder: &Folder) -> Files {
    let folder = folder.clone();
    Files::new(move |name| {
        if let Some(text) = folder.kept(name) {
            return Ok(text);
        }
        if Path::new(name)
            .extension()
            .is_some_and(|it| it == "parquet")
        {
            let bytes = folder.bytes(name).map_err(|error| error.to_string())?;
            return rows::lines(bytes.into()).map_err(|error| error.to_string());
        }
        folder.read(name).map_err(|error| error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;

    #[test]
    fn a_parquet_file_is_the_lines_of_its_rows() {
        let columns: [(&str, ArrayRef); 3] = [
            (
                "time",
                Arc::new(Float64Array::from(vec![0.0, 0.000_01, 2.5])),
            ),
            ("size", Arc::new(Int64Array::from(vec![1000, 1, 65_536]))),
            (
                "stream",
                Arc::new(StringArray::from(vec![Some("3"), None, Some("0")])),
            ),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).expect("a schema");
        writer.write(&batch).expect("a batch");
        writer.close().expect("closed");
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("trace.parquet"), &file).expect("written");
        let files = files(&Folder::Disk(folder.path().to_owned()));
        assert_eq!(
            files.text("trace.parquet").as_deref(),
            Ok("time,size,stream\n0,1000,3\n0.00001,1,\n2.5,65536,0\n")
        );
        std::fs::write(folder.path().join("cut.parquet"), &file[..file.len() / 2]).expect("cut");
        let error = files.text("cut.parquet").expect_err("no whole file");
        assert!(error.contains("Parquet"), "{error}");
        assert!(files.text("none.parquet").is_err());
    }

    /// A Parquet file of a few thousand bytes can contain 300 MB of identical rows.
    #[test]
    fn a_small_file_does_not_stand_for_more_than_a_large_one_may_have() {
        let text = "1".repeat(3_000);
        let column: ArrayRef = Arc::new(StringArray::from(vec![text.as_str(); 100_000]));
        let batch = RecordBatch::try_from_iter([("time", column)]).expect("a column");
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).expect("a schema");
        writer.write(&batch).expect("a batch");
        writer.close().expect("closed");
        assert!(file.len() < 50_000, "{} bytes", file.len());
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("bomb.parquet"), &file).expect("written");
        let files = files(&Folder::Disk(folder.path().to_owned()));
        let error = files.text("bomb.parquet").expect_err("too large");
        assert!(error.contains("more than 256 MiB"), "{error}");
    }

    /// Reading must stop, because this file is endless.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_without_end_is_refused() {
        let files = files(&Folder::Disk("/".into()));
        let error = files.text("/dev/zero").expect_err("too large");
        assert!(error.contains("more than 256 MiB"), "{error}");
    }
}
