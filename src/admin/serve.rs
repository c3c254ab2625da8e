//! The admin listener's socket, and what bounds whoever dials it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::Admin;
use super::answer::answer;

/// Connections at a time; further ones wait in the system's own bounded queue.
const CONNECTIONS: usize = 64;
/// For the head of a request to be there whole.
const HEAD: Duration = Duration::from_secs(2);
/// For a connection as a whole, one request and its answer.
const WHOLE: Duration = Duration::from_secs(5);
/// Most bytes of a request's head.
const HEAD_BYTES: usize = 16 * 1024;
/// After a connection could not be taken (no file descriptor is left, say).
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until it is dropped.
pub async fn serve(listener: TcpListener, admin: Arc<Admin>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let admin = Arc::clone(&admin);
                tokio::spawn(async move {
                    // What it ends with is the other side's affair.
                    drop(tokio::time::timeout(WHOLE, connection(stream, admin)).await);
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "the admin listener cannot take a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// One request, one answer.
async fn connection(stream: TcpStream, admin: Arc<Admin>) -> Result<(), hyper::Error> {
    let Ok(local) = stream.local_addr() else { return Ok(()) };
    let service = service_fn(move |request| {
        let answered = answer(&admin, &request, local.ip().to_canonical());
        async move { Ok::<_, Infallible>(answered) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await
}
