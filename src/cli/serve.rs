//! `portcullis serve`: load, listen, decide, reload, end.

mod end;
mod health;
mod reload;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;

use portcullis::admin::{self, Admin, Hosts, Readiness};
use portcullis::config::reload::{Board, Contents};
use portcullis::config::{self, Loaded, Serving};
use portcullis::extproc::listen::{self, Listener};
use portcullis::extproc::service::Service;
use portcullis::identity::KeyStores;
use portcullis::telemetry::audit::Audit;
use portcullis::telemetry::counters::{Counters, Sample};
use portcullis::telemetry::log;

use end::Signals;
use reload::Reloader;

/// How long streams that were refused at the end may take to be gone before the process is.
const LAST: Duration = Duration::from_secs(1);
/// How long the audit may take to be written at the end.
const FLUSH: Duration = Duration::from_secs(2);

/// Options of `serve`.
#[derive(Args)]
pub struct ServeArgs {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// The configuration has faults, an address cannot be bound, or the transport fails.
pub fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    log::start();
    let keys = KeyStores::new();
    let Loaded { serving, faults, warnings, files } = config::load(&args.config, &keys);
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    let Some(serving) = serving else {
        for fault in &faults {
            eprintln!("{fault}");
        }
        anyhow::bail!("{} faults in the configuration; nothing is served", faults.len());
    };
    let contents = Contents::read(files.iter().map(PathBuf::as_path));
    let mut builder = if serving.worker_threads > 1 {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(serving.worker_threads);
        builder
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = builder.enable_all().build().context("cannot start the runtime")?;
    let served = runtime.block_on(serve(serving, keys, &args.config, contents));
    // Streams that are still open are cut: Envoy refuses or ends what they belong to. Their audit records are written yet.
    runtime.shutdown_timeout(if served.is_ok() { LAST } else { Duration::ZERO });
    served?.flush();
    Ok(ExitCode::SUCCESS)
}

/// What is done when nobody is served any more: telemetry goes last, so that it tells of everything.
struct Rest {
    writer: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
    board: Arc<Board>,
    definitions: Vec<Sample>,
    /// Told twice to end: nothing is waited for.
    at_once: bool,
}

impl Rest {
    fn flush(self) {
        if self.at_once {
            return;
        }
        // Every audit handle is gone by now, so the writer ends with its queue, unless nobody reads what it writes.
        if let Some(writer) = self.writer {
            let due = Instant::now() + FLUSH;
            while !writer.is_finished() && Instant::now() < due {
                std::thread::sleep(Duration::from_millis(5));
            }
            if !writer.is_finished() {
                tracing::warn!("audit records are still queued after {FLUSH:?}; they are lost");
            }
        }
        for sample in self.counters.samples().into_iter().chain(self.board.samples()).chain(self.definitions) {
            tracing::info!(name = sample.name, labels = ?sample.labels, value = sample.value, "counter");
        }
    }
}

async fn serve(serving: Serving, keys: KeyStores, config: &Path, contents: Contents) -> anyhow::Result<Rest> {
    // Before anything is announced, so that no signal finds nobody.
    let signals = Signals::new().context("cannot take signals")?;
    let started = reload::Started::of(&serving);
    let Serving { address, tls, admin, snapshot, kept, max_streams, audit, drain, .. } = serving;
    let snapshot = Arc::new(snapshot);
    let counters = Arc::new(Counters::new(kept.names().to_vec()));
    let sink: Option<Box<dyn std::io::Write + Send>> = audit.then(|| Box::new(std::io::stdout()) as _);
    let (audit, writer) = Audit::start(sink, Arc::clone(&counters)).context("cannot start the audit writer")?;
    let largest = started.largest_request();
    let listener = Listener::bind(&address).await.with_context(|| format!("cannot listen on {address}"))?;
    let admin_listener = match &admin {
        Some(admin) => {
            let bound = TcpListener::bind(admin.address).await;
            Some(bound.with_context(|| format!("cannot listen on {} (listen.admin)", admin.address))?)
        }
        None => None,
    };
    let service =
        Service::new(Arc::clone(&snapshot), audit, Arc::clone(&counters), max_streams).context("no random bytes")?;
    let board = Arc::new(Board::new(contents.digest()));
    let drain = Arc::new(Mutex::new(drain));
    let Signals { hangups, mut ends } = signals;
    reload::follow(&snapshot, None);
    let reloader = Reloader {
        config: config.to_owned(),
        keys: Arc::new(keys),
        service: service.clone(),
        counters: Arc::clone(&counters),
        board: Arc::clone(&board),
        drain: Arc::clone(&drain),
        started,
        kept,
    };
    tokio::spawn(reloader.run(contents, hangups));
    tracing::info!(%address, "serving");
    let readiness = Arc::new(Readiness::new(service.clone()));
    if let (Some(listen), Some(listener)) = (admin, admin_listener) {
        let (counters, board, asked) = (Arc::clone(&counters), Arc::clone(&board), service.clone());
        let admin = Admin {
            hosts: Hosts::new(&listen.hosts),
            readiness: Arc::clone(&readiness),
            board: Arc::clone(&board),
            service: service.clone(),
            metrics: Box::new(move || admin::prometheus(&samples(&counters, &board, &asked))),
        };
        tracing::info!(address = %listen.address, "the admin listener serves");
        tokio::spawn(admin::serve(listener, Arc::new(admin)));
    }
    let (reporter, health) = tonic_health::server::health_reporter();
    let health_of = health::Health::start(reporter, readiness).await;
    let (close, closed) = tokio::sync::oneshot::channel::<()>();
    let served = listen::serve(listener, tls, service.clone(), health, largest, async {
        drop(closed.await);
    });
    let at_once = end::until(served, &service, health_of, &drain, close, &mut ends).await?;
    Ok(Rest { writer, counters, board, definitions: definitions(&service), at_once })
}

/// Every counter there is.
fn samples(counters: &Counters, board: &Board, service: &Service) -> Vec<Sample> {
    counters.samples().into_iter().chain(board.samples()).chain(definitions(service)).collect()
}

/// The counters of the servers' definitions.
fn definitions(service: &Service) -> Vec<Sample> {
    let snapshot = service.snapshot();
    let all = snapshot.servers().iter().filter_map(|server| server.freshness.as_ref());
    all.flat_map(|freshness| freshness.samples()).collect()
}
