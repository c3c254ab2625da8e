//! Another yardstick: Envoy's `ext_authz` with a service that allows everything, on the same gRPC stack, in a process of its
//! own. It is asked once per call, with the body, and never sees an answer.

use std::path::Path;

use envoy_types::pb::envoy::service::auth::v3::authorization_server::{Authorization, AuthorizationServer};
use envoy_types::pb::envoy::service::auth::v3::{CheckRequest, CheckResponse};
use envoy_types::pb::google::rpc;
use tonic::{Request, Response, Status};

use crate::noop;

/// The word on the command line that makes this program the authorization service.
pub(crate) const ROLE: &str = "ext_authz";
/// Where the filter that is replaced stands in the shipped configuration.
const REPLACED: &str = "envoy.filters.http.ext_proc";

struct Allowing;

#[tonic::async_trait]
impl Authorization for Allowing {
    async fn check(&self, _: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        // Code 0 is OK.
        Ok(Response::new(CheckResponse { status: Some(rpc::Status::default()), ..CheckResponse::default() }))
    }
}

/// Serves on a Unix socket until killed.
pub(crate) fn serve(socket: &Path) {
    noop::listen(socket, AuthorizationServer::new(Allowing).max_decoding_message_size(8 << 20));
}

/// A configuration with `ext_authz` in the place of `ext_proc`, behind the same cluster.
pub(crate) fn instead_of_ext_proc(config: &str) -> String {
    const FILTER: &str = r#"          - name: envoy.filters.http.ext_authz
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz
              transport_api_version: V3
              grpc_service: {envoy_grpc: {cluster_name: portcullis}, timeout: 10s}
              failure_mode_allow: false
              with_request_body: {max_request_bytes: 1114112, pack_as_bytes: true}
"#;
    let at = config.find(&format!("          - name: {REPLACED}\n")).expect("the filter is there");
    let mut text = crate::support::envoy::without_filter(config, REPLACED);
    text.insert_str(at, FILTER);
    text
}
