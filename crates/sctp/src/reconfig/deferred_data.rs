//! Received DATA that cannot be processed before a reset is complete (RFC 6525 §5.2.2 E2). The
//! deferred DATA is not acknowledged, so that it may be dropped.

use anabranch_wire::Tsn;
use anabranch_wire::chunk::Data;
use anabranch_wire::extension::IData;
use bytes::Bytes;

/// Maximum number of deferred chunks.
const MAX_CHUNKS: usize = 256;

/// A DATA or I-DATA chunk.
#[derive(Clone, Debug)]
pub(crate) enum UserChunk {
    Data(Data),
    IData(IData),
}

impl UserChunk {
    fn tsn(&self) -> Tsn {
        match self {
            Self::Data(data) => data.tsn,
            Self::IData(data) => data.tsn,
        }
    }

    fn user_data(&mut self) -> &mut Bytes {
        match self {
            Self::Data(data) => &mut data.user_data,
            Self::IData(data) => &mut data.user_data,
        }
    }
}

/// Deferred DATA, bounded in chunks and bytes.
#[derive(Debug)]
pub(crate) struct DeferredData {
    chunks: Vec<UserChunk>,
    bytes: usize,
    most: usize,
}

impl DeferredData {
    /// Empty queue for at most `most` bytes of user data.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            chunks: Vec::new(),
            bytes: 0,
            most,
        }
    }

    /// Stores a copy of the chunk, so that its packet can be freed. A chunk that does not fit is
    /// dropped, and the peer will retransmit it.
    pub(crate) fn keep(&mut self, mut chunk: UserChunk) {
        let tsn = chunk.tsn();
        let user_data = chunk.user_data();
        let length = user_data.len();
        let known = self.chunks.iter().any(|it| it.tsn() == tsn);
        if known || self.chunks.len() == MAX_CHUNKS || self.bytes + length > self.most {
            return;
        }
        self.bytes += length;
        *user_data = Bytes::copy_from_slice(user_data);
        self.chunks.push(chunk);
    }

    /// Removes and returns all chunks, in the order of their TSNs.
    pub(crate) fn take(&mut self) -> Vec<UserChunk> {
        self.bytes = 0;
        let mut chunks = std::mem::take(&mut self.chunks);
        if let Some(first) = chunks.first().map(UserChunk::tsn) {
            let place = |it: &UserChunk| it.tsn().distance_from(first) as i32;
            chunks.sort_by_key(place);
        }
        chunks
    }

    /// Removes and returns the chunks with TSNs before `tsn`.
    pub(crate) fn take_before(&mut self, tsn: Tsn) -> Vec<UserChunk> {
        let all = self.take();
        let (before, after) = all.into_iter().partition(|it: &UserChunk| it.tsn().lt(tsn));
        self.chunks = after;
        let kept = self.chunks.iter_mut();
        self.bytes = kept.map(|it| it.user_data().len()).sum();
        before
    }
}
