//! `anabranch explore`: serves the interactive page of a spec on this machine, until Ctrl-C.

use std::io::{self, Write};

use anabranch_explore::{LoadedSpec, Server, Session};
use anabranch_lab::spec_files;

use crate::arguments::Explore;
use crate::failure::Failure;
use crate::lab_commands::{read_paper, read_spec};

/// Serves the page until Ctrl-C.
pub fn explore(arguments: &Explore) -> Result<(), Failure> {
    let found = match (&arguments.spec, &arguments.paper) {
        (Some(spec), _) => read_spec(spec)?,
        (None, Some(paper)) => read_paper(paper)?,
        (None, None) => return Err(Failure::Usage("found no spec".to_owned())),
    };
    let session = Session::new(LoadedSpec {
        file: found.file,
        text: found.text,
        files: spec_files::files(&found.folder),
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Net(format!("cannot start the runtime: {error}")))?;
    let ended = runtime.block_on(serve(session, arguments.port));
    // A run that is still active is no longer needed.
    runtime.shutdown_background();
    ended
}

async fn serve(session: Session, port: u16) -> Result<(), Failure> {
    let server = Server::bind(session, port).await.map_err(|error| {
        Failure::Net(format!(
            "cannot listen at port {port} of 127.0.0.1: {error}"
        ))
    })?;
    {
        let mut out = io::stdout().lock();
        writeln!(out, "open {}", server.url())?;
        writeln!(out, "Ctrl-C ends it")?;
        out.flush()?;
    }
    tokio::select! {
        served = server.serve() => served.map_err(|error| Failure::Net(format!("the server failed: {error}"))),
        ended = tokio::signal::ctrl_c() => ended.map_err(|error| Failure::Net(format!("cannot listen to signals: {error}"))),
    }
}
