//! `grpc`: our own contract, `portcullis.gate.v1.Gate/Decide`. The proto's comments are its documentation.

use std::time::Instant;

use super::config::IntentSource;
use super::contract::decide_response::Opinion as Said;
use super::contract::gate_client::GateClient;
use super::contract::{Call, DecideRequest, Deny, Principal};
use super::opinion::{Denial, Failure, Opinion};
use super::peer::{ANSWER, Peer, timed};
use super::question::{Arguments, Question};
use crate::message::json::{Document, Kind, Limits};

/// A gate that speaks our contract.
pub(super) struct Decide {
    pub(super) peer: Peer,
    /// Most bytes of arguments that it sees.
    pub(super) arguments: usize,
    pub(super) intent: Option<IntentSource>,
}

impl Decide {
    pub(super) async fn ask(&self, question: &Question, due: Instant) -> Opinion {
        let mut client = GateClient::new(self.peer.channel()).max_decoding_message_size(ANSWER);
        match client.decide(timed(self.request(question), due)).await {
            Ok(answer) => match answer.into_inner().opinion {
                Some(Said::Allow(_)) => Opinion::Allow,
                Some(Said::Deny(deny)) => Opinion::Deny(Box::new(denial(deny))),
                Some(Said::Answer(answer)) => result(&answer.result_json).map_or_else(Opinion::Failed, Opinion::Answer),
                None => Opinion::Failed(Failure::new("expected allow, deny or answer, got an answer without any")),
            },
            Err(status) => Opinion::Failed(super::ext_authz::grpc_failure(&status, &self.peer.address)),
        }
    }

    fn request(&self, question: &Question) -> DecideRequest {
        let asker = &question.principal;
        let arguments = question.arguments();
        let Arguments { json, truncated } = Arguments::cut(&arguments, self.arguments);
        let other = question.other_params();
        let other = other.as_deref().map(|other| Arguments::cut(other, self.arguments));
        DecideRequest {
            decision_id: question.decision.clone(),
            principal: Some(Principal {
                issuer: asker.issuer.to_string(),
                subject: asker.subject.to_string(),
                email: asker.email.as_deref().map(str::to_owned),
                roles: asker.roles.iter().map(ToString::to_string).collect(),
                permissions: asker.permissions.iter().map(ToString::to_string).collect(),
            }),
            server: question.server.to_string(),
            call: Some(Call {
                method: question.method.clone(),
                capabilities: question.capabilities.iter().map(ToString::to_string).collect(),
                arguments_json: json.to_owned(),
                arguments_truncated: truncated,
                http_authority: question.http.as_ref().map(|http| http.authority.clone()),
                http_path: question.http.as_ref().map(|http| http.path.clone()),
                other_params_json: other.map(|other| other.json.to_owned()),
                other_params_truncated: other.is_some_and(|other| other.truncated),
            }),
            intent: self.intent.as_ref().and_then(|source| source.find(question)).map(str::to_owned),
        }
    }
}

/// The result that a gate answers with, read on its own: text that is only balanced within the frame could write members
/// of the answer itself. A failure is about this call: whoever can make a gate stumble over a text may not close it to all.
///
/// # Errors
/// What it is instead of one JSON object.
pub(super) fn result(text: &str) -> Result<String, Failure> {
    let failure = |what: String| Failure {
        of_this_call: true,
        ..Failure::new(format!("expected `answer.result_json` to be one JSON object, got {what}"))
    };
    let document = Document::read(text.as_bytes().to_vec(), Limits { depth: 128, nodes: 500_000 })
        .map_err(|fault| failure(format!("{} bytes that do not read as JSON: {fault}", text.len())))?;
    let root = document.root();
    if root.kind() != Kind::Object {
        return Err(failure("another JSON value".to_owned()));
    }
    Ok(root.raw().to_owned())
}

fn denial(deny: Deny) -> Denial {
    let text = |text: String| Some(text).filter(|text| !text.is_empty());
    let mut denial = Denial {
        code: None,
        text: text(deny.reason),
        description: text(deny.description),
        details: text(deny.details_json),
        retry_after: deny.retry_after_seconds,
        challenge: None,
        log: text(deny.log),
    };
    denial.coded(&deny.code);
    denial
}
