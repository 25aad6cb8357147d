//! Wakeups and drops that are deferred until the lock of an endpoint is released, because waking or
//! dropping a waker may run any code, which may need that lock.

use std::sync::Arc;
use std::task::Waker;

use tokio::sync::Notify;

use crate::receipt::{CompletedReceipt, Receipts};
use crate::waiters::Waiters;

/// Signals that wake the users of an association.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// Tasks that wait for readable messages or events.
    pub readers: Waiters,
    pub writable: Notify,
    pub event: Notify,
    pub phase: Notify,
}

/// Groups of users other than readers: tasks that wait for room to send, for an event, or for the
/// association to be established or closed.
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

/// Tasks to wake, and values to drop.
#[derive(Debug, Default)]
pub(crate) struct DeferredWakeups {
    /// The driver has work.
    pub any: bool,
    driver: Option<Waker>,
    /// Usually there is one reader, which needs no allocation.
    reader: Option<Waker>,
    rare: Option<Box<RareWakeups>>,
}

/// The rare part.
#[derive(Debug, Default)]
struct RareWakeups {
    /// The previous waker of the driver.
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

    /// Wakes other users of an association.
    pub(crate) fn notify(&mut self, signals: &Arc<Signals>, whom: u8) {
        self.rare().others.push((Arc::clone(signals), whom));
    }

    /// Wakes all waiting tasks.
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

    /// Drops a previous waker of the driver.
    pub(crate) fn drop_waker(&mut self, waker: Waker) {
        self.rare().former = Some(waker);
    }

    /// An association waits to be accepted, or none ever will.
    pub(crate) fn notify_acceptable(&mut self) {
        self.rare().acceptable = true;
    }

    /// The last association has ended.
    pub(crate) fn notify_idle(&mut self) {
        self.rare().idle = true;
    }

    /// Completes receipts of messages.
    pub(crate) fn answer(&mut self, receipts: impl IntoIterator<Item = CompletedReceipt>) {
        self.rare().receipts.extend(receipts);
    }

    /// Drops receipts, which notifies their owners.
    pub(crate) fn drop_receipts(&mut self, receipts: Receipts) {
        self.rare().unanswered.push(receipts);
    }

    /// Does everything, without the lock. `acceptable`, `idle`: notify the tasks that wait for an
    /// association to accept, and for the end of the last association.
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
