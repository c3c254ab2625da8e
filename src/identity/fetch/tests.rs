use std::{io::Read as _, net::TcpListener, sync::Arc};

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::{FetchFault, Fetcher, is_loopback, requestable};
use crate::identity::testing::{Answer, FakeServer};

#[test]
fn only_https_and_loopback_are_requested() {
    for good in [
        "https://auth.test/jwks",
        "https://auth.test:8443/jwks?x=1",
        "http://localhost:1/a",
        "http://127.9.9.9/a",
        "http://[::1]/a",
    ] {
        assert!(requestable(good).is_ok(), "{good}");
    }
    for bad in [
        "",
        "jwks",
        "//auth.test/jwks",
        "http://auth.test/jwks",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest",
        "http://localhost.evil.test/",
        "http://127.0.0.1.evil.test/",
        "file:///etc/passwd",
        "https://u@auth.test/",
        "https://u:p@auth.test/",
        "https://auth.test/#x",
        "data:,x",
        "http://[::ffff:8.8.8.8]/",
        "http://0.0.0.0/",
    ] {
        assert!(requestable(bad).is_err(), "{bad}");
    }
    assert!(!is_loopback(&requestable("https://auth.test").unwrap()));
}

#[tokio::test]
async fn a_good_answer_is_its_body_and_its_age() {
    let server = FakeServer::start(Answer {
        cache_control: Some("public, max-age=\"60\""),
        body: "x".into(),
        ..Answer::status(200)
    })
    .await;
    let url = requestable(&server.url).unwrap();
    let fetched = Fetcher::new().get(&url).await.unwrap();
    assert_eq!((&fetched.body[..], fetched.max_age), (&b"x"[..], Some(60)));
}

#[tokio::test]
async fn a_body_of_the_bound_is_taken_and_one_byte_more_is_not() {
    let fetcher = Fetcher::new();
    let server = FakeServer::start(Answer { body: "x".repeat(1 << 20), ..Answer::status(200) }).await;
    let url = requestable(&server.url).unwrap();
    assert_eq!(fetcher.get(&url).await.unwrap().body.len(), 1 << 20);
    server.answer(Answer { body: "x".repeat((1 << 20) + 1), ..Answer::status(200) });
    assert!(matches!(fetcher.get(&url).await, Err(FetchFault::Body(_))));
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_a_timeout() {
    let server = FakeServer::start(Answer { delay_ms: 20_000, ..Answer::status(200) }).await;
    let started = std::time::Instant::now();
    let outcome = Fetcher::new().get(&requestable(&server.url).unwrap()).await;
    assert!(matches!(outcome, Err(FetchFault::Timeout)));
    assert!((4..9).contains(&started.elapsed().as_secs()));
}

/// The TLS client is real: a certificate that nobody vouches for ends the connection, loopback or not.
#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialized_der().to_vec()));
    let config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = requestable(&format!("https://localhost:{}/jwks", listener.local_addr().unwrap().port())).unwrap();
    let server = std::thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        let session = rustls::ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = rustls::StreamOwned::new(session, socket);
        let mut request = [0; 1];
        stream.read(&mut request).is_ok_and(|length| length > 0)
    });
    let Err(FetchFault::Transport(cause)) = Fetcher::new().get(&url).await else {
        panic!("the certificate was accepted")
    };
    assert!(cause.contains("UnknownIssuer"), "{cause}");
    assert!(!server.join().unwrap(), "a request was sent");
}
