//! The MCP server behind Envoy: answers every call at once with a fixed answer as large as the call.

use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};

use crate::setting;
use crate::wire::Wire;

/// Calls and answers come in two sizes, and a call of more than this is a large one.
const LARGE: usize = 8 * 1024;

/// Listens on a loopback port, which is returned, on a thread of its own until the program ends.
pub(crate) fn start() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a loopback port");
    let port = listener.local_addr().expect("its address").port();
    listener.set_nonblocking(true).expect("a socket that does not block");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener).expect("a listener");
            let answers = Arc::new([response(1024), response(64 * 1024)]);
            loop {
                if let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, Arc::clone(&answers)));
                }
            }
        });
    });
    port
}

async fn serve(stream: TcpStream, answers: Arc<[Vec<u8>; 2]>) {
    let Ok(mut wire) = Wire::new(stream) else { return };
    while let Ok(Some(call)) = wire.receive().await {
        let answer = &answers[usize::from(call.body > LARGE)];
        if wire.send(answer).await.is_err() {
            return;
        }
    }
}

fn response(bytes: usize) -> Vec<u8> {
    let body = setting::answer(bytes);
    let mut response =
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len())
            .into_bytes();
    response.extend_from_slice(&body);
    response
}
