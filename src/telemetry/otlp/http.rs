//! The HTTP client that the SDK exports metrics with: the one of all our own calls, on telemetry's runtime.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use opentelemetry_http::{HttpClient as Posts, HttpError, Request, Response};
use tokio::runtime::Handle;

use crate::upstream::http::{HttpClient, with_causes};

/// Most bytes of a collector's answer.
const ANSWER: usize = 1024 * 1024;

/// Posts exports. The SDK calls it from threads that belong to no runtime, so each request is a task of ours.
#[derive(Clone)]
pub(super) struct Poster {
    client: HttpClient,
    runtime: Handle,
    timeout: Duration,
}

impl Poster {
    pub(super) fn new(runtime: Handle, timeout: Duration, client: HttpClient) -> Self {
        Self { client, runtime, timeout }
    }
}

impl std::fmt::Debug for Poster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Poster").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

#[tonic::async_trait]
impl Posts for Poster {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (client, timeout) = (self.client.clone(), self.timeout);
        let exchange = async move {
            let answer =
                client.request(request.map(Full::new)).await.map_err(|fault| HttpError::from(with_causes(&fault)))?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, ANSWER).collect().await?.to_bytes();
            Ok(Response::from_parts(head, body))
        };
        let bounded = async move {
            let late = |_| HttpError::from(format!("expected an answer within {timeout:?}, got none"));
            tokio::time::timeout(timeout, exchange).await.map_err(late)?
        };
        self.runtime.spawn(bounded).await?
    }
}
