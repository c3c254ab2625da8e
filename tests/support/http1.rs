//! HTTP/1.1 on the wire, both sides, just enough and by hand: a library would mend what the tests need broken.

use std::io::Read;

use super::Reply;
use super::upstream::Seen;

/// The start line, the headers (names in lower case) and whatever came after the empty line.
fn read_head(stream: &mut impl Read, rest: &mut Vec<u8>) -> Option<(String, Vec<(String, String)>)> {
    let end = loop {
        if let Some(at) = rest.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        fill(stream, rest)?;
    };
    let head = String::from_utf8_lossy(&rest[..end]).into_owned();
    rest.drain(..end + 4);
    let mut lines = head.split("\r\n");
    let start = lines.next()?.to_owned();
    Some((start, lines.filter_map(split_header).collect()))
}

fn split_header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    Some((name.to_ascii_lowercase(), value.trim().to_owned()))
}

fn fill(stream: &mut impl Read, rest: &mut Vec<u8>) -> Option<()> {
    let mut buffer = vec![0; 64 * 1024];
    let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
    rest.extend_from_slice(&buffer[..count]);
    Some(())
}

/// What a message held after its head: body, trailers, and whether its end was missing.
#[derive(Default)]
struct Tail {
    body: Vec<u8>,
    trailers: Vec<(String, String)>,
    cut: bool,
}

fn read_length(stream: &mut impl Read, rest: &mut Vec<u8>, length: usize) -> Tail {
    while rest.len() < length {
        if fill(stream, rest).is_none() {
            return Tail { body: std::mem::take(rest), cut: true, ..Tail::default() };
        }
    }
    Tail { body: rest.drain(..length).collect(), ..Tail::default() }
}

fn read_line(stream: &mut impl Read, rest: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(at) = rest.windows(2).position(|window| window == b"\r\n") {
            let line = String::from_utf8_lossy(&rest[..at]).into_owned();
            rest.drain(..at + 2);
            return Some(line);
        }
        fill(stream, rest)?;
    }
}

fn read_chunks(stream: &mut impl Read, rest: &mut Vec<u8>) -> Tail {
    let mut tail = Tail { cut: true, ..Tail::default() };
    loop {
        let Some(size) = read_line(stream, rest).and_then(|line| usize::from_str_radix(line.trim(), 16).ok()) else {
            return tail;
        };
        if size == 0 {
            break;
        }
        let piece = read_length(stream, rest, size);
        tail.body.extend_from_slice(&piece.body);
        if piece.cut || read_line(stream, rest).is_none() {
            return tail;
        }
    }
    while let Some(line) = read_line(stream, rest) {
        if line.is_empty() {
            tail.cut = false;
            break;
        }
        tail.trailers.extend(split_header(&line));
    }
    tail
}

fn find<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Reads one reply; nothing when the peer closed or stayed silent before a whole head. Interim (1xx) replies are skipped.
pub(crate) fn read_reply(stream: &mut impl Read, rest: &mut Vec<u8>, head: bool) -> Option<Reply> {
    let (start, headers) = read_head(stream, rest)?;
    let status: u16 = start.split(' ').nth(1)?.parse().ok()?;
    if (100..200).contains(&status) && status != 101 {
        return read_reply(stream, rest, head);
    }
    let tail = if head || status == 204 || status == 304 || status == 101 {
        Tail::default()
    } else if find(&headers, "transfer-encoding") == Some("chunked") {
        read_chunks(stream, rest)
    } else if let Some(length) = find(&headers, "content-length").and_then(|length| length.parse().ok()) {
        read_length(stream, rest, length)
    } else {
        while fill(stream, rest).is_some() {}
        Tail { body: std::mem::take(rest), ..Tail::default() }
    };
    Some(Reply { status, headers, body: tail.body, trailers: tail.trailers, cut: tail.cut })
}

/// Reads one request; nothing when the peer closed. A request whose end never came is returned with `cut`.
pub(crate) fn read_request(stream: &mut impl Read, rest: &mut Vec<u8>) -> Option<Seen> {
    let (start, headers) = read_head(stream, rest)?;
    let mut words = start.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let tail = if find(&headers, "transfer-encoding") == Some("chunked") {
        read_chunks(stream, rest)
    } else {
        let length = find(&headers, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        read_length(stream, rest, length)
    };
    Some(Seen { method, path, headers, body: tail.body, trailers: tail.trailers, cut: tail.cut })
}

/// One chunk of a chunked body.
pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut out = format!("{:x}\r\n", bytes.len()).into_bytes();
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
    out
}
