use super::*;

fn made(pairs: &[(&str, &str)]) -> Headers {
    Headers::new(pairs.iter().map(|(name, value)| Header::new(name, value.as_bytes())).collect())
}

#[test]
fn repeats_are_kept_apart_and_are_no_single_value() {
    let headers = made(&[("a", "1"), ("b", " 2\t"), ("a", "3")]);
    assert_eq!(headers.all("a").collect::<Vec<_>>(), [b"1", b"3"]);
    assert_eq!((headers.single("a"), headers.text("b"), headers.has("c")), (None, Some("2"), false));
}

#[test]
fn headers_in_a_message_are_those_at_their_places() {
    let bytes = Bytes::from_static(b"?:path=/mcp?");
    let headers = Headers::within(bytes, vec![Place { name: 1..6, value: 7..11 }, Place { name: 0..0, value: 90..91 }]);
    assert_eq!(headers, made(&[(":path", "/mcp"), ("", "")]));
    assert_ne!(headers, made(&[(":path", "/mcp")]));
}
