//! Envoy's own messages, encoded by its own types, against what is read of them.

use std::collections::HashMap;

use envoy_types::pb::envoy::config::core::v3 as core;
use envoy_types::pb::envoy::service::ext_proc::v3 as envoy;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_request::Request as Phase;
use envoy_types::pb::google::protobuf as google;
use envoy_types::pb::google::protobuf::value::Kind as GoogleKind;
use proptest::prelude::*;
use prost::Message as _;

use super::*;

const FILTER_NAME: &str = "envoy.filters.http.ext_proc";
const JWT_NAME: &str = "envoy.filters.http.jwt_authn";

/// What is read of a message of Envoy's.
fn read(message: &envoy::ProcessingRequest) -> Event {
    event(&message.encode_to_vec().into()).expect("the same wire format")
}

fn phase(request: Phase) -> envoy::ProcessingRequest {
    envoy::ProcessingRequest { request: Some(request), ..Default::default() }
}

fn text_value(text: &str) -> google::Value {
    google::Value { kind: Some(GoogleKind::StringValue(text.into())) }
}

fn structure<const N: usize>(fields: [(&str, google::Value); N]) -> google::Struct {
    google::Struct { fields: fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect() }
}

fn headers(pairs: &[(&str, &str, &[u8])], ends: bool) -> envoy::HttpHeaders {
    let header = |(key, value, raw): &(&str, &str, &[u8])| core::HeaderValue {
        key: (*key).into(),
        value: (*value).into(),
        raw_value: raw.to_vec(),
    };
    // The map of attributes here is deprecated, and not ours.
    #[allow(deprecated)]
    envoy::HttpHeaders {
        headers: Some(core::HeaderMap { headers: pairs.iter().map(header).collect() }),
        attributes: HashMap::from([("x".into(), structure([("y", text_value("z"))]))]),
        end_of_stream: ends,
    }
}

fn pairs(headers: &Headers) -> Vec<(String, Vec<u8>)> {
    headers.iter().map(|header| (header.name().to_owned(), header.value.to_vec())).collect()
}

#[test]
fn the_head_of_a_request_is_read_with_what_envoy_says_beside_it() {
    let sent = headers(&[(":method", "", b"POST"), ("x-old", "by value", b""), ("x-raw", "no", &[0xff, 0])], true);
    let attributes = structure([
        ("xds.route_name", text_value("cases")),
        ("xds.cluster_name", text_value("")),
        ("source.address", text_value("192.0.2.7:51234")),
        ("connection.uri_san_peer_certificate", text_value("spiffe://acme/agent")),
        ("request.size", google::Value { kind: Some(GoogleKind::NumberValue(1.0)) }),
    ]);
    let claims = structure([
        ("sub", text_value("a\"b")),
        ("n", google::Value { kind: Some(GoogleKind::NumberValue(7.0)) }),
        ("none", google::Value { kind: Some(GoogleKind::NullValue(0)) }),
        ("yes", google::Value { kind: Some(GoogleKind::BoolValue(true)) }),
        (
            "list",
            google::Value {
                kind: Some(GoogleKind::ListValue(google::ListValue { values: vec![text_value("x"), text_value("y")] })),
            },
        ),
    ]);
    let payload = google::Value { kind: Some(GoogleKind::StructValue(claims)) };
    let message = envoy::ProcessingRequest {
        attributes: HashMap::from([
            (FILTER_NAME.into(), attributes),
            ("another.filter".into(), structure([("xds.route_name", text_value("not ours"))])),
        ]),
        metadata_context: Some(core::Metadata {
            filter_metadata: HashMap::from([
                (JWT_NAME.into(), structure([("payload", payload)])),
                ("another".into(), structure([("payload", text_value("not ours"))])),
            ]),
            typed_filter_metadata: HashMap::from([(JWT_NAME.into(), google::Any::default())]),
        }),
        protocol_config: Some(envoy::ProtocolConfiguration {
            request_body_mode: BodySendMode::Buffered as i32,
            response_body_mode: BodySendMode::FullDuplexStreamed as i32,
            send_body_without_waiting_for_header_response: true,
        }),
        observability_mode: true,
        ..phase(Phase::RequestHeaders(sent))
    };
    let Event::RequestHeaders(head) = read(&message) else { panic!("expected a head") };
    assert_eq!(
        pairs(&head.headers),
        [
            (":method".to_owned(), b"POST".to_vec()),
            ("x-old".to_owned(), b"by value".to_vec()),
            ("x-raw".to_owned(), vec![0xff, 0])
        ]
    );
    assert_eq!((head.ends, head.modes), (true, Modes::Whole));
    let Attributes { route, cluster, peer_uri, jwt_payloads, source } = head.attributes;
    assert_eq!(source.as_deref(), Some("192.0.2.7:51234"));
    assert_eq!((route.as_deref(), cluster.as_deref()), (Some("cases"), Some("")));
    assert_eq!(peer_uri.as_deref(), Some("spiffe://acme/agent"));
    let [(key, claims)] = jwt_payloads.as_slice() else { panic!("{jwt_payloads:?}") };
    let claims: serde_json::Value = serde_json::from_str(claims).expect("JSON");
    assert_eq!(key, "payload");
    assert_eq!(claims, serde_json::json!({"sub": "a\"b", "n": 7, "none": null, "yes": true, "list": ["x", "y"]}));
}

#[test]
fn what_envoy_does_not_say_is_absent() {
    let Event::RequestHeaders(head) = read(&phase(Phase::RequestHeaders(headers(&[], false)))) else {
        panic!("expected a head")
    };
    assert_eq!((head.attributes, head.modes, head.ends), (Attributes::default(), Modes::Unknown, false));
}

#[test]
fn other_modes_are_other() {
    for (request, response) in [
        (BodySendMode::Buffered, BodySendMode::Buffered),
        (BodySendMode::BufferedPartial, BodySendMode::FullDuplexStreamed),
        (BodySendMode::Streamed, BodySendMode::FullDuplexStreamed),
        (BodySendMode::None, BodySendMode::None),
    ] {
        let config = envoy::ProtocolConfiguration {
            request_body_mode: request as i32,
            response_body_mode: response as i32,
            ..Default::default()
        };
        let head = phase(Phase::RequestHeaders(headers(&[], false)));
        let Event::RequestHeaders(head) = read(&envoy::ProcessingRequest { protocol_config: Some(config), ..head })
        else {
            panic!("expected a head")
        };
        assert_eq!(head.modes, Modes::Other);
    }
}

#[test]
fn every_other_phase_is_the_event_of_its_name() {
    let body = |ends| envoy::HttpBody { body: b"{}".to_vec(), end_of_stream: ends, ..Default::default() };
    assert!(matches!(read(&phase(Phase::RequestBody(body(true)))), Event::RequestBody(bytes) if bytes == b"{}"));
    for ends in [true, false] {
        let Event::ResponseBody { bytes, ends: read_ends } = read(&phase(Phase::ResponseBody(body(ends)))) else {
            panic!("expected a piece of an answer")
        };
        assert_eq!((&*bytes, read_ends), (b"{}".as_slice(), ends));
        let answer = phase(Phase::ResponseHeaders(headers(&[(":status", "", b"200")], ends)));
        let Event::ResponseHeaders { headers, ends: read_ends } = read(&answer) else {
            panic!("expected the head of an answer")
        };
        assert_eq!((pairs(&headers), read_ends), (vec![(":status".to_owned(), b"200".to_vec())], ends));
    }
    assert!(matches!(read(&phase(Phase::ResponseTrailers(envoy::HttpTrailers::default()))), Event::ResponseTrailers));
    assert!(matches!(read(&phase(Phase::RequestTrailers(envoy::HttpTrailers::default()))), Event::Fault(_)));
    assert!(matches!(read(&envoy::ProcessingRequest::default()), Event::Fault(_)));
}

/// The message with each `~` in it made a byte that is in no text.
fn spoiled(message: &envoy::ProcessingRequest) -> Event {
    let bytes: Vec<u8> = message.encode_to_vec().iter().map(|byte| if *byte == b'~' { 0xff } else { *byte }).collect();
    event(&bytes.into()).expect("the same wire format")
}

#[test]
fn what_is_no_text_is_a_fault_and_never_nearly_the_same() {
    let head = headers(&[("x-~", "", b"v")], true);
    assert!(matches!(spoiled(&phase(Phase::RequestHeaders(head.clone()))), Event::Fault(_)));
    assert!(matches!(spoiled(&phase(Phase::ResponseHeaders(head))), Event::Fault(_)));
    let request = || phase(Phase::RequestHeaders(headers(&[], true)));
    for name in ["xds.route_name", "xds.cluster_name", "connection.uri_san_peer_certificate", "source.address"] {
        let said = structure([(name, text_value("cases~"))]);
        let message = envoy::ProcessingRequest { attributes: HashMap::from([(FILTER_NAME.into(), said)]), ..request() };
        assert!(matches!(spoiled(&message), Event::Fault(_)), "{name}");
        assert!(matches!(read(&message), Event::RequestHeaders(_)), "{name}");
    }
    let claim = |text| structure([("p", text_value(text))]);
    let verified = |payloads| {
        let filter_metadata = HashMap::from([(JWT_NAME.into(), payloads)]);
        let metadata = core::Metadata { filter_metadata, ..Default::default() };
        envoy::ProcessingRequest { metadata_context: Some(metadata), ..request() }
    };
    assert!(matches!(spoiled(&verified(claim("~"))), Event::Fault(_)));
    assert!(matches!(read(&verified(claim("x"))), Event::RequestHeaders(_)));
    assert!(matches!(read(&verified(google::Struct::default())), Event::RequestHeaders(_)));
}

#[test]
fn what_may_be_there_once_and_comes_twice_is_no_message() {
    let head = phase(Phase::RequestHeaders(headers(&[(":path", "", b"/mcp")], false))).encode_to_vec();
    let config =
        envoy::ProtocolConfiguration { request_body_mode: BodySendMode::Buffered as i32, ..Default::default() };
    let config = envoy::ProcessingRequest { protocol_config: Some(config), ..Default::default() }.encode_to_vec();
    let body =
        phase(Phase::RequestBody(envoy::HttpBody { body: b"{}".to_vec(), ..Default::default() })).encode_to_vec();
    for twice in [[head.as_slice(), &head], [&head, &body], [&body, &head], [&config, &config]] {
        assert_eq!(event(&twice.concat().into()).err(), Some(Malformed));
    }
    assert!(matches!(event(&[head, config].concat().into()), Ok(Event::RequestHeaders(_))));
    // A value where text should be, and text where a value should be.
    for bytes in [&[0x10, 1][..], &[0x4a, 0x02, 0x08, 0x01], &[0x22, 0x02, 0x08, 0x01], &[0x22, 0x03, 0x12, 0x01, 0x01]]
    {
        assert_eq!(event(&Bytes::copy_from_slice(bytes)).err(), Some(Malformed), "{bytes:?}");
    }
}

proptest! {
    /// Whatever headers Envoy sends are read as its own types read them.
    #[test]
    fn headers_are_read_as_envoys_own_types_read_them(
        sent in prop::collection::vec(("[:a-z0-9-]{0,20}", prop::collection::vec(any::<u8>(), 0..40)), 0..30),
    ) {
        let borrowed: Vec<_> = sent.iter().map(|(key, raw)| (key.as_str(), "", raw.as_slice())).collect();
        let Event::RequestHeaders(head) = read(&phase(Phase::RequestHeaders(headers(&borrowed, false)))) else {
            panic!("expected a head")
        };
        prop_assert_eq!(pairs(&head.headers), sent);
    }

    /// Bytes that are no message are refused or are an event; never a panic.
    #[test]
    fn any_bytes_are_an_event_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        drop(event(&bytes.into()));
    }

    /// A message of Envoy's with some bytes changed is never read otherwise than Envoy's own types read it.
    #[test]
    fn what_is_read_of_spoiled_bytes_is_what_envoys_own_types_read(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let head = headers(&[(":path", "", b"/mcp"), ("mcp-name", "old", b"")], true);
        let said = structure([("xds.route_name", text_value("cases"))]);
        let message = envoy::ProcessingRequest {
            attributes: HashMap::from([(FILTER_NAME.into(), said)]),
            ..phase(Phase::RequestHeaders(head))
        };
        let mut bytes = message.encode_to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let ours = event(&bytes.clone().into());
        // What their types refuse or repeat, ours may refuse too; what ours accept, theirs read the same.
        let Ok(Event::RequestHeaders(head)) = ours else { return Ok(()) };
        let Ok(theirs) = envoy::ProcessingRequest::decode(bytes.as_slice()) else { return Ok(()) };
        let Some(Phase::RequestHeaders(their_head)) = theirs.request else { panic!("expected a head too") };
        prop_assert_eq!(head.ends, their_head.end_of_stream);
        let theirs = their_head.headers.unwrap_or_default().headers.into_iter().map(|header| {
            let value = if header.raw_value.is_empty() { header.value.into_bytes() } else { header.raw_value };
            (header.key, value)
        });
        prop_assert_eq!(pairs(&head.headers), theirs.collect::<Vec<_>>());
    }
}
