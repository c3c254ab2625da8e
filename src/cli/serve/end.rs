//! The end of the process: told once, it drains; told twice, it ends at once. Nothing undecided passes either way.
//!
//! ```text
//! SIGTERM ─▶ not ready ─▶ drain.delay ─▶ no new connections, subscriptions end ─▶ drain.timeout ─▶ the rest is refused ─▶ end
//! ```

use std::io;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use portcullis::config::Drain;
use portcullis::extproc::service::Service;

use super::LAST;
use super::health::Health;

/// The signals that this process takes.
pub(super) struct Signals {
    /// SIGHUP.
    pub(super) hangups: Signal,
    pub(super) ends: Ends,
}

/// SIGTERM and SIGINT.
pub(super) struct Ends {
    term: Signal,
    int: Signal,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        let (term, int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(Self { hangups: signal(SignalKind::hangup())?, ends: Ends { term, int } })
    }
}

impl Ends {
    async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}

/// Serves until a signal says to end, and then for as long as the drain takes; `true` when a second signal cut that short.
/// Whatever is open when this returns is cut by the end of the runtime: an error for Envoy, never an OK.
pub(super) async fn until(
    served: impl Future<Output = Result<(), tonic::transport::Error>>,
    service: &Service,
    health: Health,
    drain: &Mutex<Drain>,
    close: oneshot::Sender<()>,
    ends: &mut Ends,
) -> anyhow::Result<bool> {
    let mut served = pin!(served);
    tokio::select! {
        ended = &mut served => {
            ended.context("the listener failed")?;
            anyhow::bail!("the listener ended by itself");
        }
        () = ends.next() => {}
    }
    let Drain { delay, timeout } = *drain.lock().unwrap_or_else(PoisonError::into_inner);
    health.end().await;
    tracing::info!(?delay, ?timeout, "stopping: open exchanges may finish");
    let draining = async {
        // Whoever looks at our health has this long to send no more.
        within(delay, &mut served).await?;
        service.drain();
        let _ = close.send(());
        if within(timeout, &mut served).await? {
            return Ok(());
        }
        tracing::warn!("exchanges are still open after {timeout:?}; they are refused or ended");
        service.stop();
        within(LAST, &mut served).await.map(drop)
    };
    tokio::select! {
        drained = draining => drained.map(|()| false).context("the listener failed"),
        () = ends.next() => {
            tracing::warn!("told again to stop: everything that is open is cut");
            Ok(true)
        }
    }
}

/// Whether serving ended within this time.
async fn within(
    time: Duration,
    served: &mut (impl Future<Output = Result<(), tonic::transport::Error>> + Unpin),
) -> Result<bool, tonic::transport::Error> {
    match tokio::time::timeout(time, served).await {
        Ok(ended) => ended.map(|()| true),
        Err(_) => Ok(false),
    }
}
