//! Decompression of the pages of a Parquet file. For codecs that the library does not support in
//! Rust, the pages are decompressed here, also in Rust, and then passed to the library as
//! uncompressed pages.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::bloom_filter::Sbbf;
use parquet::column::page::PageReader;
#[cfg(not(feature = "codecs"))]
use parquet::errors::ParquetError;
use parquet::errors::Result;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;

#[cfg(feature = "codecs")]
mod codec;

/// Reads the metadata at the end of a file.
pub(super) fn metadata(file: &Bytes) -> Result<ParquetMetaData> {
    let reader = SerializedFileReader::new(file.clone())?;
    Ok(reader.metadata().clone())
}

/// A row group of a file.
pub(super) struct Group<'m> {
    file: Arc<Bytes>,
    metadata: &'m RowGroupMetaData,
}

impl<'m> Group<'m> {
    pub(super) fn new(file: Bytes, metadata: &'m RowGroupMetaData) -> Self {
        Self {
            file: Arc::new(file),
            metadata,
        }
    }
}

impl RowGroupReader for Group<'_> {
    fn metadata(&self) -> &RowGroupMetaData {
        self.metadata
    }

    fn num_columns(&self) -> usize {
        self.metadata.num_columns()
    }

    fn get_column_page_reader(&self, index: usize) -> Result<Box<dyn PageReader>> {
        let column = self.metadata.column(index);
        let rows = usize::try_from(self.metadata.num_rows())?;
        let compression = column.compression();
        #[cfg(feature = "codecs")]
        if let Some(codec) = codec::Codec::of(compression) {
            let plain = column.clone().into_builder();
            let plain = plain.set_compression(Compression::UNCOMPRESSED).build()?;
            let pages = SerializedPageReader::new(Arc::clone(&self.file), &plain, rows, None)?;
            return Ok(Box::new(codec::Pages { pages, codec }));
        }
        #[cfg(not(feature = "codecs"))]
        if !matches!(compression, Compression::UNCOMPRESSED | Compression::SNAPPY) {
            return Err(ParquetError::General(format!(
                "it is compressed by {compression}, which is not compiled in; it needs the feature `codecs` of anabranch-lab or anabranch-cli: cargo install --locked --path crates/cli --features codecs"
            )));
        }
        let pages = SerializedPageReader::new(Arc::clone(&self.file), column, rows, None)?;
        Ok(Box::new(pages))
    }

    fn get_column_bloom_filter(&self, _: usize) -> Option<&Sbbf> {
        None
    }

    fn get_row_iter(&self, projection: Option<Type>) -> Result<RowIter<'_>> {
        RowIter::from_row_group(projection, self)
    }
}
