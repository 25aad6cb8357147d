//! Request-response workload: a client sends a request, waits for the response, pauses, and sends
//! the next request.

use anabranch_settings::{Kind, KindEntry, NestedKind, idle_if, kind};
use anabranch_transport::Nanos;

use super::size::{self, Sizes};
use super::transfers::MAX_MESSAGE;
use super::{
    BoxedWorkload, COUNT, Context, Facts, Message, NextMessage, PAUSE, PeriodLength, Workload,
};
use crate::error::BuildError;
use crate::rng::Rng;

kind! {
    /// The parameters of [`RequestResponse`].
    struct RequestResponseConfig {
        /// Size of a request.
        request: NestedKind, size::SIZES;
        /// Size of an answer.
        response: NestedKind, size::SIZES;
        /// Time between an answer and the next request; the mean if `exponential`.
        think: Nanos = "0 s", PAUSE;
        /// Draw the times between an answer and the next request from an exponential distribution.
        /// Off: the times are constant.
        exponential: bool = false, Kind::Flag;
        /// Total number of requests. Default: unlimited.
        count: Option<u64> = none, COUNT;
        message: Option<usize> as MAX_MESSAGE;
    }
    idle {
        exponential: |it, _| idle_if(
            it.think == 0,
            "without `think`, the time that it is about",
        );
        message: |_, context: &Context| context.no_messages();
    }
    /// The source sends a request, the sink answers when the request is complete, and the source
    /// waits for `think` before the next request. There is one request at a time. A transfer is a
    /// request with its answer. Requires a transport that carries data in both directions.
    pub(super) static ENTRY: KindEntry<BoxedWorkload, Context> = "request-response", |config, context: Context| {
        let sizes = [size::make(&config.request)?, size::make(&config.response)?];
        let think = PeriodLength::new(config.think, config.exponential);
        let piece = config.message.unwrap_or(context.packet);
        let made = RequestResponse::new(sizes, think, piece, context.rng)?;
        Ok(Box::new(match config.count {
            Some(count) => made.limited_to(count),
            None => made,
        }))
    };
}

/// Workload of requests and responses in a closed loop: one request at a time.
pub struct RequestResponse {
    /// Size distributions of requests and of responses.
    sizes: [Box<dyn Sizes>; 2],
    think: PeriodLength,
    piece: usize,
    rng: Rng,
    left: Option<u64>,
    state: State,
}

/// State of the client between requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The next request can be sent.
    Ready,
    /// A request was sent, and its response is not complete.
    Waiting,
    /// The client pauses; the next request is due at this time.
    Thinking(Nanos),
}

impl RequestResponse {
    /// Requests and responses with the size distributions `sizes`, and a pause after each response.
    /// Sizes and pauses are drawn from `rng`.
    ///
    /// # Errors
    /// [`BuildError::Workload`] if `piece`, the maximum size of the messages that carry parts of a
    /// request or response, is 0.
    pub fn new(
        sizes: [Box<dyn Sizes>; 2],
        think: PeriodLength,
        piece: usize,
        rng: Rng,
    ) -> Result<Self, BuildError> {
        if piece == 0 {
            return Err(BuildError::Workload("messages of at least one byte"));
        }
        Ok(Self {
            sizes,
            think,
            piece,
            rng,
            left: None,
            state: State::Ready,
        })
    }

    /// Limits the workload to `requests` requests.
    #[must_use]
    pub fn limited_to(mut self, requests: u64) -> Self {
        self.left = Some(requests);
        self
    }
}

impl Workload for RequestResponse {
    fn next(&mut self, now: Nanos) -> NextMessage {
        let due = match self.state {
            State::Waiting => return NextMessage::Waiting,
            State::Thinking(until) if until > now => return NextMessage::At(until),
            State::Thinking(until) => until,
            State::Ready => now,
        };
        // `Done` closes the source, so it is returned only after the last response.
        if self.left == Some(0) {
            return NextMessage::Done;
        }
        self.left = self.left.map(|left| left - 1);
        self.state = State::Waiting;
        let [request, answer] = &mut self.sizes;
        let size = |sizes: &mut Box<dyn Sizes>, rng: &mut Rng| {
            usize::try_from(sizes.draw(rng)).unwrap_or(usize::MAX)
        };
        let asked = size(request, &mut self.rng);
        NextMessage::Now(Message {
            piece: Some(self.piece),
            answer: Some(size(answer, &mut self.rng)),
            ..Message::new(asked).due(due)
        })
    }

    fn answered(&mut self, now: Nanos) {
        if self.state == State::Waiting {
            let think = match self.left {
                // The last response is not followed by a pause.
                Some(0) => 0,
                _ => self.think.draw(&mut self.rng),
            };
            self.state = State::Thinking(now.saturating_add(think));
        }
    }

    fn facts(&self) -> Facts {
        let [[least, most], [least_answer, most_answer]] =
            [0, 1].map(|end: usize| self.sizes[end].range());
        Facts {
            sizes: [least.min(least_answer), most.max(most_answer)],
            piece: Some(self.piece as u64),
            answered: true,
            ..Facts::default()
        }
    }
}
