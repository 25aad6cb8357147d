//! Decompressed pages of a Parquet file. The library supports some codecs in Rust. For others it
//! should read the pages as if they were not compressed, and they are decompressed here, in Rust as
//! well.

use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::bloom_filter::Sbbf;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::record::reader::RowIter;
use parquet::schema::types::Type;

use crate::spec_source::{MAX_FILE, too_large};

/// Metadata at the end of a file.
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
    pub fn new(file: Bytes, metadata: &'m RowGroupMetaData) -> Self {
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
        let codec = match column.compression() {
            Compression::ZSTD(_) => Codec::Zstd,
            Compression::BROTLI(_) => Codec::Brotli,
            _ => {
                let pages = SerializedPageReader::new(Arc::clone(&self.file), column, rows, None)?;
                return Ok(Box::new(pages));
            }
        };
        let plain = column.clone().into_builder();
        let plain = plain.set_compression(Compression::UNCOMPRESSED).build()?;
        let pages = SerializedPageReader::new(Arc::clone(&self.file), &plain, rows, None)?;
        Ok(Box::new(Pages { pages, codec }))
    }

    fn get_column_bloom_filter(&self, _: usize) -> Option<&Sbbf> {
        None
    }

    fn get_row_iter(&self, projection: Option<Type>) -> Result<RowIter<'_>> {
        RowIter::from_row_group(projection, self)
    }
}

/// Compression of the pages.
#[derive(Clone, Copy, Debug)]
enum Codec {
    Zstd,
    Brotli,
}

impl Codec {
    fn decompress(self, bytes: &[u8], into: &mut Vec<u8>) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        // A few bytes can expand to any size.
        let most = MAX_FILE + 1;
        let read = match self {
            Codec::Zstd => {
                let decoder = ruzstd::decoding::StreamingDecoder::new(bytes);
                let decoder = decoder.map_err(|error| ParquetError::External(Box::new(error)))?;
                decoder.take(most).read_to_end(into)
            }
            Codec::Brotli => brotli_decompressor::Decompressor::new(bytes, 4096)
                .take(most)
                .read_to_end(into),
        };
        let read = read.map_err(|error| ParquetError::External(Box::new(error)))?;
        if read as u64 == most {
            return Err(too_large().into());
        }
        Ok(())
    }

    fn page(self, page: Page) -> Result<Page> {
        let whole = |bytes: &Bytes, plain: usize| -> Result<Bytes> {
            let Some((levels, compressed)) = bytes.split_at_checked(plain) else {
                return Err(ParquetError::EOF("a page ends in its levels".into()));
            };
            let mut all = levels.to_vec();
            self.decompress(compressed, &mut all)?;
            Ok(all.into())
        };
        Ok(match page {
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                statistics,
            } => Page::DataPage {
                buf: whole(&buf, 0)?,
                num_values,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                statistics,
            },
            Page::DictionaryPage {
                buf,
                num_values,
                encoding,
                is_sorted,
            } => Page::DictionaryPage {
                buf: whole(&buf, 0)?,
                num_values,
                encoding,
                is_sorted,
            },
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls,
                num_rows,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed: true,
                statistics,
            } => {
                // The levels before the values are not compressed.
                let levels = def_levels_byte_len as usize + rep_levels_byte_len as usize;
                Page::DataPageV2 {
                    buf: whole(&buf, levels)?,
                    num_values,
                    encoding,
                    num_nulls,
                    num_rows,
                    def_levels_byte_len,
                    rep_levels_byte_len,
                    is_compressed: false,
                    statistics,
                }
            }
            plain @ Page::DataPageV2 { .. } => plain,
        })
    }
}

/// Pages of a column.
struct Pages {
    pages: SerializedPageReader<Bytes>,
    codec: Codec,
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.map(|page| self.codec.page(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
