//! Asking the authorization server about a token (RFC 7662).

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::HeaderValue;
use tokio::sync::Semaphore;
use url::{Url, form_urlencoded};

use super::{IdentityFault, fetch::Fetcher, jwt};
use crate::{message::json::Document, upstream::Secret};

/// Questions at a time: random tokens must not turn one caller's flood into a flood on the authorization server.
const CONCURRENT: usize = 32;
/// How long a token waits for its turn.
const TURN: Duration = Duration::from_secs(5);
/// What callers are told when no answer could be had, seconds.
const RETRY_AFTER: u64 = 5;

/// The introspection endpoint and our credentials there.
pub(super) struct Introspection {
    endpoint: Url,
    client_id: Box<str>,
    secret: Secret,
    fetcher: Fetcher,
    turns: Arc<Semaphore>,
}

impl Introspection {
    pub(super) fn new(endpoint: Url, client_id: &str, secret: Secret, fetcher: Fetcher) -> Self {
        Self { endpoint, client_id: client_id.into(), secret, fetcher, turns: Arc::new(Semaphore::new(CONCURRENT)) }
    }

    /// The future that follows our secret's file until this is dropped; `None` when the secret cannot change.
    pub(super) fn watch(&self) -> Option<impl Future<Output = ()> + Send + 'static> {
        let secret = Some(&self.secret).filter(|secret| secret.is_watchable())?.clone();
        let alive = Arc::downgrade(&self.turns);
        Some(secret.watch(move |_| alive.strong_count() > 0))
    }

    /// The claims of an active token, as the authorization server tells them; unchecked otherwise.
    ///
    /// # Errors
    /// [`IdentityFault::Invalid`] when the token is not active; [`IdentityFault::Unverifiable`] when there is no usable
    /// answer, our own credentials being refused included.
    pub(super) async fn ask(&self, token: &str) -> Result<Document, IdentityFault> {
        let unverifiable =
            |detail: String| IdentityFault::unverifiable(RETRY_AFTER, format!("{}: {detail}", self.endpoint));
        let turn = tokio::time::timeout(TURN, Arc::clone(&self.turns).acquire_owned()).await;
        let Ok(Ok(_turn)) = turn else { return Err(unverifiable(format!("{CONCURRENT} questions are open already"))) };
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("token", token)
            .append_pair("token_type_hint", "access_token")
            .finish();
        let authorization = self.authorization().ok_or_else(|| unverifiable("our credentials fit no header".into()))?;
        let answer = self.fetcher.post_form(&self.endpoint, authorization, form).await;
        let answer = answer.map_err(|fault| unverifiable(fault.to_string()))?;
        let claims = jwt::claims(&answer.body).map_err(&unverifiable)?;
        match claims.root().get("active").map(|active| active.as_bool()) {
            Some(Some(true)) => Ok(claims),
            Some(Some(false)) => Err(IdentityFault::invalid(
                "the access token is not active",
                "the authorization server says `active: false`",
            )),
            _ => Err(unverifiable("expected a boolean `active` in the answer (RFC 7662 §2.2)".into())),
        }
    }

    /// HTTP Basic with both halves form-encoded first (RFC 6749 §2.3.1).
    fn authorization(&self) -> Option<HeaderValue> {
        let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let pair = format!("{}:{}", encoded(&self.client_id), encoded(&self.secret.current()));
        let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair))).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}
