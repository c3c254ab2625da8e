//! Envoy's side of the contract, spoken directly: exchanges without an Envoy, so that what is measured is Portcullis.

use std::collections::HashMap;
use std::path::Path;

use envoy_types::pb::envoy::config::core::v3::{HeaderMap, HeaderValue};
use envoy_types::pb::envoy::extensions::filters::http::ext_proc::v3::processing_mode::BodySendMode;
use envoy_types::pb::envoy::service::ext_proc::v3::external_processor_client::ExternalProcessorClient;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_request::Request as Phase;
use envoy_types::pb::envoy::service::ext_proc::v3::processing_response::Response as Answer;
use envoy_types::pb::envoy::service::ext_proc::v3::{
    HttpBody, HttpHeaders, ProcessingRequest, ProcessingResponse, ProtocolConfiguration,
};
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{Struct, Value as Field};
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, Sender};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};

use crate::setting;
use crate::support::fixture;

/// One exchange in the middle; over when dropped.
pub(crate) struct Exchange {
    to: Sender<ProcessingRequest>,
    from: Streaming<ProcessingResponse>,
}

/// One HTTP/2 connection to the socket of a processor.
pub(crate) async fn connect(socket: &Path) -> Channel {
    let endpoint = Endpoint::from_shared(format!("unix:{}", socket.display())).expect("the path of a socket");
    // As Envoy has it.
    let endpoint = endpoint.initial_stream_window_size(64 * 1024).initial_connection_window_size(1 << 30);
    endpoint.connect().await.expect("the processor takes connections")
}

/// A subscription whose head has gone down, and which is idle from now on.
pub(crate) async fn subscribe(channel: Channel, token: &str) -> Exchange {
    let message = fixture::rpc("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let mut exchange = ask(channel, &message, token).await;
    exchange.say(head(&[(":status", "200"), ("content-type", "text/event-stream")], Phase::ResponseHeaders)).await;
    exchange
}

/// A whole call and its answer.
pub(crate) async fn call(channel: Channel, message: &Value, token: &str, answer: &[u8]) {
    let mut exchange = ask(channel, message, token).await;
    let length = answer.len().to_string();
    let headers = setting::answer_headers(&length);
    // Envoy sends the body of an answer without waiting, and the head goes down with it.
    exchange.to.send(head(&headers, Phase::ResponseHeaders)).await.expect("the processor listens");
    let body = HttpBody { body: answer.to_vec(), end_of_stream: true, ..HttpBody::default() };
    let first = exchange.say(message_of(Phase::ResponseBody(body))).await;
    assert!(matches!(first, Answer::ResponseHeaders(_)), "expected the answer's head to pass, got {first:?}");
    let second = exchange.hear().await;
    assert!(matches!(second, Answer::ResponseBody(_)), "expected the answer to pass, got {second:?}");
    // To its end: an HTTP/2 client that forgets a stream counts what still comes of it as errors, and gives up after 1,024.
    let last = exchange.from.message().await.expect("the stream ends well");
    assert!(last.is_none(), "expected the stream to end, got {last:?}");
}

async fn ask(channel: Channel, message: &Value, token: &str) -> Exchange {
    let (to, requests) = mpsc::channel(1);
    let mut client = ExternalProcessorClient::new(channel);
    let from = client.process(ReceiverStream::new(requests)).await.expect("the processor takes a stream").into_inner();
    let mut exchange = Exchange { to, from };
    let authorization = format!("Bearer {token}");
    let mut first = head(&setting::headers(message, &authorization), Phase::RequestHeaders);
    first.attributes = attributes();
    first.protocol_config = Some(ProtocolConfiguration {
        request_body_mode: BodySendMode::Buffered.into(),
        response_body_mode: BodySendMode::FullDuplexStreamed.into(),
        ..ProtocolConfiguration::default()
    });
    exchange.say(first).await;
    let body = HttpBody { body: message.to_string().into_bytes(), end_of_stream: true, ..HttpBody::default() };
    exchange.say(message_of(Phase::RequestBody(body))).await;
    exchange
}

impl Exchange {
    /// Says the next and hears what is answered, which must not be a refusal.
    async fn say(&mut self, message: ProcessingRequest) -> Answer {
        self.to.send(message).await.expect("the processor listens");
        self.hear().await
    }

    async fn hear(&mut self) -> Answer {
        let heard = self.from.message().await.expect("the stream goes on").and_then(|heard| heard.response);
        match heard {
            None => panic!("expected a call that passes, the stream ended"),
            Some(Answer::ImmediateResponse(refusal)) => {
                panic!(
                    "expected a call that passes, got {}: {}",
                    refusal.details,
                    String::from_utf8_lossy(&refusal.body)
                )
            }
            Some(answer) => answer,
        }
    }
}

fn message_of(phase: Phase) -> ProcessingRequest {
    ProcessingRequest { request: Some(phase), ..ProcessingRequest::default() }
}

fn head(headers: &[(&str, &str)], phase: fn(HttpHeaders) -> Phase) -> ProcessingRequest {
    let header = |(name, value): &(&str, &str)| HeaderValue {
        key: (*name).to_owned(),
        raw_value: value.as_bytes().to_vec(),
        ..HeaderValue::default()
    };
    let headers = headers.iter().map(header).collect();
    message_of(phase(HttpHeaders { headers: Some(HeaderMap { headers }), ..HttpHeaders::default() }))
}

fn attributes() -> HashMap<String, Struct> {
    let text = |text: &str| Field { kind: Some(Kind::StringValue(text.to_owned())) };
    let fields = [("xds.route_name", "cases"), ("xds.cluster_name", "cases")];
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), text(value))).collect();
    HashMap::from([("envoy.filters.http.ext_proc".to_owned(), Struct { fields })])
}
