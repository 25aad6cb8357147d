//! What the task and the handles of a connection share.

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

/// Messages that nobody has read, bytes: beyond it no more are taken, and the peer is held back.
const MAX_UNREAD: usize = 4 << 20;
/// What a message holds beside its payload, about, bytes.
const MESSAGE: usize = 64;
/// What a channel holds that nobody has taken, about, bytes: its inbox, and what wakes who reads it.
const INCOMING: usize = 320;

/// Memory of a channel that was not taken, about, bytes.
fn held_by(options: &ChannelOptions) -> usize {
    INCOMING + options.label.len() + options.protocol.len()
}

/// What a handle reads of its channel.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) messages: VecDeque<Payload>,
    /// The peer took it, or opened it.
    pub(super) opened: bool,
    pub(super) closed: bool,
    /// How often `bufferedAmount` fell to the low mark.
    pub(super) lows: u64,
    /// Messages of ours that were given up.
    pub(super) abandoned: u64,
    /// Wakes who waits for something of this channel.
    pub(super) news: Arc<Notify>,
}

/// Wakes who waits for something of the connection.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    /// The peer opened a channel.
    pub(super) incoming: Arc<Notify>,
    /// Channels can be used.
    pub(super) connected: Arc<Notify>,
    /// The connection ended.
    pub(super) closed: Arc<Notify>,
}

/// The connection, and what came of it.
#[derive(Debug)]
pub(super) struct State {
    pub(super) connection: Connection,
    pub(super) inboxes: BTreeMap<ChannelId, Inbox>,
    /// Channels of the peer that were not taken, with their options: they may have ended.
    incoming: VecDeque<(ChannelId, ChannelOptions)>,
    unread: usize,
    connected: bool,
    reason: Option<Closed>,
    news: News,
    /// Channels of which there is something new.
    touched: BTreeSet<ChannelId>,
    /// Of the connection there is something new.
    wakes: Vec<Arc<Notify>>,
}

impl State {
    pub(super) fn next_incoming(&mut self) -> Poll<Option<(ChannelId, ChannelOptions)>> {
        match self.incoming.pop_front() {
            Some(taken) => {
                self.unread -= held_by(&taken.1);
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

    /// The channel's next message; `None` once it is closed.
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

    /// Nobody reads this channel any more.
    pub(super) fn forget(&mut self, id: ChannelId) {
        if let Some(inbox) = self.inboxes.remove(&id) {
            let held = inbox.messages.iter().map(|it| it.len() + MESSAGE);
            self.unread -= held.sum::<usize>();
        }
    }

    /// Sorts what the connection tells, as long as there is room for messages; after its end all, which is what the core holds at
    /// most: whoever waits hears of the end, though nobody reads. What waits in the association until events are polled
    /// is taken, too: nothing else may come that would have it looked at.
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
        while let Some(id) = channels.poll_relieved() {
            self.touched.insert(id);
        }
    }

    /// Whom to wake, without the lock: for each thing that is new.
    fn take_wakes(&mut self) -> Vec<Arc<Notify>> {
        let mut wakes = std::mem::take(&mut self.wakes);
        let touched = std::mem::take(&mut self.touched).into_iter();
        let inboxes = touched.filter_map(|id| self.inboxes.get(&id));
        wakes.extend(inboxes.map(|inbox| Arc::clone(&inbox.news)));
        wakes
    }

    fn wake(&mut self, which: impl FnOnce(&News) -> &Arc<Notify>) {
        self.wakes.push(Arc::clone(which(&self.news)));
    }

    fn sort_channel(&mut self, event: ChannelEvent) {
        match event {
            ChannelEvent::Incoming(id) => {
                let inbox = self.inboxes.entry(id).or_default();
                inbox.opened = true;
                let options = self.connection.channels().options(id).cloned();
                // It is answered: its end is polled later.
                let options = options.unwrap_or_else(|| ChannelOptions::new(""));
                self.unread += held_by(&options);
                self.incoming.push_back((id, options));
                self.wake(|news| &news.incoming);
            }
            ChannelEvent::Opened(id) => self.inbox(id, |inbox| inbox.opened = true),
            ChannelEvent::Message(id, payload) => {
                let held = payload.len() + MESSAGE;
                // Of a channel whose handle is gone nothing is kept.
                if let Some(inbox) = self.inboxes.get_mut(&id) {
                    inbox.messages.push_back(payload);
                    self.unread += held;
                    self.touched.insert(id);
                }
            }
            ChannelEvent::BufferedAmountLow(id) => self.inbox(id, |inbox| inbox.lows += 1),
            // Nobody waits for it.
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
    /// Wakes the task: there may be something to send, or another time to wait for.
    wake: Arc<Notify>,
    pub(super) news: News,
}

impl Shared {
    pub(super) fn new(mut connection: Connection, origin: Instant) -> Self {
        connection.channels_mut().watch();
        let news = News::default();
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

    /// The instant of a time.
    pub(super) fn instant(&self, at: Nanos) -> Instant {
        self.origin + std::time::Duration::from_nanos(at)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses the state, without a change that anybody waits for.
    pub(super) fn with<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.lock())
    }

    /// Changes the state, and wakes who waits for what came of it.
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

    /// As [`Shared::change`] for a handle: the task has to look, too.
    pub(super) fn ask<T>(&self, change: impl FnOnce(&mut State, Nanos) -> T) -> T {
        let result = self.change(change);
        self.wake.notify_one();
        result
    }

    /// Waits until `ready` gives something, looking again whenever `news` wakes.
    pub(super) async fn wait<T>(
        &self,
        news: &Notify,
        mut ready: impl FnMut(&mut State) -> Poll<T>,
    ) -> T {
        loop {
            let notified = news.notified();
            tokio::pin!(notified);
            // Before looking, lest news between the look and the wait be missed.
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
        // There is room again: the association may have more.
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

/// What handles hold: when the last is gone, the connection is closed.
#[derive(Debug)]
pub(super) struct Held(pub(super) Arc<Shared>);

impl std::ops::Deref for Held {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.close();
    }
}
