//! What a running Envoy tells about itself: `/config_dump` and `/server_info` of its admin endpoint.

use std::time::Duration;

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

use portcullis::doctor::MAX_BYTES;

/// For one answer. A dump of a large mesh takes Envoy a while.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The answers of `/config_dump`, endpoints included, and of `/server_info`.
///
/// # Errors
/// The address cannot be asked, or the answer is not 200, too long or late.
pub(super) fn admin(base: &str) -> Result<(String, Option<String>), String> {
    let base = base.trim_end_matches('/');
    if !base.starts_with("http://") {
        return Err(format!(
            "{base}: expected http://HOST:PORT of an admin endpoint, found another scheme; Envoy's has no TLS"
        ));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    runtime.block_on(async {
        let dump = get(&format!("{base}/config_dump?include_eds")).await?;
        let server = get(&format!("{base}/server_info")).await?;
        Ok((dump, Some(server)))
    })
}

async fn get(url: &str) -> Result<String, String> {
    let whole = async {
        let uri: http::Uri = url.parse().map_err(|error| format!("expected http://HOST:PORT, but {error}"))?;
        let client: Client<_, Empty<bytes::Bytes>> = Client::builder(TokioExecutor::new()).build_http();
        let answer = client.get(uri).await.map_err(|error| match std::error::Error::source(&error) {
            Some(cause) => format!("cannot ask it: {cause}"),
            None => format!("cannot ask it: {error}"),
        })?;
        if answer.status() != http::StatusCode::OK {
            return Err(format!("expected HTTP 200, found {}; name Envoy's admin endpoint", answer.status()));
        }
        let body = Limited::new(answer.into_body(), MAX_BYTES).collect().await;
        let body =
            body.map_err(|error| format!("expected a whole answer of at most {MAX_BYTES} bytes, but {error}"))?;
        String::from_utf8(body.to_bytes().to_vec()).map_err(|error| format!("expected UTF-8, but {error}"))
    };
    let done = tokio::time::timeout(TIMEOUT, whole).await;
    done.map_err(|_| format!("expected an answer within {TIMEOUT:?}")).flatten().map_err(|why| format!("{url}: {why}"))
}
