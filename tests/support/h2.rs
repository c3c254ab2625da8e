//! The HTTP/2 side of the caller.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::client::{Body, Reply, Request};

/// Sends a request over a fresh HTTP/2 connection with prior knowledge and reads the whole reply. A reset stream after the
/// headers is a reply that was cut; a reset before them fails the test. Runs on its own thread, so async tests may call it.
pub(crate) fn send(request: &Request, port: u16, patience: Duration) -> Reply {
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async { tokio::time::timeout(patience, exchange(request, port)).await })
    };
    let outcome = std::thread::scope(|scope| scope.spawn(work).join().expect("the HTTP/2 caller does not panic"));
    let outcome = outcome.unwrap_or_else(|_| {
        panic!("expected an HTTP/2 reply to {} {} within {patience:?}, none came", request.method, request.path)
    });
    outcome
        .unwrap_or_else(|fault| panic!("expected an HTTP/2 reply to {} {}, got {fault}", request.method, request.path))
}

async fn exchange(request: &Request, port: u16) -> Result<Reply, h2::Error> {
    let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.expect("Envoy takes the connection");
    let (mut client, connection) = h2::client::handshake(stream).await?;
    let driver = tokio::spawn(connection);
    let uri = format!("http://{}{}", request.authority, request.path);
    let mut head = http::Request::builder().method(request.method.as_str()).uri(uri).body(()).expect("a request head");
    *head.headers_mut() = header_map(&request.headers);
    let (response, mut upload) = client.send_request(head, matches!(request.body, Body::None))?;
    // A server may answer before it took the whole body, and then resets the upload: the answer counts.
    let uploading = async {
        let _ = send_body(&mut upload, &request.body).await;
        std::future::pending::<()>().await;
    };
    let response = tokio::select! {
        response = response => response?,
        () = uploading => unreachable!("it never ends"),
    };
    let reply = read(response).await;
    driver.abort();
    Ok(reply)
}

async fn send_body(upload: &mut h2::SendStream<Bytes>, body: &Body) -> Result<(), h2::Error> {
    match body {
        Body::None => Ok(()),
        Body::Whole(bytes) => send_piece(upload, bytes, true).await,
        Body::Stalled(bytes) => send_piece(upload, bytes, false).await,
        Body::Pieces(pieces, trailers) => {
            for (at, piece) in pieces.iter().enumerate() {
                let last = trailers.is_empty() && at + 1 == pieces.len();
                send_piece(upload, piece, last).await?;
            }
            if trailers.is_empty() { Ok(()) } else { upload.send_trailers(header_map(trailers)) }
        }
    }
}

/// Sends as the peer's window allows.
async fn send_piece(upload: &mut h2::SendStream<Bytes>, piece: &[u8], last: bool) -> Result<(), h2::Error> {
    let mut left = Bytes::copy_from_slice(piece);
    while !left.is_empty() {
        upload.reserve_capacity(left.len());
        let Some(room) = std::future::poll_fn(|context| upload.poll_capacity(context)).await else {
            return Ok(());
        };
        let part = left.split_to(room?.min(left.len()));
        upload.send_data(part, last && left.is_empty())?;
    }
    if piece.is_empty() && last { upload.send_data(Bytes::new(), true) } else { Ok(()) }
}

async fn read(response: http::Response<h2::RecvStream>) -> Reply {
    let status = response.status().as_u16();
    let headers = pairs(response.headers());
    let mut stream = response.into_body();
    let (mut body, mut cut) = (Vec::new(), false);
    while let Some(piece) = stream.data().await {
        let Ok(piece) = piece else {
            cut = true;
            break;
        };
        let _ = stream.flow_control().release_capacity(piece.len());
        body.extend_from_slice(&piece);
    }
    let trailers = if cut { None } else { stream.trailers().await.unwrap_or(None) };
    Reply { status, headers, body, trailers: trailers.as_ref().map(pairs).unwrap_or_default(), cut }
}

fn header_map(headers: &[(String, String)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(
            HeaderName::from_bytes(name.as_bytes()).expect("a header name"),
            HeaderValue::from_bytes(value.as_bytes()).expect("a header value"),
        );
    }
    map
}

fn pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect()
}
