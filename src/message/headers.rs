//! HTTP headers as Envoy hands them over: in order, repeats kept apart, names and values as bytes.

use std::ops::Range;

use bytes::Bytes;

#[cfg(test)]
mod tests;

/// One HTTP header of its own bytes, for those who make one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Name in lower case (HTTP/2 form, which Envoy always uses), pseudo-headers with their colon.
    pub name: Bytes,
    /// Value as the bytes stand.
    pub value: Bytes,
}

impl Header {
    /// Copies both.
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

/// One header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderRef<'a> {
    /// As [`Header::name`].
    pub name: &'a [u8],
    /// As [`Header::value`].
    pub value: &'a [u8],
}

impl<'a> HeaderRef<'a> {
    /// The name as text; empty where it is none, which is the name of no header.
    #[must_use]
    pub fn name(self) -> &'a str {
        std::str::from_utf8(self.name).unwrap_or_default()
    }

    /// The same header with bytes of its own.
    #[must_use]
    pub fn to_owned(self) -> Header {
        Header { name: Bytes::copy_from_slice(self.name), value: Bytes::copy_from_slice(self.value) }
    }
}

/// Where one header stands in the bytes of its message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its name.
    pub name: Range<usize>,
    /// Its value.
    pub value: Range<usize>,
}

/// The headers of one message. All of them share the buffer in which they were received.
#[derive(Clone, Debug, Default)]
pub struct Headers {
    bytes: Bytes,
    places: Vec<Place>,
}

impl Headers {
    /// Copies headers, in the order in which they came.
    #[must_use]
    pub fn new(headers: Vec<Header>) -> Self {
        let (mut bytes, mut places) = (Vec::new(), Vec::with_capacity(headers.len()));
        let mut put = |text: &[u8]| {
            let start = bytes.len();
            bytes.extend_from_slice(text);
            start..bytes.len()
        };
        for header in headers {
            places.push(Place { name: put(&header.name), value: put(&header.value) });
        }
        Self { bytes: bytes.into(), places }
    }

    /// Headers that stand in `bytes`, in the order in which they came. A place that is not within them is an empty header.
    #[must_use]
    pub fn within(bytes: Bytes, places: Vec<Place>) -> Self {
        Self { bytes, places }
    }

    /// All of them in order.
    pub fn iter(&self) -> impl Iterator<Item = HeaderRef<'_>> {
        self.places.iter().map(|place| HeaderRef { name: self.at(&place.name), value: self.at(&place.value) })
    }

    fn at(&self, place: &Range<usize>) -> &[u8] {
        self.bytes.get(place.start..place.end).unwrap_or_default()
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
        let name = name.as_bytes();
        // Most names differ in length already, which needs no look at the bytes.
        let named = move |place: &&Place| place.name.len() == name.len() && self.at(&place.name) == name;
        self.places.iter().filter(named).map(|place| self.at(&place.value))
    }

    /// Whether there is any header under `name`.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// The only value under `name` as text, with surrounding blanks and tabs removed (RFC 9110 §5.5).
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.single(name).and_then(|value| std::str::from_utf8(value).ok()).map(|value| value.trim_matches([' ', '\t']))
    }
}

impl PartialEq for Headers {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Headers {}

/// The essence of a media type (`type/subtype`, lower case compared): what stands before the first `;`.
#[must_use]
pub fn essence_is(content_type: &str, expected: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim_matches([' ', '\t']);
    essence.eq_ignore_ascii_case(expected)
}

/// Whether a body of this media type has the essence `expected` and is text in UTF-8, as it is read here: a `charset` that
/// says anything else makes another message of the same bytes for a reader that believes it.
///
/// Some readers look for the word anywhere in the value, so it may stand nowhere but in a well-formed parameter.
#[must_use]
pub fn utf8_is(content_type: &str, expected: &str) -> bool {
    essence_is(content_type, expected) && content_type.split(';').skip(1).all(no_other_charset)
}

fn no_other_charset(parameter: &str) -> bool {
    let parameter = parameter.trim_matches([' ', '\t']).to_ascii_lowercase();
    let value = parameter.strip_prefix("charset=");
    let bare = value.map(|value| value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value));
    matches!(bare, Some("utf-8" | "utf8")) || !parameter.contains("charset")
}
