//! An OpenTelemetry collector that takes everything and keeps nothing, so that telemetry can be measured while it is on.

use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{LogsService, LogsServiceServer};
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{ExportMetricsServiceRequest, ExportMetricsServiceResponse};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

struct Sink;

#[tonic::async_trait]
impl LogsService for Sink {
    async fn export(
        &self,
        _: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        Ok(Response::new(ExportLogsServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Sink {
    async fn export(
        &self,
        _: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl TraceService for Sink {
    async fn export(
        &self,
        _: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// Listens on a loopback port, which is returned, on a thread of its own until the program ends.
pub(crate) fn start() -> u16 {
    const LARGEST: usize = 64 << 20;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a loopback port");
    let port = listener.local_addr().expect("its address").port();
    listener.set_nonblocking(true).expect("a socket that does not block");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            tonic::transport::Server::builder()
                .add_service(LogsServiceServer::new(Sink).max_decoding_message_size(LARGEST))
                .add_service(MetricsServiceServer::new(Sink).max_decoding_message_size(LARGEST))
                .add_service(TraceServiceServer::new(Sink).max_decoding_message_size(LARGEST))
                .serve_with_incoming(TcpListenerStream::new(listener))
                .await
                .expect("the collector serves");
        });
    });
    port
}
