//! Wakeups and drops that are deferred until the lock of an endpoint is released, because waking or
//! dropping a waker may run any code, which may need that lock.

use std::sync::Arc;
use std::task::Waker;

use tokio::sync::Notify;

use crate::receipt::{CompletedReceipt, Receipts};
use crate::waiters::Waiters;

/// Notification targets of one association: its readers, writers and other waiting tasks.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// Tasks that wait for readable messages or events.
    pub readers: Waiters,
    pub writable: Notify,
    pub event: Notify,
    pub phase: Notify,
}

/// Bits that name groups of waiting tasks other than readers: tasks that wait for send buffer
/// space, and tasks that wait for an event or for the association to be established or closed.
pub(crate) const WRITERS: u8 = 2;
pub(crate) const EVENT: u8 = 4;
pub(crate) const PHASE: u8 = 8;
pub(crate) const ALL: u8 = WRITERS | EVENT | PHASE;

impl Signals {
    fn notify(&self, whom: u8) {
        let notifies = [
            (WRITERS, &self.writable),
            (EVENT, &self.event),
            (PHASE, &self.phase),
        ];
        for (it, notify) in notifies {
            if whom & it != 0 {
                notify.notify_waiters();
            }
        }
    }
}

/// Tasks to wake and values to drop after the lock is released.
#[derive(Debug, Default)]
pub(crate) struct DeferredWakeups {
    /// True if there is anything to do.
    pub any: bool,
    driver: Option<Waker>,
    /// The waker of a reader, stored without allocation because there is usually only one reader.
    reader: Option<Waker>,
    rare: Option<Box<RareWakeups>>,
}

/// Wakeups other than those of the driver and of one reader, allocated only when needed.
#[derive(Debug, Default)]
struct RareWakeups {
    /// Previous waker of the driver, which is dropped.
    former: Option<Waker>,
    acceptable: bool,
    idle: bool,
    readers: Vec<Waker>,
    others: Vec<(Arc<Signals>, u8)>,
    receipts: Vec<CompletedReceipt>,
    unanswered: Vec<Receipts>,
}

impl DeferredWakeups {
    /// Wakes the readers of an association.
    #[inline]
    pub(crate) fn wake_readers(&mut self, signals: &Signals) {
        let (first, more) = signals.readers.end_round();
        if !more.is_empty() || self.reader.is_some() {
            let more = more.into_iter().map(|(_, waker)| waker);
            self.rare().readers.extend(first.into_iter().chain(more));
        } else if first.is_some() {
            (self.any, self.reader) = (true, first);
        }
    }

    /// Wakes the groups `whom` of tasks that wait for an association.
    pub(crate) fn notify(&mut self, signals: &Arc<Signals>, whom: u8) {
        self.rare().others.push((Arc::clone(signals), whom));
    }

    /// Wakes all tasks that wait for an association.
    pub(crate) fn wake_all(&mut self, signals: &Arc<Signals>) {
        self.wake_readers(signals);
        self.notify(signals, ALL);
    }

    #[cold]
    fn rare(&mut self) -> &mut RareWakeups {
        self.any = true;
        self.rare.get_or_insert_default()
    }

    /// Wakes the driver.
    pub(crate) fn wake_driver(&mut self, waker: Waker) {
        (self.any, self.driver) = (true, Some(waker));
    }

    /// Drops a previous waker of the driver after the lock is released.
    pub(crate) fn drop_waker(&mut self, waker: Waker) {
        self.rare().former = Some(waker);
    }

    /// Notifies tasks in `accept`: an association waits to be accepted, or none will come any more.
    pub(crate) fn notify_acceptable(&mut self) {
        self.rare().acceptable = true;
    }

    /// Notifies tasks that wait for the end of the last association.
    pub(crate) fn notify_idle(&mut self) {
        self.rare().idle = true;
    }

    /// Completes receipts of messages with their results.
    pub(crate) fn answer(&mut self, receipts: impl IntoIterator<Item = CompletedReceipt>) {
        self.rare().receipts.extend(receipts);
    }

    /// Drops receipts, which notifies their owners.
    pub(crate) fn drop_receipts(&mut self, receipts: Receipts) {
        self.rare().unanswered.push(receipts);
    }

    /// Performs all deferred work; must be called without the lock. `acceptable` and `idle` are
    /// notified if tasks wait for an association to accept, or for the end of the last association.
    #[inline]
    pub(crate) fn run(self, acceptable: &Notify, idle: &Notify) {
        if let Some(driver) = self.driver {
            driver.wake();
        }
        if let Some(reader) = self.reader {
            reader.wake();
        }
        if let Some(rare) = self.rare {
            (*rare).run(acceptable, idle);
        }
    }
}

impl RareWakeups {
    #[cold]
    fn run(self, acceptable: &Notify, idle: &Notify) {
        self.readers.into_iter().for_each(Waker::wake);
        for (signals, whom) in self.others {
            signals.notify(whom);
        }
        self.receipts
            .into_iter()
            .for_each(CompletedReceipt::complete);
        if self.acceptable {
            acceptable.notify_one();
        }
        if self.idle {
            idle.notify_waiters();
        }
    }
}
