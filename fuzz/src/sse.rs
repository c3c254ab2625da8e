//! The framer of server-sent events against the standard's algorithm, and against itself on the same bytes in other pieces.

use portcullis::message::sse::{Frame, Framer, TooLarge};

use super::input::Input;

type Frames = (Vec<Result<Frame, TooLarge>>, Vec<u8>);

/// A bound, up to seven places to cut at, then the stream.
pub fn check(data: &[u8]) {
    let mut input = Input(data);
    let max = if input.flag() { usize::from(input.byte()) } else { 1 << 20 };
    let cuts: Vec<usize> = input.bytes().iter().take(7).map(|at| usize::from(*at)).collect();
    let stream = input.0;
    let whole = frames(max, [stream]);
    assert_eq!(whole, frames(max, stream.chunks(1)), "byte by byte");
    assert_eq!(whole, frames(max, pieces(stream, &cuts)), "cut at {cuts:?}");
    let (frames, rest) = whole;
    let mut joined = Vec::new();
    let mut data = Vec::new();
    for frame in frames {
        match frame {
            Ok(Frame::Filler(bytes)) => joined.extend_from_slice(&bytes),
            Ok(Frame::Event(event)) => {
                assert!(event.raw.len() <= max, "an event above the bound");
                joined.extend_from_slice(&event.raw);
                data.push(event.data);
            }
            Err(TooLarge { .. }) => {
                assert!(stream.len() > max, "nothing is above the bound");
                return;
            }
        }
    }
    joined.extend_from_slice(&rest);
    assert_eq!(joined, stream, "what passes is what came");
    assert_eq!(data, dispatched(stream), "what a receiver dispatches");
}

fn pieces<'s>(mut stream: &'s [u8], cuts: &[usize]) -> Vec<&'s [u8]> {
    let mut pieces = Vec::new();
    for cut in cuts {
        let (piece, rest) = stream.split_at((*cut).min(stream.len()));
        pieces.push(piece);
        stream = rest;
    }
    pieces.push(stream);
    pieces
}

fn frames<'s>(max: usize, pieces: impl IntoIterator<Item = &'s [u8]>) -> Frames {
    let mut framer = Framer::new(max);
    let mut all = Vec::new();
    for piece in pieces {
        framer.push(piece);
        all.extend(framer.by_ref());
        if all.last().is_some_and(Result::is_err) {
            // How much of what is not judged was held depends on the pieces.
            return (all, Vec::new());
        }
    }
    (all, framer.finish())
}

/// The data of the events that WHATWG's algorithm dispatches, save that a byte order mark in front of any event is skipped,
/// and that an event with an empty `data` line is one.
pub(crate) fn dispatched(stream: &[u8]) -> Vec<Vec<u8>> {
    let (mut events, mut data, mut begun) = (Vec::new(), None::<Vec<u8>>, false);
    for line in lines(stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream)) {
        if line.is_empty() {
            events.extend(data.take());
            begun = false;
            continue;
        }
        let line = if begun { line } else { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line) };
        begun = begun || !line.starts_with(b":");
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        if field == b"data" {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match &mut data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => data = Some(value.to_vec()),
            }
        }
    }
    events
}

/// The lines that have ended.
fn lines(stream: &[u8]) -> Vec<&[u8]> {
    let (mut lines, mut from, mut at) = (Vec::new(), 0, 0);
    while at < stream.len() {
        let wide = match &stream[at..] {
            [b'\r', b'\n', ..] => 2,
            [b'\r' | b'\n', ..] => 1,
            _ => {
                at += 1;
                continue;
            }
        };
        lines.push(&stream[from..at]);
        at += wide;
        from = at;
    }
    lines
}
