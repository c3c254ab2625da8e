//! gRPC health (`grpc.health.v1`) as readiness has it.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use portcullis::admin::Readiness;

/// How often an unready process looks whether it is ready.
const LOOK: Duration = Duration::from_millis(200);
/// The services that answer: the process as a whole, and what Envoy dials.
const SERVICES: [&str; 2] = ["", "envoy.service.ext_proc.v3.ExternalProcessor"];

/// Tells the health service; `SERVING` exactly while [`Readiness`] is on.
pub(super) struct Health {
    reporter: HealthReporter,
    readiness: Arc<Readiness>,
    waiting: JoinHandle<()>,
}

impl Health {
    /// Not serving until ready.
    pub(super) async fn start(reporter: HealthReporter, readiness: Arc<Readiness>) -> Self {
        tell(&reporter, ServingStatus::NotServing).await;
        let (ready, telling) = (Arc::clone(&readiness), reporter.clone());
        let waiting = tokio::spawn(async move {
            while !ready.missing().is_empty() {
                tokio::time::sleep(LOOK).await;
            }
            tell(&telling, ServingStatus::Serving).await;
        });
        Self { reporter, readiness, waiting }
    }

    /// Not ready and not serving from now on.
    pub(super) async fn end(self) {
        self.readiness.end();
        // Or it could say the contrary after us.
        self.waiting.abort();
        drop(self.waiting.await);
        tell(&self.reporter, ServingStatus::NotServing).await;
    }
}

async fn tell(reporter: &HealthReporter, status: ServingStatus) {
    for service in SERVICES {
        reporter.set_service_status(service, status).await;
    }
}
