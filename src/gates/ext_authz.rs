//! `ext_authz`: Envoy's own `envoy.service.auth.v3.Authorization/Check`, so that OPA's Envoy plugin and every other
//! server of it works unchanged.
//!
//! The facts stand where such servers look: flat in `context_extensions`, structured in `metadata_context` under
//! `portcullis`, and the call itself as an HTTP POST whose body is the MCP request without `_meta`.

mod request;

use std::time::Instant;

use envoy_types::pb::envoy::config::core::v3::HeaderValueOption;
use envoy_types::pb::envoy::service::auth::v3::authorization_client::AuthorizationClient;
use envoy_types::pb::envoy::service::auth::v3::check_response::HttpResponse;
use envoy_types::pb::envoy::service::auth::v3::{CheckResponse, DeniedHttpResponse, OkHttpResponse};

use tonic::Code;

use super::opinion::{Denial, Failure, Opinion};
use super::peer::{ANSWER, Peer, timed};
use super::question::Question;
use crate::message::json::{Document, Kind, Limits};
use crate::refusal::GateCode;

/// The code of a denial that brings none.
const DENIED: &str = "ext_authz.denied";
/// The code for a gate that would change the call instead of judging it.
const EDITS: &str = "ext_authz.edits";
const EDITS_LOG: &str =
    "it allowed the call on condition of changes to its headers or query; a gate decides, it does not edit";

/// A gate that speaks Envoy's `ext_authz`.
pub(super) struct ExtAuthz {
    pub(super) peer: Peer,
    /// Most bytes of arguments that it sees; larger ones are left out whole, because a cut body is no JSON.
    pub(super) arguments: usize,
    /// `challenges: pass`.
    pub(super) pass_challenges: bool,
}

impl ExtAuthz {
    pub(super) async fn ask(&self, question: &Question, due: Instant) -> Opinion {
        let mut client = AuthorizationClient::new(self.peer.channel()).max_decoding_message_size(ANSWER);
        match client.check(timed(request::check(question, self.arguments), due)).await {
            Ok(answer) => opinion(answer.into_inner(), self.pass_challenges),
            Err(status) => Opinion::Failed(grpc_failure(&status, &self.peer.address)),
        }
    }
}

/// A gRPC call to this address that failed.
pub(super) fn grpc_failure(status: &tonic::Status, address: &str) -> Failure {
    let mut text = format!("{address}: gRPC {:?}: {}", status.code(), status.message());
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    // A gate that is up and does not want this question.
    let of_this_call = matches!(status.code(), Code::InvalidArgument | Code::OutOfRange);
    Failure { of_this_call, ..Failure::new(text) }
}

/// What a `CheckResponse` means. `status` decides, as in Envoy; what contradicts it is no opinion.
fn opinion(answer: CheckResponse, pass_challenges: bool) -> Opinion {
    let code = answer.status.as_ref().map(|status| status.code);
    let log = answer.status.map(|status| status.message).filter(|message| !message.is_empty());
    match (code, answer.http_response) {
        (None | Some(0), Some(HttpResponse::OkResponse(ok))) if edits(&ok) => Opinion::Deny(Box::new(Denial {
            code: GateCode::parse(EDITS).ok(),
            log: Some(EDITS_LOG.to_owned()),
            ..Denial::default()
        })),
        (Some(0), None) | (None | Some(0), Some(HttpResponse::OkResponse(_))) => Opinion::Allow,
        (None, None) => Opinion::Failed(Failure::new(
            "expected a CheckResponse with a status or an ok_response, got an empty one (OK is `status: {code: 0}`, written \
             out: an answer without any status is no leave)",
        )),
        (None | Some(0), Some(HttpResponse::DeniedResponse(_))) => contradiction(code, "a denied_response"),
        (None | Some(0), Some(HttpResponse::ErrorResponse(_))) => contradiction(code, "an error_response"),
        (Some(_), Some(HttpResponse::ErrorResponse(_))) => {
            Opinion::Failed(Failure::new(format!("it had an error: {}", log.unwrap_or_default())))
        }
        (Some(_), Some(HttpResponse::DeniedResponse(denied))) => {
            Opinion::Deny(Box::new(denial(&denied, log, pass_challenges)))
        }
        (Some(_), _) => {
            Opinion::Deny(Box::new(Denial { code: GateCode::parse(DENIED).ok(), log, ..Denial::default() }))
        }
    }
}

fn contradiction(code: Option<i32>, response: &str) -> Opinion {
    let got = if code.is_none() { "none at all" } else { "OK" };
    Opinion::Failed(Failure::new(format!("expected a status other than OK beside {response}, got {got}")))
}

/// A gate decides, it does not edit.
fn edits(ok: &OkHttpResponse) -> bool {
    !ok.headers.is_empty()
        || !ok.headers_to_remove.is_empty()
        || !ok.response_headers_to_add.is_empty()
        || !ok.query_parameters_to_set.is_empty()
        || !ok.query_parameters_to_remove.is_empty()
}

/// A `denied_response`: its body is the public text, or a JSON object with `error`, `message`, `description`, `details`.
fn denial(denied: &DeniedHttpResponse, log: Option<String>, pass_challenges: bool) -> Denial {
    let retry_after = header(&denied.headers, "retry-after").and_then(|value| value.trim().parse().ok());
    let mut denial = spoken(&denied.body, log);
    denial.code = denial.code.or_else(|| GateCode::parse(DENIED).ok());
    denial.retry_after = retry_after;
    if pass_challenges {
        let status = if denied.status.as_ref().is_some_and(|status| status.code == 401) { 401 } else { 403 };
        denial.challenge = header(&denied.headers, "www-authenticate")
            .filter(|value| http::HeaderValue::from_str(value).is_ok())
            .map(|value| (status, value));
    }
    denial
}

fn spoken(body: &str, log: Option<String>) -> Denial {
    let plain =
        |log| Denial { text: Some(body.trim().to_owned()).filter(|text| !text.is_empty()), log, ..Denial::default() };
    let limits = Limits { depth: 32, nodes: 4096 };
    let Ok(document) = Document::read(body.as_bytes().to_vec(), limits) else { return plain(log) };
    let root = document.root();
    if root.kind() != Kind::Object {
        return plain(log);
    }
    let text = |key: &str| root.get(key).and_then(|value| value.as_str()).map(str::to_owned);
    let mut denial = Denial {
        text: text("message"),
        description: text("description"),
        details: root.get("details").map(|details| details.raw().to_owned()),
        log,
        ..Denial::default()
    };
    denial.coded(&text("error").unwrap_or_default());
    denial
}

fn header(headers: &[HeaderValueOption], name: &str) -> Option<String> {
    let found =
        headers.iter().filter_map(|option| option.header.as_ref()).find(|own| own.key.eq_ignore_ascii_case(name))?;
    let raw = String::from_utf8(found.raw_value.clone()).ok().filter(|raw| !raw.is_empty());
    Some(raw.unwrap_or_else(|| found.value.clone()))
}

#[cfg(test)]
mod tests;
