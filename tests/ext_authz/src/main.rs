//! Serves `envoy.service.auth.v3.Authorization` with the crate `chio-envoy-ext-authz` on the address in the first argument.
//!
//! Reading Envoy's request and wording the answer are the crate's; what is decided here is who may pass.

use async_trait::async_trait;
use chio_envoy_ext_authz::proto::envoy::service::auth::v3::authorization_server::AuthorizationServer;
use chio_envoy_ext_authz::{ChioExtAuthzService, EnvoyKernel, KernelError, ToolCallRequest, Verdict};

struct Policy;

#[async_trait]
impl EnvoyKernel for Policy {
    async fn evaluate(&self, call: ToolCallRequest) -> Result<Verdict, KernelError> {
        println!("{call:?}");
        let deny = |http_status, reason: &str| Verdict::Deny { reason: reason.into(), guard: "office".into(), http_status };
        Ok(match (call.caller.subject.as_str(), call.tool.as_str()) {
            ("ana@acme.com", "http.post.mcp") => Verdict::Allow,
            ("bo@acme.com", _) => deny(403, "bo is on holiday"),
            ("cy@acme.com", _) => deny(503, "the rota is being rewritten"),
            _ => return Err(KernelError::evaluation("nobody knows them")),
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).ok_or("expected an address to listen on, as 127.0.0.1:9301")?.parse()?;
    let service = AuthorizationServer::new(ChioExtAuthzService::new(Policy));
    tonic::transport::Server::builder().add_service(service).serve(address).await?;
    Ok(())
}
