//! Client end of a flow whose transport is a single connection, which is opened when the flow
//! starts.

use anabranch_sim::Agent;
use anabranch_transport::{Ecn, Nanos, Path, Transmit, Transport};
use bytes::{Bytes, BytesMut};

use super::{Feed, earlier};

/// The transport-specific part of a client: connecting, sending the workload, and reporting.
pub trait ClientTransport: 'static {
    /// Type of the connection.
    type Connection: Transport + 'static;

    /// Opens the connection. Returns `None` if it fails; the failure is recorded in the flow's
    /// statistics.
    fn connect(&mut self, now: Nanos) -> Option<Self::Connection>;

    /// Passes messages to the connection while it has buffer space, and closes it after the last
    /// message. The feed must be polled even without buffer space, so that no deadline of the feed
    /// stays in the past.
    fn top_up(&mut self, now: Nanos, connection: &mut Self::Connection, feed: &mut Feed);

    /// Reports the progress of the connection since the last call.
    fn observe(&mut self, now: Nanos, connection: &mut Self::Connection, feed: &mut Feed);

    /// Processes a received packet in the connection, or in the layer that encapsulates it.
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

    /// Returns the next packet to send from the connection, or from the layer that encapsulates it.
    fn give(
        &mut self,
        connection: &mut Self::Connection,
        now: Nanos,
        out: &mut BytesMut,
    ) -> Option<Transmit> {
        connection.poll_transmit(now, out)
    }
}

/// Client agent that connects at its start time and sends its workload.
pub struct Client<C: ClientTransport> {
    caller: C,
    feed: Feed,
    connection: Option<C::Connection>,
}

impl<C: ClientTransport> Client<C> {
    /// Creates the client end of a flow.
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

impl<C: ClientTransport> Agent for Client<C> {
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
