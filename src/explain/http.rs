//! A whole HTTP/1.1 request out of a file, as Envoy would hand it over.

use crate::ladder::Head;
use crate::ladder::head::{Attributes, Modes};
use crate::message::headers::{Header, Headers};

/// Why a file holds no request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct Malformed {
    /// The line, from 1.
    pub line: usize,
    /// What was expected, what came.
    pub message: String,
}

/// Reads request line, headers, a blank line and the body; lines end with LF or CRLF. `scheme` is what the edge speaks.
///
/// Without `Content-Length` the rest of the file is the body. With one, white space behind the body is the editor's.
///
/// # Errors
/// What Envoy would answer itself, or what cannot be meant: the first of it.
pub fn read(bytes: &[u8], scheme: &str, attributes: Attributes) -> Result<(Head, Vec<u8>), Malformed> {
    let mut lines = Lines { rest: bytes, number: 0 };
    let (method, target) = request_line(&mut lines)?;
    let mut headers = Vec::new();
    let mut host = None;
    while let Some(line) = lines.next().filter(|line| !line.is_empty()) {
        let header = header(line, lines.number)?;
        if header.name() == "host" {
            host = Some(header.value.to_vec());
        } else {
            add(&mut headers, header);
        }
    }
    let fault = |line, message: &str| Malformed { line, message: message.to_owned() };
    let body = body(&headers, lines.rest).map_err(|message| Malformed { line: lines.number, message })?;
    let (authority, path) = match target.split_once("://").map(|(_, rest)| rest) {
        Some(rest) => {
            let (authority, path) =
                rest.split_at_checked(rest.find(['/', '?']).unwrap_or(rest.len())).unwrap_or((rest, ""));
            (Some(authority.as_bytes().to_vec()), if path.is_empty() { "/".to_owned() } else { path.to_owned() })
        }
        None if method == "CONNECT" => (Some(target.clone().into_bytes()), String::new()),
        None => (host, target.clone()),
    };
    let authority =
        authority.ok_or_else(|| fault(lines.number, "expected a Host header, found none; add `Host: …`"))?;
    let mut all = vec![Header::new(":method", method.as_bytes()), Header::new(":authority", &authority)];
    if !path.is_empty() {
        all.push(Header::new(":path", path.as_bytes()));
    }
    all.push(Header::new(":scheme", scheme.as_bytes()));
    all.extend(headers);
    if !body.is_empty() && !all.iter().any(|header| header.name() == "content-length") {
        all.push(Header::new("content-length", body.len().to_string().as_bytes()));
    }
    Ok((Head { headers: Headers::new(all), attributes, ends: body.is_empty(), modes: Modes::Whole }, body))
}

/// Envoy joins repeats of these two with a comma and hands over the others one by one (ladder.md, rung 4).
fn add(headers: &mut Vec<Header>, header: Header) {
    let joined = matches!(header.name(), "authorization" | "content-type");
    match headers.iter_mut().find(|known| joined && known.name == header.name) {
        Some(known) => known.value = [&*known.value, b",", &*header.value].concat().into(),
        None => headers.push(header),
    }
}

struct Lines<'a> {
    rest: &'a [u8],
    number: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        self.number = self.number.saturating_add(1);
        let mut parts = self.rest.splitn(2, |byte| *byte == b'\n');
        let line = parts.next().unwrap_or_default();
        self.rest = parts.next().unwrap_or_default();
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

fn request_line(lines: &mut Lines<'_>) -> Result<(String, String), Malformed> {
    let line = lines.next().unwrap_or_default();
    let text = std::str::from_utf8(line).ok().filter(|text| text.bytes().all(|byte| (0x20..0x7F).contains(&byte)));
    let mut words = text.unwrap_or_default().split(' ');
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None)
            if !method.is_empty() && !target.is_empty() && method.bytes().all(is_token) =>
        {
            Ok((method.to_owned(), target.to_owned()))
        }
        _ => Err(Malformed { line: 1, message: "expected a request line such as `POST /mcp HTTP/1.1`".to_owned() }),
    }
}

fn header(line: &[u8], number: usize) -> Result<Header, Malformed> {
    let fault = |message: &str| Malformed { line: number, message: message.to_owned() };
    if line.starts_with(b" ") || line.starts_with(b"\t") {
        return Err(fault(
            "expected a header, found a line that begins with white space; write each header on one line",
        ));
    }
    let mut parts = line.splitn(2, |byte| *byte == b':');
    let (name, value) = (parts.next().unwrap_or_default(), parts.next());
    let Some(value) = value.filter(|_| !name.is_empty() && name.iter().copied().all(is_token)) else {
        return Err(fault(
            "expected a header such as `Content-Type: application/json`, or a blank line before the body",
        ));
    };
    if value.iter().any(|byte| matches!(byte, 0 | b'\r')) {
        return Err(fault("expected a header's value without NUL and carriage return"));
    }
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    if name == "transfer-encoding" {
        return Err(fault(
            "expected the body as it is, found Transfer-Encoding; remove the header and the chunk sizes",
        ));
    }
    Ok(Header::new(&name, value.trim_ascii()))
}

fn body(headers: &[Header], rest: &[u8]) -> Result<Vec<u8>, String> {
    let Some(declared) = headers.iter().find(|header| header.name() == "content-length") else {
        return Ok(rest.to_vec());
    };
    let length = std::str::from_utf8(&declared.value).ok().and_then(|text| text.parse::<usize>().ok());
    let length =
        length.ok_or("expected Content-Length to be a number of bytes; remove it, and the rest is the body")?;
    let (body, behind) = rest.split_at_checked(length).ok_or_else(|| {
        format!(
            "expected the {length} bytes that Content-Length promises, found {}; remove it, and the rest is the body",
            rest.len()
        )
    })?;
    if behind.iter().all(u8::is_ascii_whitespace) {
        return Ok(body.to_vec());
    }
    Err(format!(
        "expected nothing behind the {length} bytes that Content-Length promises, found {} more; remove it, and the rest is the body",
        behind.len()
    ))
}

/// RFC 9110 §5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
