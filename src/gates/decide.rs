//! `grpc`: our own contract, `portcullis.gate.v1.Gate/Decide`. The proto's comments are its documentation.

use super::config::IntentSource;
use super::contract::decide_response::Opinion as Said;
use super::contract::gate_client::GateClient;
use super::contract::{Call, DecideRequest, Deny, Principal};
use super::opinion::{Denial, Failure, Opinion};
use super::peer::{ANSWER, Peer};
use super::question::{Arguments, Question};
use crate::refusal::GateCode;

/// A gate that speaks our contract.
pub(super) struct Decide {
    pub(super) peer: Peer,
    /// Most bytes of arguments that it sees.
    pub(super) arguments: usize,
    pub(super) intent: Option<IntentSource>,
}

impl Decide {
    pub(super) async fn ask(&self, question: &Question) -> Opinion {
        let mut client = GateClient::new(self.peer.channel()).max_decoding_message_size(ANSWER);
        match client.decide(self.request(question)).await {
            Ok(answer) => match answer.into_inner().opinion {
                Some(Said::Allow(_)) => Opinion::Allow,
                Some(Said::Deny(deny)) => Opinion::Deny(Box::new(denial(deny))),
                Some(Said::Answer(answer)) => Opinion::Answer(answer.result_json),
                None => Opinion::Failed(Failure::new("expected allow, deny or answer, got an answer without any")),
            },
            Err(status) => Opinion::Failed(super::ext_authz::grpc_failure(&status)),
        }
    }

    fn request(&self, question: &Question) -> DecideRequest {
        let asker = &question.principal;
        let arguments = question.arguments();
        let Arguments { json, truncated } = Arguments::cut(&arguments, self.arguments);
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
            }),
            intent: self.intent.as_ref().and_then(|source| source.find(question)).map(str::to_owned),
        }
    }
}

fn denial(deny: Deny) -> Denial {
    let text = |text: String| Some(text).filter(|text| !text.is_empty());
    let code = GateCode::parse(&deny.code);
    let log = match &code {
        Err(fault) if !deny.code.is_empty() => Some(format!("{fault}, got another text; {}", deny.log)),
        _ => text(deny.log),
    };
    Denial {
        code: code.ok(),
        text: text(deny.reason),
        description: text(deny.description),
        details: text(deny.details_json),
        retry_after: deny.retry_after_seconds,
        challenge: None,
        log,
    }
}
