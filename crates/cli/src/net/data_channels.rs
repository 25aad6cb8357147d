//! `anabranch serve data-channels`: a test page, offers and answers over HTTP, and data channels
//! that echo every message.

use std::fmt::Display;
use std::sync::Arc;

use anabranch_datachannel::{
    BindError, ChannelOptions, Config, DataChannel, Payload, PeerConnection, Reliability,
};
use anabranch_explore::LimitedListener;
use anabranch_settings::counted;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::arguments::DataChannels;
use super::print::Printer;
use super::{Interrupts, SHUTDOWN_TIMEOUT};
use crate::failure::Failure;

const PAGE: &str = include_str!("data_channels.html");
/// Maximum size of an offer, bytes.
const MAX_OFFER: usize = 256 << 10;
/// Text of a message upon which this side closes the channel.
const CLOSE: &str = "/close";
/// Maximum number of characters of a label that are printed. The peer may choose 65,535 bytes, and
/// one line is printed per channel.
const MAX_LABEL: usize = 80;

/// State shared by all requests.
#[derive(Clone)]
struct Server {
    config: Config,
    printer: Printer,
    /// Permits for connections.
    room: Arc<Semaphore>,
}

/// Runs the server until it is interrupted.
pub async fn serve(arguments: DataChannels) -> Result<(), Failure> {
    let mut interrupts = Interrupts::new();
    let failed = |error| Failure::Net(format!("cannot listen at {}: {error}", arguments.http));
    let listener = TcpListener::bind(arguments.http).await.map_err(failed)?;
    let at = listener.local_addr().map_err(failed)?;
    let (printer, written) = Printer::stdout();
    printer.line(format!("listening: http://{at}/"))?;
    let server = Server {
        config: Config::default().with(|it| it.address = arguments.address),
        printer,
        room: Arc::new(Semaphore::new(arguments.connections.into())),
    };
    let routes = Router::new()
        .route("/", get(|| async { Html(PAGE) }))
        .route("/offer", post(accept))
        .layer(DefaultBodyLimit::max(MAX_OFFER))
        .with_state(server);
    tokio::select! {
        ended = axum::serve(LimitedListener::new(listener), routes) => ended.map_err(failed)?,
        () = interrupts.next() => {}
    }
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, written.wait()).await;
    Ok(())
}

/// Query parameters of an offer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfferQuery {
    /// Number of channels that this side opens.
    #[serde(default)]
    open: u16,
}

/// Refusal of an offer: HTTP status and reason.
struct Refusal(StatusCode, String);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, format!("{}\n", self.1)).into_response()
    }
}

impl From<BindError> for Refusal {
    fn from(error: BindError) -> Self {
        let status = match error {
            BindError::Accept(_) => StatusCode::BAD_REQUEST,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self(status, error.to_string())
    }
}

/// Returns true if the browser reports that the request comes from a page of another server. Such a
/// page could not read the answer, and each offer would occupy a connection until it times out.
fn is_of_another_page(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site");
    site.is_some_and(|site| site != "same-origin" && site != "none")
}

/// Handles an offer: creates the connection, and returns the answer.
async fn accept(
    State(server): State<Server>,
    Query(asked): Query<OfferQuery>,
    headers: HeaderMap,
    offer: String,
) -> Result<Response, Refusal> {
    if is_of_another_page(&headers) {
        let why = "the offer comes from a page of another server".to_owned();
        return Err(Refusal(StatusCode::FORBIDDEN, why));
    }
    let room = Arc::clone(&server.room).try_acquire_owned();
    let permit = room.map_err(|_| {
        let why = "there are as many connections as there may be".to_owned();
        Refusal(StatusCode::SERVICE_UNAVAILABLE, why)
    })?;
    let (peer, answer) = PeerConnection::accept(&offer, server.config.clone()).await?;
    let log = Log(server.printer.clone());
    tokio::spawn(async move {
        attend(log, peer, asked.open).await;
        drop(permit);
    });
    Ok(([(CONTENT_TYPE, "application/sdp")], answer).into_response())
}

/// Printer of log lines. Errors are ignored, because a server should continue without a reader.
#[derive(Clone)]
struct Log(Printer);

impl Log {
    fn say(&self, what: impl Display) {
        let _ = self.0.line(what.to_string());
    }
}

/// Serves one connection until it ends.
async fn attend(log: Log, peer: PeerConnection, open: u16) {
    for number in 0..open {
        match peer.open(ChannelOptions::new(format!("from the server {number}"))) {
            Ok(channel) => drop(tokio::spawn(echo(log.clone(), channel))),
            Err(error) => {
                // The remaining channels cannot be opened either. One line reports all of them,
                // because there may be 65,535.
                let left = open - number;
                log.say(format_args!(
                    "not opened: {}: {error}",
                    counted(left, "channel")
                ));
                break;
            }
        }
    }
    if peer.connected().await.is_ok() {
        let interleaved = match peer.is_interleaving() {
            true => ", messages are interleaved",
            false => "",
        };
        let checksums = match peer.sends_zero_checksums() {
            true => ", DTLS stands for SCTP's checksums",
            false => "",
        };
        log.say(format_args!("connection up{interleaved}{checksums}"));
    }
    while let Some(channel) = peer.incoming().await {
        tokio::spawn(echo(log.clone(), channel));
    }
    log.say(format_args!("connection ended: {}", peer.closed().await));
    for (reason, count) in peer.discards() {
        log.say(format_args!("  thrown away: {count}, {}", reason.name()));
    }
}

/// A label as it is printed: escaped and truncated.
fn shown(label: &str) -> String {
    match label.char_indices().nth(MAX_LABEL) {
        None => format!("{label:?}"),
        Some((end, _)) => format!("{:?}...", &label[..end]),
    }
}

/// Echoes every message, until either side closes.
async fn echo(log: Log, channel: DataChannel) {
    let (id, label) = (channel.id(), shown(channel.label()));
    log.say(format_args!("channel {id} {label} up"));
    let (mut messages, mut bytes) = (0_u64, 0);
    while let Some(message) = channel.recv().await {
        if message == Payload::from(CLOSE) {
            channel.close();
            continue;
        }
        messages += 1;
        bytes += message.len() as u64;
        if channel.send(message).await.is_err() {
            break;
        }
    }
    let given_up = match channel.options().reliability {
        Reliability::Reliable => String::new(),
        _ => format!(", {} given up", channel.abandoned()),
    };
    log.say(format_args!(
        "channel {id} {label} closed: {}, {}{given_up}",
        counted(messages, "message"),
        counted(bytes, "byte")
    ));
}
