//! The load generator: each connection sends its next call when the last is answered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::wire::Wire;

/// How long one call may take before the measurement is worth nothing.
const PATIENCE: Duration = Duration::from_secs(15);

/// Sends calls, on one thread.
pub(crate) struct Load {
    runtime: Runtime,
}

/// What one slice saw.
pub(crate) struct Slice {
    pub(crate) took: Duration,
    /// Of each call, in nanoseconds.
    pub(crate) latencies: Vec<u64>,
}

impl Load {
    pub(crate) fn new() -> Self {
        Self { runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime") }
    }

    pub(crate) fn connect(&self, port: u16, connections: usize) -> Vec<Wire> {
        let one = || async move { Wire::new(TcpStream::connect(("127.0.0.1", port)).await?) };
        let open = |_| self.runtime.block_on(one()).expect("Envoy takes connections");
        (0..connections).map(open).collect()
    }

    /// Calls on all connections for that long. A call that is not answered with 200 ends the program: a refusal is
    /// quicker than an answer, and a figure with refusals in it says nothing.
    pub(crate) fn run(&self, wires: &mut Vec<Wire>, request: &Arc<[u8]>, length: Duration) -> Slice {
        let began = Instant::now();
        let end = began + length;
        let done = self.runtime.block_on(async {
            let callers: JoinSet<(Wire, Vec<u64>)> =
                wires.drain(..).map(|wire| call(wire, Arc::clone(request), end)).collect();
            callers.join_all().await
        });
        let took = began.elapsed();
        let mut latencies = Vec::new();
        for (wire, seen) in done {
            wires.push(wire);
            latencies.extend(seen);
        }
        Slice { took, latencies }
    }
}

async fn call(mut wire: Wire, request: Arc<[u8]>, end: Instant) -> (Wire, Vec<u64>) {
    let mut latencies = Vec::with_capacity(16 * 1024);
    loop {
        let began = Instant::now();
        if began >= end {
            return (wire, latencies);
        }
        let answered = tokio::time::timeout(PATIENCE, async {
            wire.send(&request).await?;
            wire.receive().await
        });
        match answered.await {
            Ok(Ok(Some(received))) if received.ok => {}
            Ok(Ok(Some(received))) => panic!("expected 200 for every call, got {}", received.start),
            other => {
                panic!(
                    "expected an answer within {PATIENCE:?}, got {:?}",
                    other.map(|read| read.map(|found| found.is_some()))
                )
            }
        }
        latencies.push(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
}
