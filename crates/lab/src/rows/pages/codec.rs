//! Codecs that are decompressed here, because the library does not support them in Rust.

use std::io::Read;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::serialized_reader::SerializedPageReader;

use crate::spec_source::{MAX_FILE, too_large};

/// A codec for the pages of a column.
#[derive(Clone, Copy, Debug)]
pub(super) enum Codec {
    Zstd,
    Brotli,
}

impl Codec {
    /// The codec for a compression that the library does not support in Rust; `None` for all
    /// others.
    pub(super) fn of(compression: Compression) -> Option<Self> {
        match compression {
            Compression::ZSTD(_) => Some(Self::Zstd),
            Compression::BROTLI(_) => Some(Self::Brotli),
            _ => None,
        }
    }

    fn decompress(self, bytes: &[u8], into: &mut Vec<u8>) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        // Limited, because a few bytes can expand to any size.
        let most = MAX_FILE + 1;
        let read = match self {
            Self::Zstd => {
                let decoder = ruzstd::decoding::StreamingDecoder::new(bytes);
                let decoder = decoder.map_err(|error| ParquetError::External(Box::new(error)))?;
                decoder.take(most).read_to_end(into)
            }
            Self::Brotli => brotli_decompressor::Decompressor::new(bytes, 4096)
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

/// Reader of the pages of a column.
pub(super) struct Pages {
    pub pages: SerializedPageReader<Bytes>,
    pub codec: Codec,
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
