//! Spans of `tracing`: log entries contain their endpoint and association.

mod common;

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use anabranch_net::Config;
use common::{bounded, pair, without_timers};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// A subscriber that records spans with their parents, and events with their spans.
#[derive(Clone, Default)]
struct Log(Arc<Lines>);

#[derive(Default)]
struct Lines {
    last: AtomicU64,
    /// Each span as `name{fields}`, after the text of its parent.
    spans: Mutex<Vec<String>>,
    events: Mutex<Vec<String>>,
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!("{}={value:?} ", field.name());
    }
}

impl Log {
    fn name_of(&self, parent: Option<&Id>) -> String {
        let spans = self.0.spans.lock().expect("no panic");
        parent.map_or(String::new(), |id| {
            spans[id.into_u64() as usize - 1].clone()
        })
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("anabranch_net")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut text = Text(self.name_of(attributes.parent()));
        text.0 += attributes.metadata().name();
        text.0 += "{";
        attributes.record(&mut text);
        text.0 = text.0.trim_end().to_owned() + "}/";
        self.0.spans.lock().expect("no panic").push(text.0);
        Id::from_u64(self.0.last.fetch_add(1, Ordering::SeqCst) + 1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(self.name_of(event.parent()));
        event.record(&mut text);
        self.0.events.lock().expect("no panic").push(text.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn log_events_name_their_association() {
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).expect("the only one of this program");
    bounded(async move {
        let (client, server) = pair(without_timers(Config::default())).await;
        assert!(!client.span().is_disabled());
        client.shutdown().await.expect("graceful");
        server.closed().await;
        let events = log.0.events.lock().expect("no panic").clone();
        let of = |what: &str| -> Vec<String> {
            let found = events.iter().filter(|line| line.contains(what));
            found.cloned().collect()
        };
        for line in of("association up").iter().chain(&of("association ended")) {
            assert!(line.starts_with("endpoint{port="), "{line}");
            assert!(line.contains("}/association{id=0.0}/"), "{line}");
        }
        assert_eq!(of("association up").len(), 2, "{events:#?}");
        assert_eq!(of("association ended").len(), 2, "{events:#?}");
        assert_eq!(of("endpoint bound").len(), 2, "{events:#?}");
    });
}
