//! The calling end of a flow whose transport is one connection, made when the flow starts.

use anabranch_sim::Agent;
use anabranch_transport::{Ecn, Nanos, Path, Transmit, Transport};
use bytes::{Bytes, BytesMut};

use super::{Feed, earlier};

/// What a transport adds: how it connects, what it takes from the workload, and what it tells.
pub trait Caller: 'static {
    /// Its connection.
    type Connection: Transport + 'static;

    /// Makes the connection; `None` where that failed, which the tally is told.
    fn connect(&mut self, now: Nanos) -> Option<Self::Connection>;

    /// Hands messages over while there is room, and closes after the last. Asks the feed even where there is no room, so that a
    /// deadline of it never stays behind.
    fn top_up(&mut self, now: Nanos, connection: &mut Self::Connection, feed: &mut Feed);

    /// Tells what has become of the connection since the last time.
    fn observe(&mut self, now: Nanos, connection: &mut Self::Connection, feed: &mut Feed);

    /// Takes a packet that came: it is the connection's, unless that travels in another.
    fn take(
        &mut self,
        connection: &mut Self::Connection,
        now: Nanos,
        path: Path,
        ecn: Ecn,
        datagram: Bytes,
    ) {
        connection.handle_datagram(now, path, ecn, datagram);
    }

    /// The next packet to send: the connection's, unless it travels in another.
    fn give(
        &mut self,
        connection: &mut Self::Connection,
        now: Nanos,
        out: &mut BytesMut,
    ) -> Option<Transmit> {
        connection.poll_transmit(now, out)
    }
}

/// Connects at its start time and sends its workload.
pub struct Calling<C: Caller> {
    caller: C,
    feed: Feed,
    connection: Option<C::Connection>,
}

impl<C: Caller> Calling<C> {
    /// A flow's calling end.
    pub fn new(caller: C, feed: Feed) -> Self {
        Self {
            caller,
            feed,
            connection: None,
        }
    }

    fn top_up(&mut self, now: Nanos) {
        if let Some(connection) = &mut self.connection {
            self.caller.top_up(now, connection, &mut self.feed);
        }
    }

    fn observe(&mut self, now: Nanos) {
        if let Some(connection) = &mut self.connection {
            self.caller.observe(now, connection, &mut self.feed);
        }
    }
}

impl<C: Caller> Agent for Calling<C> {
    fn start(&mut self, now: Nanos) {
        self.feed.start();
        self.connection = self.caller.connect(now);
        self.top_up(now);
    }

    fn stop(&mut self, now: Nanos) {
        self.feed.stop();
        self.top_up(now);
    }

    fn handle_datagram(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        if let Some(connection) = &mut self.connection {
            self.caller.take(connection, now, path, ecn, datagram);
        }
        self.observe(now);
    }

    fn handle_timeout(&mut self, now: Nanos) {
        if let Some(connection) = &mut self.connection {
            connection.handle_timeout(now);
        }
        self.observe(now);
    }

    fn poll_transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        self.top_up(now);
        let transmit = self.caller.give(self.connection.as_mut()?, now, out);
        if transmit.is_none() {
            self.observe(now);
        }
        transmit
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        let connection = self.connection.as_ref();
        let due = connection.and_then(Transport::poll_timeout);
        earlier(due, self.feed.deadline())
    }
}
