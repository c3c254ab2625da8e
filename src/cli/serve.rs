//! `portcullis serve`: load, listen, decide.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use portcullis::config::{self, Loaded, Serving};
use portcullis::extproc::listen::{self, Listener};
use portcullis::extproc::service::Service;
use portcullis::identity::KeyStores;
use portcullis::ladder::Server;
use portcullis::telemetry::counters::Sample;
use portcullis::telemetry::{Telemetry, log};
use portcullis::upstream::Freshness;

/// How long open exchanges may take to finish after a signal to stop.
const DRAIN: Duration = Duration::from_secs(10);
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
/// The address cannot be bound, or the transport fails.
pub fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let logging = log::start();
    let keys = KeyStores::new();
    let Loaded { serving, faults, warnings, .. } = config::load(&args.config, &keys);
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
    let mut builder = if serving.worker_threads > 1 {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(serving.worker_threads);
        builder
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = builder.enable_all().build().context("cannot start the runtime")?;
    telemetry.metrics().register({
        let keys = keys.counts();
        Box::new(move || keys.samples())
    });
    let served = runtime.block_on(serve(serving, &telemetry));
    // Streams that are still open are cut: Envoy refuses or ends what they belong to.
    runtime.shutdown_timeout(Duration::from_secs(1));
    telemetry.shutdown(FLUSH);
    served.map(|()| ExitCode::SUCCESS)
}

async fn serve(serving: Serving, telemetry: &Telemetry) -> anyhow::Result<()> {
    let Serving { address, tls, snapshot, max_streams, .. } = serving;
    let snapshot = Arc::new(snapshot);
    let servers = snapshot.servers();
    let largest = servers.iter().map(|server| server.limits.request).max().unwrap_or(0);
    let freshness: Vec<_> = servers.iter().filter_map(|server| server.freshness.clone()).collect();
    // Weak: what is counted must not keep alive what a reload lets go of.
    let listings: Vec<_> = freshness.iter().map(Arc::downgrade).collect();
    let held = Arc::clone(snapshot.held_answers());
    telemetry.metrics().register(Box::new(move || {
        let bytes = Sample {
            name: "portcullis.held_answers.bytes",
            labels: Vec::new(),
            value: u64::try_from(held.held()).unwrap_or(u64::MAX),
        };
        listings.iter().filter_map(Weak::upgrade).flat_map(|freshness| freshness.samples()).chain([bytes]).collect()
    }));
    follow_secrets(servers);
    keep_fresh(&freshness);
    tokio::spawn(hangups());
    let listener = Listener::bind(&address).await.with_context(|| format!("cannot listen on {address}"))?;
    let (audit, counters) = (telemetry.audit().clone(), Arc::clone(telemetry.counters()));
    let service = Service::new(snapshot, audit, counters, max_streams).context("no random bytes")?;
    tracing::info!(%address, "serving");
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let shutdown = async move {
        terminated().await;
        tracing::info!("stopping: open exchanges may finish");
        let _ = stop.send(());
    };
    let serving = listen::serve(listener, tls, service, largest, shutdown);
    let overdue = async {
        let asked = stopped.await;
        tokio::time::sleep(DRAIN).await;
        asked
    };
    tokio::select! {
        served = serving => served.context("the listener failed")?,
        _ = overdue => tracing::warn!("exchanges are still open after {DRAIN:?}; they are cut"),
    }
    Ok(())
}

/// Follows every secret that is a file, so that a rotation needs no restart.
fn follow_secrets(servers: &[Arc<Server>]) {
    for server in servers {
        if let Some(following) = server.credential.watch() {
            tokio::spawn(following);
        }
        if let Some(following) = server.authenticator.watch() {
            tokio::spawn(following);
        }
        for following in server.gates.watch() {
            tokio::spawn(following);
        }
    }
}

/// Lists servers ahead of time while there is traffic, so that a steady caller never waits for it.
fn keep_fresh(all: &[Arc<Freshness>]) {
    for freshness in all {
        tokio::spawn(freshness.keep());
        if let Some(following) = freshness.watch() {
            tokio::spawn(following);
        }
    }
}

/// The configuration is read once; without this a SIGHUP, which many tools send for a reload, would end the process.
async fn hangups() {
    let Ok(mut hangups) = signal(SignalKind::hangup()) else { return };
    while hangups.recv().await.is_some() {
        tracing::warn!("SIGHUP: this version does not reload; restart it to take a changed configuration");
    }
}

async fn terminated() {
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
}
