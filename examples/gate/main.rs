//! A gate in about fifty lines: refunds above a limit need the role `manager`, and nobody exports at all.
//!
//! ```text
//! cargo run --example gate -- 127.0.0.1:9300
//! ```
//!
//! and in `portcullis.yaml`, on the server it guards:
//!
//! ```yaml
//! gates:
//! - name: refunds
//!   grpc: {address: "http://127.0.0.1:9300", timeout: 100ms}
//! ```
//!
//! The contract and every field of it: `proto/portcullis/gate/v1/gate.proto`.

use std::net::SocketAddr;

use portcullis::gates::contract::decide_response::Opinion;
use portcullis::gates::contract::gate_server::{Gate, GateServer};
use portcullis::gates::contract::{Allow, DecideRequest, DecideResponse, Deny};
use tonic::{Request, Response, Status};

/// Cents.
const LIMIT: u64 = 10_000;

struct Refunds;

#[tonic::async_trait]
impl Gate for Refunds {
    async fn decide(&self, request: Request<DecideRequest>) -> Result<Response<DecideResponse>, Status> {
        let DecideRequest { principal, call, .. } = request.into_inner();
        let (Some(principal), Some(call)) = (principal, call) else {
            return Err(Status::invalid_argument("expected principal and call"));
        };
        let reaches = |label: &str| call.capabilities.iter().any(|own| own == label);
        let opinion = if reaches("tool:export_cases") {
            deny("refunds.export", "Exports are not done by agents. Ask a person.", None)
        } else if reaches("tool:refund") {
            // Arguments that were cut cannot be judged: an error, and Portcullis refuses.
            let arguments: serde_json::Value = serde_json::from_str(&call.arguments_json)
                .map_err(|_| Status::invalid_argument("expected whole arguments"))?;
            match arguments["amount"].as_u64() {
                Some(amount) if amount <= LIMIT || principal.roles.iter().any(|role| role == "manager") => allow(),
                _ => deny(
                    "refunds.limit",
                    "Refunds above 100.00 need a manager.",
                    Some(format!("{{\"limit\":{LIMIT}}}")),
                ),
            }
        } else {
            allow()
        };
        Ok(Response::new(DecideResponse { opinion: Some(opinion) }))
    }
}

fn allow() -> Opinion {
    Opinion::Allow(Allow {})
}

fn deny(code: &str, reason: &str, details: Option<String>) -> Opinion {
    let (code, reason, details_json) = (code.to_owned(), reason.to_owned(), details.unwrap_or_default());
    Opinion::Deny(Deny { code, reason, details_json, ..Deny::default() })
}

pub(crate) async fn serve(address: SocketAddr) -> Result<(), tonic::transport::Error> {
    tonic::transport::Server::builder().add_service(GateServer::new(Refunds)).serve(address).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9300".to_owned());
    Ok(serve(address.parse()?).await?)
}
