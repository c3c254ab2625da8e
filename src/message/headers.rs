//! HTTP headers as Envoy hands them over: in order, repeats kept apart, names and values as bytes.

use bytes::Bytes;

/// One HTTP header. Both parts share the buffer in which they were received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Name in lower case (HTTP/2 form, which Envoy always uses), pseudo-headers with their colon.
    pub name: Bytes,
    /// Value as the bytes stand.
    pub value: Bytes,
}

impl Header {
    /// A header of its own bytes, for those who make one.
    #[must_use]
    pub fn new(name: &str, value: &[u8]) -> Self {
        Self { name: Bytes::copy_from_slice(name.as_bytes()), value: Bytes::copy_from_slice(value) }
    }

    /// The name as text; empty where it is none, which is the name of no header.
    #[must_use]
    pub fn name(&self) -> &str {
        std::str::from_utf8(&self.name).unwrap_or_default()
    }
}

/// The headers of one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<Header>);

impl Headers {
    /// Takes headers in the order in which they came.
    #[must_use]
    pub fn new(headers: Vec<Header>) -> Self {
        Self(headers)
    }

    /// All of them in order.
    pub fn iter(&self) -> impl Iterator<Item = &Header> {
        self.0.iter()
    }

    /// The value under `name`, when there is exactly one such header; repeats are for [`Headers::all`] to see.
    #[must_use]
    pub fn single(&self, name: &str) -> Option<&[u8]> {
        let mut all = self.all(name);
        let first = all.next()?;
        if all.next().is_some() { None } else { Some(first) }
    }

    /// Every value under `name`.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |header| header.name == name.as_bytes()).map(|header| &*header.value)
    }

    /// Whether there is any header under `name`.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|header| header.name == name.as_bytes())
    }

    /// The only value under `name` as text, with surrounding blanks and tabs removed (RFC 9110 §5.5).
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.single(name).and_then(|value| std::str::from_utf8(value).ok()).map(|value| value.trim_matches([' ', '\t']))
    }
}

/// The essence of a media type (`type/subtype`, lower case compared): what stands before the first `;`.
#[must_use]
pub fn essence_is(content_type: &str, expected: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim_matches([' ', '\t']);
    essence.eq_ignore_ascii_case(expected)
}
