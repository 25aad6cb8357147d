//! DATA that cannot be judged before a reset is settled (RFC 6525 §5.2.2 E2). It counts as not arrived, and may be dropped.

use anabranch_wire::Tsn;
use anabranch_wire::chunk::Data;
use bytes::Bytes;

/// Chunks that are held at most.
const MOST_CHUNKS: usize = 256;

/// DATA that waits, as far as there is room.
#[derive(Debug)]
pub(crate) struct HeldData {
    chunks: Vec<Data>,
    bytes: usize,
    most: usize,
}

impl HeldData {
    /// Of at most `most` bytes of user data.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            chunks: Vec::new(),
            bytes: 0,
            most,
        }
    }

    /// Keeps a copy of the chunk, which its datagram does not outlive, if there is room. Else it has to come again.
    pub(crate) fn keep(&mut self, data: &Data) {
        let length = data.user_data.len();
        let known = self.chunks.iter().any(|it| it.tsn == data.tsn);
        if known || self.chunks.len() == MOST_CHUNKS || self.bytes + length > self.most {
            return;
        }
        self.bytes += length;
        self.chunks.push(Data {
            user_data: Bytes::copy_from_slice(&data.user_data),
            ..data.clone()
        });
    }

    /// Takes all out, in the order of their TSNs.
    pub(crate) fn take(&mut self) -> Vec<Data> {
        self.bytes = 0;
        let mut chunks = std::mem::take(&mut self.chunks);
        if let Some(first) = chunks.first().map(|it| it.tsn) {
            let place = |it: &Data| it.tsn.distance_from(first) as i32;
            chunks.sort_by_key(place);
        }
        chunks
    }

    /// Takes those out that come before `tsn`.
    pub(crate) fn take_before(&mut self, tsn: Tsn) -> Vec<Data> {
        let all = self.take();
        let (before, after) = all.into_iter().partition(|it: &Data| it.tsn.lt(tsn));
        self.chunks = after;
        self.bytes = self.chunks.iter().map(|it| it.user_data.len()).sum();
        before
    }
}
