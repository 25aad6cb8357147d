//! HTTP server for the page, its files, and its requests.

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use anabranch_scenario::diagnostic::SpecError;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, DefaultBodyLimit, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_core::Stream;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc};

use crate::auth::{self, Token};
use crate::connection_limit::{Admission, LimitedListener};
use crate::controls::{self, Control};
use crate::event_stream::{EventStream, ResponseLine};
use crate::ladder;
use crate::map;
use crate::run;
use crate::samples::{self, Csv};
use crate::session::{RunSelection, Session};

/// Maximum size of a request, bytes.
const MAX_REQUEST: usize = 64 << 10;

/// Number of panes that are displayed side by side.
const PANES: usize = 2;

/// Maximum number of response chunks that wait for the client.
const WAITING: usize = 16;

/// Files of the page: name, content type, contents.
const FILES: &[(&str, &str, &str)] = &[
    (
        "",
        "text/html; charset=utf-8",
        include_str!("../page/page.html"),
    ),
    (
        "page.css",
        "text/css; charset=utf-8",
        include_str!("../page/page.css"),
    ),
    ("page.js", SCRIPT, include_str!("../page/page.js")),
    ("state.js", SCRIPT, include_str!("../page/state.js")),
    ("controls.js", SCRIPT, include_str!("../page/controls.js")),
    ("charts.js", SCRIPT, include_str!("../page/charts.js")),
    ("ladder.js", SCRIPT, include_str!("../page/ladder.js")),
    ("words.js", SCRIPT, include_str!("../page/words.js")),
    (
        "plotly.js",
        SCRIPT,
        include_str!(concat!(env!("OUT_DIR"), "/plotly.min.js")),
    ),
];
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Headers of all responses. Inline styles are allowed, because plotly.js needs them.
const HEADERS: &[(&str, &str)] = &[
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
];

/// Slot of a pane, in which one run executes at a time. A new run cancels the previous one.
#[derive(Debug, Default)]
struct Slot {
    newest: Arc<AtomicU64>,
    busy: Arc<Mutex<()>>,
}

/// State shared by all requests.
#[derive(Debug)]
struct Shared {
    session: Session,
    runs: [Slot; PANES],
    ladders: [Slot; PANES],
    maps: [Slot; PANES],
    files: Slot,
}

/// A server that listens, and is ready to serve the page.
pub struct Server {
    listener: TcpListener,
    port: u16,
    token: Token,
    shared: Arc<Shared>,
}

impl Server {
    /// Listens on a port of the loopback interface; 0 selects a free port.
    ///
    /// # Errors
    /// The port is in use or not permitted; or the system provides no random bits.
    pub async fn bind(session: Session, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        Ok(Self {
            port: listener.local_addr()?.port(),
            listener,
            token: Token::random()?,
            shared: Arc::new(Shared {
                session,
                runs: Default::default(),
                ladders: Default::default(),
                maps: Default::default(),
                files: Slot::default(),
            }),
        })
    }

    /// URL of the page, including the token.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token.text())
    }

    /// Serves the page until an error occurs or the future is dropped.
    ///
    /// # Errors
    /// Any error of the listener.
    pub async fn serve(self) -> io::Result<()> {
        let path = |name: &str| format!("/{}/{name}", self.token.text());
        let mut app = Router::new();
        for &(name, kind, text) in FILES {
            let file = move || async move { ([(CONTENT_TYPE, kind)], text) };
            app = app.route(&path(name), get(file));
        }
        let app = app
            .route(&path("spec"), get(spec))
            .route(&path("controls"), post(controls))
            .route(&path("run"), post(run))
            .route(&path("ladder"), post(ladder))
            .route(&path("map"), post(map))
            .route(&path("samples.csv"), post(samples_csv))
            .with_state(self.shared)
            .layer(DefaultBodyLimit::max(MAX_REQUEST))
            .layer(from_fn_with_state((self.token, self.port), guard));
        let app = app.into_make_service_with_connect_info::<Admission>();
        axum::serve(LimitedListener::new(self.listener), app).await
    }
}

/// Middleware that rejects unauthorized requests and adds security headers.
async fn guard(
    State((token, port)): State<(Token, u16)>,
    ConnectInfo(admission): ConnectInfo<Admission>,
    request: Request,
    next: Next,
) -> Response {
    let checked = auth::check(&token, port, request.uri().path(), request.headers());
    let mut response = match checked {
        Ok(()) => {
            admission.admit();
            next.run(request).await
        }
        Err(refused) => (StatusCode::FORBIDDEN, refused.message()).into_response(),
    };
    for &(name, value) in HEADERS {
        let value = HeaderValue::from_static(value);
        response
            .headers_mut()
            .insert(HeaderName::from_static(name), value);
    }
    response
}

fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => ([(CONTENT_TYPE, "application/json")], bytes).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, (StatusCode, String)> {
    let read = serde_json::from_slice(body);
    read.map_err(|error| (StatusCode::BAD_REQUEST, format!("the request: {error}\n")))
}

fn of_pane(slots: &[Slot; PANES], pane: usize) -> Result<&Slot, (StatusCode, String)> {
    let slot = slots.get(pane);
    let wrong = || format!("the request: found pane {pane}; there are {PANES}\n");
    slot.ok_or_else(|| (StatusCode::BAD_REQUEST, wrong()))
}

#[derive(Serialize)]
struct About<'a> {
    name: &'a str,
    title: &'a str,
    experiments: &'a [crate::session::ExperimentSummary],
    /// Whether the spec has constellations, so that a map can be shown.
    map: bool,
}

/// Response with a description of the explored spec.
async fn spec(State(shared): State<Arc<Shared>>) -> Response {
    json(&About {
        name: &shared.session.name,
        title: &shared.session.title,
        experiments: &shared.session.experiments,
        map: shared.session.map,
    })
}

/// Response with the controls for a point of an experiment, and the values of the spec.
async fn controls(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let choice: RunSelection = match read(&body) {
        Ok(choice) => choice,
        Err(wrong) => return wrong.into_response(),
    };
    let found: Result<Vec<Control>, SpecError> = shared
        .session
        .single(&choice)
        .map(|single| controls::of(&single.root, &shared.session.choices));
    match found {
        Ok(controls) => json(&controls),
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

/// Executes a run; the response streams its samples.
async fn run(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let slot: Slots<run::RunRequest> = |shared, wanted| of_pane(&shared.runs, wanted.pane);
    answer(&shared, &body, JSON_LINES, slot, run::run)
}

/// Response with the packets of a flow in a time window.
async fn ladder(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let slot: Slots<ladder::LadderRequest> = |shared, wanted| of_pane(&shared.ladders, wanted.pane);
    answer(&shared, &body, JSON_LINES, slot, ladder::run)
}

/// Response with the maps of the constellations of a run.
async fn map(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let slot: Slots<map::MapRequest> = |shared, wanted| of_pane(&shared.maps, wanted.pane);
    answer(&shared, &body, "image/svg+xml", slot, map::run)
}

const JSON_LINES: &str = "application/x-ndjson";

/// Response with all samples of a run.
async fn samples_csv(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let kind = "text/csv; charset=utf-8";
    answer(
        &shared,
        &body,
        kind,
        |shared, _| Ok(&shared.files),
        samples_of,
    )
}

/// Writes all samples of the displayed probes of a run as CSV.
fn samples_of(session: &Session, wanted: &run::RunRequest, stream: &EventStream) {
    match run::planned(session, &wanted.choice) {
        Ok((_, mut plan)) => {
            let records = samples::to_draw(&plan.spec, plan.spec.world.duration.0);
            if let Err(error) = samples::put_in(&mut plan, &records) {
                return stream.refused(&error);
            }
            if let Err(error) = run::simulate(&plan, &mut Csv::new(stream.clone())) {
                stream.failed(&error);
            }
        }
        Err(error) => stream.refused(&error),
    }
}

/// Function that selects the slot of a request.
type Slots<T> = for<'a> fn(&'a Shared, &T) -> Result<&'a Slot, (StatusCode, String)>;

/// Executes work in its slot and streams its output as the response. The work has a separate
/// thread, because it may take long.
fn answer<T: DeserializeOwned + Send + 'static>(
    shared: &Arc<Shared>,
    body: &Bytes,
    kind: &'static str,
    slot: Slots<T>,
    work: fn(&Session, &T, &EventStream),
) -> Response {
    let wanted: T = match read(body) {
        Ok(wanted) => wanted,
        Err(wrong) => return wrong.into_response(),
    };
    let slot = match slot(shared, &wanted) {
        Ok(slot) => slot,
        Err(wrong) => return wrong.into_response(),
    };
    let ticket = slot.newest.fetch_add(1, Ordering::Relaxed) + 1;
    let (sender, receiver) = mpsc::channel(WAITING);
    let stream = EventStream::new(sender.clone(), Arc::clone(&slot.newest), ticket);
    let (busy, shared) = (Arc::clone(&slot.busy), Arc::clone(shared));
    tokio::spawn(async move {
        // Waits until the previous run has noticed that it was replaced.
        let alone = busy.lock_owned().await;
        if stream.check().is_err() {
            let _ = sender.send(ResponseLine::Superseded.bytes().into()).await;
            return;
        }
        tokio::task::spawn_blocking(move || {
            work(&shared.session, &wanted, &stream);
            drop(alone);
        });
    });
    let body = Body::from_stream(Pieces(receiver));
    ([(CONTENT_TYPE, kind)], body).into_response()
}

/// Stream of the chunks of a response.
struct Pieces(mpsc::Receiver<Bytes>);

impl Stream for Pieces {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|piece| piece.map(Ok))
    }
}
