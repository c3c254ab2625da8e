//! `judge`: intent-based access control. A model behind an OpenAI-compatible `/v1/chat/completions` is asked whether
//! this call is what the user wanted.
//!
//! The model only ever adds a refusal to what the policy allows, and nothing in a call can switch it off. Its words are
//! for the audit; the caller gets the code and a fixed sentence, or the reason, bounded, with `disclose_reason`.

mod cache;
mod prompt;
mod verdict;

#[cfg(test)]
mod tests;

use std::time::Instant;

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;

use self::cache::Cache;
use self::verdict::{Judged, Verdict};
use super::config::IntentSource;
use super::opinion::{Denial, Failure, Opinion};
use super::question::{Intent, Question};
use crate::refusal::GateCode;
use crate::upstream::Credential;

/// Most bytes of the model's answer.
const ANSWER: usize = 256 * 1024;

const BLOCKED: &str = "ibac.blocked";
const NO_INTENT: &str = "ibac.no_intent";
const UNCERTAIN: &str = "ibac.judge_uncertain";
const UNAVAILABLE: &str = "ibac.judge_unavailable";
const UNCONFIGURED: &str = "ibac.unconfigured";

/// The code of a judge that cannot be asked.
pub(super) fn unavailable() -> Option<GateCode> {
    GateCode::parse(UNAVAILABLE).ok()
}

/// A model that judges.
pub(super) struct Judge {
    parts: Parts,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    cache: Option<Cache>,
}

/// What a [`Judge`] is made of.
pub(super) struct Parts {
    pub(super) url: http::Uri,
    pub(super) model: String,
    /// [`Credential::Bearer`] or [`Credential::None`].
    pub(super) credential: Credential,
    pub(super) intent: IntentSource,
    /// `no_intent: allow`.
    pub(super) allow_without_intent: bool,
    pub(super) disclose_reason: bool,
    pub(super) arguments: usize,
    pub(super) cache: Option<std::time::Duration>,
}

impl Judge {
    pub(super) fn new(parts: Parts) -> Self {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(8).build(connector);
        let cache = parts.cache.map(Cache::new);
        Self { parts, client, cache }
    }

    pub(super) async fn ask(&self, question: &Question) -> Opinion {
        let intent = match self.parts.intent.look(question) {
            Intent::Found(intent) => intent,
            Intent::Absent if self.parts.allow_without_intent => return Opinion::Allow,
            Intent::Absent => return no_intent("the configured source of the intent holds none"),
            Intent::Unreadable => {
                return no_intent("the configured source of the intent holds no one text of at most 8 KiB");
            }
        };
        let (arguments, other) = (question.arguments(), question.other_params().unwrap_or_default());
        let key = self.cache.as_ref().map(|_| key(question, intent, (&arguments, &other)));
        if let (Some(cache), Some(key)) = (&self.cache, &key)
            && let Some(judged) = cache.get(key, Instant::now())
        {
            return self.opinion(&judged);
        }
        let body = prompt::body(&self.parts.model, question, intent, (&arguments, &other), self.parts.arguments);
        let judged = match self.exchange(body).await {
            Ok(judged) => judged,
            Err(failure) => return Opinion::Failed(failure),
        };
        if let (Some(cache), Some(key)) = (&self.cache, key)
            && judged.verdict != Verdict::Uncertain
        {
            cache.put(key, judged.clone(), Instant::now());
        }
        self.opinion(&judged)
    }

    fn opinion(&self, judged: &Judged) -> Opinion {
        let (code, text) = match judged.verdict {
            Verdict::Allow => return Opinion::Allow,
            Verdict::Deny => {
                (BLOCKED, "The call goes beyond what the user asked for. Do not try it again unchanged; ask the user.")
            }
            Verdict::Uncertain => (
                UNCERTAIN,
                "It could not be told whether the user asked for this call. Ask the user before trying again.",
            ),
        };
        let reason = (!judged.reason.is_empty()).then(|| judged.reason.clone());
        Opinion::Deny(Box::new(Denial {
            code: GateCode::parse(code).ok(),
            text: Some(text.to_owned()),
            description: reason.clone().filter(|_| self.parts.disclose_reason),
            log: reason.map(|reason| format!("the judge said: {reason}")),
            ..Denial::default()
        }))
    }

    async fn exchange(&self, body: Vec<u8>) -> Result<Judged, Failure> {
        let failure = |why: String| Failure { code: unavailable(), ..Failure::new(why) };
        let mut request = Request::post(self.parts.url.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, concat!("portcullis/", env!("CARGO_PKG_VERSION")));
        if let Some(value) = self.parts.credential.header_value() {
            request = request.header(header::AUTHORIZATION, value);
        }
        let request = request.body(Full::new(Bytes::from(body))).map_err(|error| failure(error.to_string()))?;
        let answer = self
            .client
            .request(request)
            .await
            .map_err(|error| failure(format!("{}: {}", place(&self.parts.url), with_causes(&error))))?;
        let status = answer.status();
        if status != StatusCode::OK {
            // These do not go away by waiting: key, model or URL is wrong.
            let code = matches!(status.as_u16(), 401 | 403 | 404).then(|| GateCode::parse(UNCONFIGURED).ok()).flatten();
            // These say that the model will not take this prompt.
            let of_this_call = matches!(status.as_u16(), 400 | 413 | 422);
            let why = format!("expected HTTP 200, got {status}");
            return Err(Failure { code: code.or_else(unavailable), why, of_this_call });
        }
        let answer = Limited::new(answer.into_body(), ANSWER).collect().await;
        let answer = answer.map_err(|error| failure(format!("expected a whole answer of at most 256 KiB: {error}")))?;
        verdict::read(answer.to_bytes().to_vec()).map_err(|what| failure(what.to_owned()))
    }

    /// The future that follows the bearer's file; `None` when nothing can change.
    pub(super) fn watch(&self) -> Option<impl Future<Output = ()> + Send + 'static> {
        self.parts.credential.watch()
    }
}

fn no_intent(why: &str) -> Opinion {
    let text = "The call does not say what the user asked for, so it could not be judged. Trying again unchanged will not help.";
    Opinion::Deny(Box::new(Denial {
        code: GateCode::parse(NO_INTENT).ok(),
        text: Some(text.to_owned()),
        log: Some(why.to_owned()),
        ..Denial::default()
    }))
}

/// Where the judge is, without path and query, which may hold a key.
fn place(url: &http::Uri) -> String {
    format!("{}://{}", url.scheme_str().unwrap_or_default(), url.authority().map_or("", http::uri::Authority::as_str))
}

fn key(question: &Question, intent: &str, (arguments, other): (&str, &str)) -> cache::Key {
    let asker = &question.principal;
    let http = question.http.as_ref().map(|http| format!("{}{}", http.authority, http.path)).unwrap_or_default();
    cache::key(&[
        &asker.issuer,
        &asker.subject,
        intent,
        &question.method,
        &question.capabilities.join("\n"),
        question.named(),
        &http,
        arguments,
        other,
    ])
}

/// hyper's own text is "client error (Connect)"; what helps an operator stands in the causes.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
