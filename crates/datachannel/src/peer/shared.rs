//! State shared by the task and the handles of a connection.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Instant;

use anabranch_transport::Nanos;
use tokio::sync::Notify;

use crate::channel::{ChannelId, ChannelOptions, Payload};
use crate::channels::{ChannelEvent, OpenError};
use crate::close::Closed;
use crate::connection::{Connection, Event};

/// Limit on unread messages, bytes. While it is exceeded, no more messages are read from the
/// association, and the receive window slows down the peer.
const MAX_UNREAD: usize = 4 << 20;
/// Approximate memory of a message besides its payload, bytes.
const MESSAGE: usize = 64;
/// Approximate memory of a channel that was not accepted yet (its inbox and waker), bytes.
const INCOMING: usize = 320;

/// Approximate memory of a channel that was not accepted yet, with its names, bytes.
fn memory_of(options: &ChannelOptions) -> usize {
    INCOMING + options.label.len() + options.protocol.len()
}

/// State of a channel for its handle.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) messages: VecDeque<Payload>,
    /// True if the peer has acknowledged or opened the channel.
    pub(super) opened: bool,
    pub(super) closed: bool,
    /// Number of times that `bufferedAmount` fell to the low threshold.
    pub(super) lows: u64,
    /// Number of abandoned messages of this end.
    pub(super) abandoned: u64,
    /// Notified when the state of this channel changes.
    pub(super) news: Arc<Notify>,
}

/// Notifications about changes of the connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Notifiers {
    /// Notified when the peer opens a channel.
    pub(super) incoming: Arc<Notify>,
    /// Notified when the connection is established.
    pub(super) connected: Arc<Notify>,
    /// Notified when the connection has ended.
    pub(super) closed: Arc<Notify>,
}

/// A connection, and its events sorted by channel.
#[derive(Debug)]
pub(super) struct State {
    pub(super) connection: Connection,
    pub(super) inboxes: BTreeMap<ChannelId, Inbox>,
    /// Channels of the peer that were not accepted yet. Their options are stored, because the
    /// channels may be closed before they are accepted.
    incoming: VecDeque<(ChannelId, ChannelOptions)>,
    unread: usize,
    connected: bool,
    reason: Option<Closed>,
    news: Notifiers,
    /// Channels whose state has changed since the last notification.
    touched: BTreeSet<ChannelId>,
    /// Pending notifications of the connection.
    wakes: Vec<Arc<Notify>>,
}

impl State {
    pub(super) fn next_incoming(&mut self) -> Poll<Option<(ChannelId, ChannelOptions)>> {
        match self.incoming.pop_front() {
            Some(taken) => {
                self.unread -= memory_of(&taken.1);
                Poll::Ready(Some(taken))
            }
            None if self.reason.is_some() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    pub(super) fn connected(&mut self) -> Poll<Result<(), Closed>> {
        match &self.reason {
            _ if self.connected => Poll::Ready(Ok(())),
            Some(reason) => Poll::Ready(Err(reason.clone())),
            None => Poll::Pending,
        }
    }

    pub(super) fn reason(&mut self) -> Poll<Closed> {
        self.reason.clone().map_or(Poll::Pending, Poll::Ready)
    }

    /// The channel's next message; `None` after the channel was closed.
    pub(super) fn next_message(&mut self, id: ChannelId) -> Poll<Option<Payload>> {
        let Some(inbox) = self.inboxes.get_mut(&id) else {
            return Poll::Ready(None);
        };
        match inbox.messages.pop_front() {
            Some(message) => {
                self.unread -= message.len() + MESSAGE;
                Poll::Ready(Some(message))
            }
            None if inbox.closed => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    /// Removes the state of a channel whose handle was dropped.
    pub(super) fn forget(&mut self, id: ChannelId) {
        if let Some(inbox) = self.inboxes.remove(&id) {
            let held = inbox.messages.iter().map(|it| it.len() + MESSAGE);
            self.unread -= held.sum::<usize>();
        }
    }

    /// Sorts the events of the connection while there is space for messages. After its end all
    /// events are sorted, even if messages are unread, so that waiting tasks are notified of the
    /// end; the core limits their number. Also reads messages that stay in the association until
    /// events are polled, because perhaps no further input arrives.
    pub(super) fn sort(&mut self, now: Nanos) {
        loop {
            let held_back = self.connection.is_held_back();
            while (self.unread < MAX_UNREAD || self.connection.is_closed())
                && let Some(event) = self.connection.poll_event()
            {
                match event {
                    Event::Connected => {
                        self.connected = true;
                        self.wake(|news| &news.connected);
                    }
                    Event::Closed(reason) => {
                        self.reason = Some(reason);
                        self.wake(|news| &news.connected);
                        self.wake(|news| &news.incoming);
                        self.wake(|news| &news.closed);
                    }
                    Event::Channel(event) => self.sort_channel(event),
                }
            }
            if !held_back || self.connection.is_held_back() {
                break;
            }
            self.connection.resume(now);
        }
        let channels = self.connection.channels_mut();
        while let Some(id) = channels.poll_writable() {
            self.touched.insert(id);
        }
    }

    /// Removes the notifications for all changes, which should be sent after the lock is released.
    fn take_wakes(&mut self) -> Vec<Arc<Notify>> {
        let mut wakes = std::mem::take(&mut self.wakes);
        let touched = std::mem::take(&mut self.touched).into_iter();
        let inboxes = touched.filter_map(|id| self.inboxes.get(&id));
        wakes.extend(inboxes.map(|inbox| Arc::clone(&inbox.news)));
        wakes
    }

    fn wake(&mut self, which: impl FnOnce(&Notifiers) -> &Arc<Notify>) {
        self.wakes.push(Arc::clone(which(&self.news)));
    }

    fn sort_channel(&mut self, event: ChannelEvent) {
        match event {
            ChannelEvent::Incoming(id) => {
                let inbox = self.inboxes.entry(id).or_default();
                inbox.opened = true;
                let options = self.connection.channels().options(id).cloned();
                // The options exist, because the end of the channel is polled later.
                let options = options.unwrap_or_else(|| ChannelOptions::new(""));
                self.unread += memory_of(&options);
                self.incoming.push_back((id, options));
                self.wake(|news| &news.incoming);
            }
            ChannelEvent::Opened(id) => self.inbox(id, |inbox| inbox.opened = true),
            ChannelEvent::Message(id, payload) => {
                let held = payload.len() + MESSAGE;
                // Dropped if the handle of the channel was dropped.
                if let Some(inbox) = self.inboxes.get_mut(&id) {
                    inbox.messages.push_back(payload);
                    self.unread += held;
                    self.touched.insert(id);
                }
            }
            ChannelEvent::BufferedAmountLow(id) => self.inbox(id, |inbox| inbox.lows += 1),
            // No task waits for abandoned messages, so none is notified.
            ChannelEvent::Abandoned(id) => {
                if let Some(inbox) = self.inboxes.get_mut(&id) {
                    inbox.abandoned += 1;
                }
            }
            ChannelEvent::Closed(id) => self.inbox(id, |inbox| inbox.closed = true),
        }
    }

    fn inbox(&mut self, id: ChannelId, change: impl FnOnce(&mut Inbox)) {
        if let Some(inbox) = self.inboxes.get_mut(&id) {
            change(inbox);
            self.touched.insert(id);
        }
    }
}

/// A connection, its task and its handles.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    origin: Instant,
    /// Wakes the connection's task, because there may be data to send or an earlier deadline.
    wake: Arc<Notify>,
    pub(super) news: Notifiers,
}

impl Shared {
    pub(super) fn new(mut connection: Connection, origin: Instant) -> Self {
        connection.channels_mut().report_writable();
        let news = Notifiers::default();
        Self {
            state: Mutex::new(State {
                connection,
                inboxes: BTreeMap::new(),
                incoming: VecDeque::new(),
                unread: 0,
                connected: false,
                reason: None,
                news: news.clone(),
                touched: BTreeSet::new(),
                wakes: Vec::new(),
            }),
            origin,
            wake: Arc::new(Notify::new()),
            news,
        }
    }

    pub(super) fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    pub(super) fn now(&self) -> Nanos {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Converts a time to an instant.
    pub(super) fn instant(&self, at: Nanos) -> Instant {
        self.origin + std::time::Duration::from_nanos(at)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the state. Must not be used for changes that tasks wait for.
    pub(super) fn with<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.lock())
    }

    /// Changes the state, and wakes the tasks that wait for such a change.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State, Nanos) -> T) -> T {
        let now = self.now();
        let mut state = self.lock();
        let result = change(&mut state, now);
        state.sort(now);
        let wakes = state.take_wakes();
        drop(state);
        wakes.iter().for_each(|it| it.notify_waiters());
        result
    }

    /// Like [`Shared::change`], for a handle: wakes the connection's task too.
    pub(super) fn ask<T>(&self, change: impl FnOnce(&mut State, Nanos) -> T) -> T {
        let result = self.change(change);
        self.wake.notify_one();
        result
    }

    /// Waits until `ready` returns a value. Checks again after each notification by `news`.
    pub(super) async fn wait<T>(
        &self,
        news: &Notify,
        mut ready: impl FnMut(&mut State) -> Poll<T>,
    ) -> T {
        loop {
            let notified = news.notified();
            tokio::pin!(notified);
            // Registered before the check, because a notification between check and wait would
            // otherwise be lost.
            notified.as_mut().enable();
            if let Poll::Ready(result) = self.look(&mut ready) {
                return result;
            }
            notified.await;
        }
    }

    fn look<T>(&self, ready: &mut impl FnMut(&mut State) -> Poll<T>) -> Poll<T> {
        let now = self.now();
        let mut state = self.lock();
        let full = state.unread >= MAX_UNREAD;
        let result = ready(&mut state);
        // There is space again, and the association may have more messages.
        if full && state.unread < MAX_UNREAD {
            state.sort(now);
            state.connection.resume(now);
            state.sort(now);
            let wakes = state.take_wakes();
            drop(state);
            wakes.iter().for_each(|it| it.notify_waiters());
            self.wake.notify_one();
        }
        result
    }

    pub(super) fn open(&self, options: ChannelOptions) -> Result<ChannelId, OpenError> {
        self.ask(|state, now| {
            let id = state.connection.open(now, options)?;
            state.inboxes.insert(id, Inbox::default());
            Ok(id)
        })
    }

    pub(super) fn close(&self) {
        self.ask(|state, now| state.connection.close(now));
    }
}

/// Handle of a connection, which is closed when the last such handle is dropped.
#[derive(Debug)]
pub(super) struct SharedHandle(pub(super) Arc<Shared>);

impl std::ops::Deref for SharedHandle {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Drop for SharedHandle {
    fn drop(&mut self) {
        self.0.close();
    }
}
