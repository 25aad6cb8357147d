//! What is taken out of the queue and not sent: messages that were not begun, and what is left of those that were.

use crate::scheduling::Discipline;

use super::{Fragment, Message, Queued, SendQueue, Started, Unsent};

impl Queued {
    /// The same, taken out of the queue of that stream.
    pub(super) fn unsent(self, stream: Option<u16>) -> Unsent {
        Unsent {
            stream,
            receipt: self.terms.and_then(|it| it.receipt),
            context: self.context,
            message: self.message,
        }
    }
}

impl Started {
    /// All that was not sent, as one piece.
    fn rest(self) -> Fragment {
        Fragment {
            stream: self.stream,
            ssn: self.ssn,
            mid: self.mid,
            fsn: self.fsn,
            ppid: self.message.ppid,
            unordered: self.message.unordered,
            beginning: self.untouched,
            ending: true,
            immediate: self.immediate,
            context: self.context,
            user_data: self.message.payload,
        }
    }
}

impl Unsent {
    /// A whole message.
    pub fn of(whole: Fragment) -> Self {
        Self {
            stream: Some(whole.stream),
            message: Message {
                ppid: whole.ppid,
                unordered: whole.unordered,
                payload: whole.user_data,
            },
            context: whole.context,
            receipt: None,
        }
    }
}

impl SendQueue {
    /// Takes out what is queued on streams from `streams` on, which the peer did not agree to.
    pub fn forget_streams_from(&mut self, streams: u16) -> Vec<Unsent> {
        let mut forgotten = Vec::new();
        for stream in self.scheduler.forget_from(streams) {
            let entry = self.streams.entry(stream);
            for queued in entry.messages.take_all() {
                let length = queued.message.payload.len();
                entry.bytes -= length;
                self.bytes -= length;
                forgotten.push(queued.unsent(Some(stream)));
            }
        }
        self.messages -= forgotten.len();
        self.take_turns_again();
        self.next = self.find_next();
        forgotten
    }

    /// Takes back the messages that were not begun.
    pub fn withdraw(&mut self) -> Vec<Unsent> {
        let mut withdrawn = self.forget_streams_from(0);
        for queued in self.spread.take().take_all() {
            self.bytes -= queued.message.payload.len();
            self.messages -= 1;
            withdrawn.push(queued.unsent(None));
        }
        withdrawn.extend(self.withdraw_held());
        self.scheduler.clear();
        self.take_turns_again();
        self.next = self.find_next();
        withdrawn
    }

    /// Takes out what is left of each message that was begun and is not at its end.
    pub fn take_begun_rests(&mut self) -> Vec<Fragment> {
        let mut rests = Vec::new();
        if let Some(started) = self.started.take() {
            self.forget_rest(&started);
            rests.push(started.rest());
            self.next = self.find_next();
        }
        for started in self.take_all_paused() {
            self.forget_rest(&started);
            rests.push(started.rest());
        }
        rests
    }

    fn forget_rest(&mut self, started: &Started) {
        let length = started.message.payload.len();
        self.bytes -= length;
        self.streams.entry(started.stream).bytes -= length;
        self.messages -= 1;
    }
}
