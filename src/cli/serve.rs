//! `portcullis serve`: load, listen, decide, reload, end.

mod end;
mod health;
mod reload;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;

use portcullis::admin::{self, Admin, Hosts, Page, Readiness};
use portcullis::config::reload::{Board, Contents};
use portcullis::config::{self, Loaded, Serving};
use portcullis::extproc::listen::{self, Listener};
use portcullis::extproc::service::Service;
use portcullis::identity::KeyStores;
use portcullis::telemetry::counters::Sample;
use portcullis::telemetry::{Telemetry, log};

use end::Signals;
use reload::Reloader;

/// How long streams that were refused at the end may take to be gone before the process is.
const LAST: Duration = Duration::from_secs(1);
/// How long telemetry may take to be flushed after that.
const FLUSH: Duration = Duration::from_secs(5);

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
    let logging = log::start();
    take_small_pages();
    let (keys, begun) = (KeyStores::new(), SystemTime::now());
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
    logging.configure(serving.telemetry.log.as_deref()).map_err(anyhow::Error::msg)?;
    let telemetry = Telemetry::start(&serving.telemetry, &serving.snapshot.known())?;
    let contents = Contents::read(files.iter().map(PathBuf::as_path));
    // A file that changed between the two looks would be taken for what was loaded, until it changes again.
    let loaded = Looked { again: contents.written_since(begun), contents };
    let mut builder = if serving.worker_threads > 1 {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(serving.worker_threads);
        builder
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = builder.enable_all().build().context("cannot start the runtime")?;
    let served = runtime.block_on(serve(serving, keys, &args.config, loaded, logging, &telemetry));
    // Streams that are still open are cut: Envoy refuses or ends what they belong to. Their audit records are written yet.
    runtime.shutdown_timeout(if served.is_ok() { LAST } else { Duration::ZERO });
    // Last, so that it tells of everything; told twice to end, nothing is waited for.
    if served? {
        // Its end would export what is left, and wait for a collector that may hang.
        std::mem::forget(telemetry);
    } else {
        telemetry.shutdown(FLUSH);
    }
    Ok(ExitCode::SUCCESS)
}

/// Has the kernel back memory page by page. With huge pages, which some distributions give to every process, each size of
/// allocation begins on 2 MiB of its own: 41 MiB where 7 are used (docs/performance.md).
fn take_small_pages() {
    #[cfg(target_os = "linux")]
    if let Err(fault) = nix::sys::prctl::set_thp_disable(true) {
        tracing::debug!(%fault, "huge pages stay on: memory is used less sparingly");
    }
}

/// What stands in the files that were loaded, and whether to load them once more.
struct Looked {
    contents: Contents,
    again: bool,
}

/// Serves, and tells whether the end was to be at once.
async fn serve(
    serving: Serving,
    keys: KeyStores,
    config: &Path,
    Looked { contents, again }: Looked,
    logging: log::Handle,
    telemetry: &Telemetry,
) -> anyhow::Result<bool> {
    // Before anything is announced, so that no signal finds nobody.
    let signals = Signals::new().context("cannot take signals")?;
    let started = reload::Started::of(&serving);
    let Serving { address, tls, admin, snapshot, kept, max_streams, drain, .. } = serving;
    let snapshot = Arc::new(snapshot);
    let largest = started.largest_request();
    let listener = Listener::bind(&address).await.with_context(|| format!("cannot listen on {address}"))?;
    let admin_listener = match &admin {
        Some(admin) => {
            let bound = TcpListener::bind(admin.address).await;
            Some(bound.with_context(|| format!("cannot listen on {} (listen.admin)", admin.address))?)
        }
        None => None,
    };
    let (audit, counters) = (telemetry.audit().clone(), Arc::clone(telemetry.counters()));
    let service =
        Service::new(Arc::clone(&snapshot), audit, Arc::clone(&counters), max_streams).context("no random bytes")?;
    let board = Arc::new(Board::new(contents.digest()));
    count(telemetry, &keys, &board, &service);
    let drain = Arc::new(Mutex::new(drain));
    let Signals { hangups, mut ends } = signals;
    reload::follow(&snapshot, None);
    let reloader = Reloader {
        config: config.to_owned(),
        keys: Arc::new(keys),
        service: service.clone(),
        logging,
        counters,
        board: Arc::clone(&board),
        drain: Arc::clone(&drain),
        started,
        kept,
    };
    tokio::spawn(reloader.run(contents, again, hangups));
    tracing::info!(%address, "serving");
    let readiness = Arc::new(Readiness::new(service.clone()));
    if let (Some(listen), Some(listener)) = (admin, admin_listener) {
        let metrics = Arc::clone(telemetry.metrics());
        let admin = Admin {
            hosts: Hosts::new(&listen.hosts),
            readiness: Arc::clone(&readiness),
            board: Arc::clone(&board),
            service: service.clone(),
            metrics: Box::new(move || metrics.prometheus()),
            page: telemetry.recent().map(|recent| Page {
                recent: Arc::clone(recent),
                counters: Arc::clone(telemetry.counters()),
                since: Instant::now(),
            }),
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
    end::until(served, &service, health_of, &drain, close, &mut ends).await
}

/// Tells metrics where to read what is counted elsewhere: of whatever snapshot is in force then.
fn count(telemetry: &Telemetry, keys: &KeyStores, board: &Arc<Board>, service: &Service) {
    let (keys, board, service) = (keys.counts(), Arc::clone(board), service.clone());
    telemetry.metrics().register(Box::new(move || {
        let snapshot = service.snapshot();
        let definitions = snapshot.servers().iter().filter_map(|server| server.freshness.as_ref());
        let held = Sample {
            name: "portcullis.held_answers.bytes",
            labels: Vec::new(),
            value: u64::try_from(snapshot.held_answers().held()).unwrap_or(u64::MAX),
        };
        let mut samples = keys.samples();
        samples.extend(board.samples());
        samples.extend(definitions.flat_map(|freshness| freshness.samples()));
        samples.push(held);
        samples
    }));
}
