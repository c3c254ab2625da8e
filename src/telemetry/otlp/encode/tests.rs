use opentelemetry::KeyValue;
use opentelemetry::{Array, Value as Configured};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue as Pair;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use opentelemetry_proto::transform::common::tonic::{Attributes, ResourceAttributesWithSchema};
use opentelemetry_sdk::Resource;
use proptest::prelude::*;
use prost::Message as _;

use crate::message::protobuf::{fixed32, fixed64, message, number};

use super::{Envelope, Value, attribute, text};

fn pair(name: &str, value: Configured) -> Pair {
    Attributes::from([KeyValue::new(name.to_owned(), value)]).0.remove(0)
}

/// An attribute of a span, ours beside what prost makes of the SDK's.
fn same(name: &str, value: Value<'_>, of_sdk: Configured) {
    let expected = Span { attributes: vec![pair(name, of_sdk)], ..Span::default() }.encode_to_vec();
    let mut own = Vec::new();
    attribute(&mut own, 9, name, value);
    assert_eq!(own, expected, "{name} {value:?}");
}

proptest! {
    #[test]
    fn attributes_have_the_bytes_that_the_generated_code_writes(
        name in "[a-z.]{1,200}",
        words in "\\PC{0,400}",
        int in any::<i64>(),
        yes in any::<bool>(),
        numbers in proptest::collection::vec(any::<u32>(), 0..40),
        texts in proptest::collection::vec("[a-z]{0,60}", 0..6),
    ) {
        same(&name, Value::Text(&words), Configured::from(words.clone()));
        same(&name, Value::Int(int), Configured::I64(int));
        same(&name, Value::Bool(yes), Configured::Bool(yes));
        let of_sdk = numbers.iter().map(|number| i64::from(*number)).collect();
        same(&name, Value::Ints(&numbers), Configured::Array(Array::I64(of_sdk)));
        let of_sdk = texts.iter().map(|text| text.clone().into()).collect();
        same(&name, Value::Texts(&texts), Configured::Array(Array::String(of_sdk)));
    }

    #[test]
    fn messages_of_every_length_have_their_length_in_front(size in 0_usize..40_000, start in 0_u64..=u64::MAX, flags in any::<u32>()) {
        let name = "x".repeat(size);
        let span = Span { name: name.clone(), start_time_unix_nano: start.max(1), kind: 300, flags: 0, ..Span::default() };
        let expected = ScopeSpans { spans: vec![span], ..ScopeSpans::default() }.encode_to_vec();
        let mut own = Vec::new();
        message(&mut own, 2, |out| {
            text(out, 5, &name);
            number(out, 6, 300);
            fixed64(out, 7, start.max(1));
        });
        prop_assert_eq!(&own, &expected);
        let mut own = Vec::new();
        fixed32(&mut own, 6, flags.max(1));
        let link = opentelemetry_proto::tonic::trace::v1::span::Link { flags: flags.max(1), ..Default::default() };
        prop_assert_eq!(own, link.encode_to_vec());
    }
}

#[test]
fn a_request_says_who_tells_as_the_sdk_would() {
    let resource = Resource::builder_empty()
        .with_schema_url(
            [
                KeyValue::new("service.name", "portcullis"),
                KeyValue::new("a.number", 7_i64),
                KeyValue::new("a.share", 0.25),
                KeyValue::new("a.flag", true),
                KeyValue::new("a.list", Configured::Array(Array::String(vec!["x".into(), "y".into()]))),
                KeyValue::new("flags", Configured::Array(Array::Bool(vec![true, false]))),
                KeyValue::new("shares", Configured::Array(Array::F64(vec![0.5]))),
                KeyValue::new("numbers", Configured::Array(Array::I64(vec![-1]))),
            ],
            "https://opentelemetry.io/schemas/1.36.0",
        )
        .build();
    let span = |name: &str| Span { name: name.to_owned(), ..Span::default() };
    let mut items = Vec::new();
    message(&mut items, 2, |out| text(out, 5, "one"));
    message(&mut items, 2, |out| text(out, 5, &"two".repeat(100)));
    let (mut whole, request) = (Vec::new(), Envelope::new(&resource).wrap(items));
    request.write(&mut whole);
    assert_eq!(whole.len(), request.len());
    let request = ExportTraceServiceRequest::decode(whole.as_slice()).expect("protobuf");
    let of_sdk = ResourceAttributesWithSchema::from(&resource);
    let [ResourceSpans { resource: Some(told), scope_spans, schema_url }] = request.resource_spans.as_slice() else {
        panic!("expected one resource, got {request:?}")
    };
    assert_eq!(told.attributes, of_sdk.attributes.0);
    assert_eq!(Some(schema_url), of_sdk.schema_url.as_ref());
    let [ScopeSpans { scope: Some(scope), spans, .. }] = scope_spans.as_slice() else {
        panic!("expected one scope, got {scope_spans:?}")
    };
    assert_eq!(scope.name, "portcullis");
    assert_eq!(*spans, [span("one"), span(&"two".repeat(100))]);
}
