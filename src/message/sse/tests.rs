use proptest::prelude::*;

use super::*;

/// All frames of `chunks` and what was left.
fn frames<'c>(max: usize, chunks: impl IntoIterator<Item = &'c [u8]>) -> (Vec<Result<Frame, TooLarge>>, Vec<u8>) {
    let mut framer = Framer::new(max);
    let mut all = Vec::new();
    for chunk in chunks {
        framer.push(chunk);
        all.extend(framer.by_ref());
    }
    (all, framer.finish())
}

/// Events as `raw=data`, filler as `~bytes`, the rest as `!bytes`.
fn shown(input: &str) -> Vec<String> {
    let (frames, rest) = frames(1000, [input.as_bytes()]);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let shown = frames.into_iter().map(|frame| match frame.unwrap() {
        Frame::Filler(bytes) => format!("~{}", text(bytes)),
        Frame::Event(Event { raw, data }) => format!("{}={}", text(raw), text(data)),
    });
    let mut shown: Vec<_> = shown.collect();
    shown.extend((!rest.is_empty()).then(|| format!("!{}", text(rest))));
    shown
}

#[test]
fn events_and_their_data() {
    for (input, want) in [
        ("data: a\n\n", &["data: a\n\n=a"][..]),
        ("data:a\n\n", &["data:a\n\n=a"]),
        ("data:  a\n\n", &["data:  a\n\n= a"]),
        ("data\n\n", &["data\n\n="]),
        ("data:\n\n", &["data:\n\n="]),
        ("data: a\ndata\ndata:b\n\n", &["data: a\ndata\ndata:b\n\n=a\n\nb"]),
        ("data: a\r\ndata: b\r\n\r\n", &["data: a\r\ndata: b\r\n\r=a\nb", "~\n"]),
        ("data: a\rdata: b\r\r", &["data: a\rdata: b\r\r=a\nb"]),
        ("data: a\r\n\ndata: b\n\r\n", &["data: a\r\n\n=a", "data: b\n\r=b", "~\n"]),
        (
            "id: 7\nevent: message\n: note\ndata: a\nretry: 5\n\n",
            &["id: 7\nevent: message\n: note\ndata: a\nretry: 5\n\n=a"],
        ),
        ("datax: a\nData: b\n data: c\ndata: d\n\n", &["datax: a\nData: b\n data: c\ndata: d\n\n=d"]),
        ("data: a\n\ndata: b", &["data: a\n\n=a", "!data: b"]),
        ("data: a\n", &["!data: a\n"]),
    ] {
        assert_eq!(shown(input), want, "{input:?}");
    }
}

#[test]
fn filler_passes_at_once() {
    for (input, want) in [
        (": ping\n", &["~: ping\n"][..]),
        (":\r\n\r\n", &["~:\r", "~\n", "~\r", "~\n"]),
        ("\n\n\n", &["~\n", "~\n", "~\n"]),
        ("id: 3\nretry: 9\n\n", &["~id: 3\nretry: 9\n\n"]),
        ("event: x\n: c\n\ndata: a\n\n", &["~event: x\n: c\n\n", "data: a\n\n=a"]),
        ("\u{feff}data: a\n\n", &["~\u{feff}", "data: a\n\n=a"]),
        ("\u{feff}\u{feff}data: a\n\n", &["~\u{feff}", "\u{feff}data: a\n\n=a"]),
        ("data: a\n\n\u{feff}data: b\n\n", &["data: a\n\n=a", "\u{feff}data: b\n\n=b"]),
        ("id: 1\n\u{feff}data: b\n\n", &["~id: 1\n\u{feff}data: b\n\n"]),
        ("data: a\n\n\u{feff}: b\n\u{feff}\n", &["data: a\n\n=a", "~\u{feff}: b\n", "!\u{feff}\n"]),
    ] {
        assert_eq!(shown(input), want, "{input:?}");
    }
}

#[test]
fn an_event_is_complete_at_the_cr_of_its_blank_line() {
    let mut framer = Framer::new(100);
    framer.push(b"data: a\r\n\r");
    assert_eq!(framer.next(), Some(Ok(Frame::Event(Event { raw: b"data: a\r\n\r".to_vec(), data: b"a".to_vec() }))));
    assert_eq!(framer.next(), None);
    framer.push(b"\n: keep-alive\r");
    assert_eq!(framer.next(), Some(Ok(Frame::Filler(b"\n".to_vec()))));
    assert_eq!(framer.next(), Some(Ok(Frame::Filler(b": keep-alive\r".to_vec()))));
    assert_eq!(framer.next(), None);
    framer.push(b"\ndata");
    assert_eq!(framer.next(), Some(Ok(Frame::Filler(b"\n".to_vec()))));
    assert_eq!(framer.next(), None);
    assert_eq!(framer.finish(), b"data");
}

#[test]
fn half_a_byte_order_mark_waits() {
    let mut framer = Framer::new(100);
    framer.push(b"\xEF\xBB");
    assert_eq!(framer.next(), None);
    framer.push(b"\xBF");
    assert_eq!(framer.next(), Some(Ok(Frame::Filler(b"\xEF\xBB\xBF".to_vec()))));
    let (all, rest) = frames(100, [b"\xEF".as_slice(), b"\xBBdata: x\n\n"]);
    assert_eq!(all, [Ok(Frame::Filler(b"\xEF\xBBdata: x\n\n".to_vec()))]);
    assert!(rest.is_empty());
}

#[test]
fn too_large_is_known_at_the_first_byte_over() {
    let fits = b"data: 12\n\n";
    let (frames_at, _) = frames(fits.len(), [fits.as_slice()]);
    assert!(frames_at.iter().all(Result::is_ok));
    let mut framer = Framer::new(fits.len() - 1);
    framer.push(b"data: 12");
    assert_eq!(framer.next(), None);
    framer.push(b"3");
    assert_eq!(framer.next(), None);
    framer.push(b"4");
    assert_eq!(framer.next(), Some(Err(TooLarge { max: 9 })));
    framer.push(b"\n\ndata: 1\n\n");
    assert_eq!(framer.next(), None);
    assert_eq!(framer.finish(), b"data: 1234");
    for long in [": a comment without end", "id: 1\nid: 2\nid: 3\n", "data: 1\ndata: 2\n", "data: a longer one\n\n"] {
        let (all, _) = frames(8, [b"data:1\n\n".as_slice(), long.as_bytes()]);
        assert!(all[0].is_ok(), "{long:?}");
        assert_eq!(all[1..], [Err(TooLarge { max: 8 })], "{long:?}");
    }
}

#[test]
fn written_events_read_back() {
    let mut out = Vec::new();
    event(&mut out, b"{\"a\":\n1,\r\n\"b\"\r:2}");
    event(&mut out, b"");
    assert_eq!(out, b"data: {\"a\":\ndata: 1,\ndata: \"b\"\ndata: :2}\n\ndata: \n\n");
}

#[test]
fn other_data_keeps_every_other_line() {
    let raw = b"id: 1\r\n: note\r\ndata:old\r\nretry: 5\rdata: more\nevent: message\n\r";
    let event = Event { raw: raw.to_vec(), data: b"old\nmore".to_vec() };
    let want: &[u8] = b"id: 1\r\n: note\r\ndata: new\r\ndata: 2\r\nretry: 5\revent: message\n\r";
    assert_eq!(event.with_data(b"new\n2"), want);
    let mixed = Event { raw: b"data: a\rdata: b\n\n".to_vec(), data: b"a\nb".to_vec() };
    assert_eq!(mixed.with_data(b"c"), b"data: c\r\n\n");
    for marks in ["\u{feff}", "\u{feff}\u{feff}"] {
        let marked = Event { raw: format!("{marks}data: a\ndata: b\n\n").into(), data: b"b".to_vec() };
        assert_eq!(marked.with_data(b"c"), b"data: c\n\n");
    }
}

#[test]
fn a_long_event_byte_by_byte_is_linear() {
    let mut input = vec![b'x'; 2_000_000];
    input.splice(..0, *b"data: ");
    input.extend_from_slice(b"\n\n");
    let (frames, rest) = frames(usize::MAX, input.chunks(1));
    assert_eq!(frames.len(), 1);
    assert!(rest.is_empty());
}

/// What the standard says, slowly, over the whole input: the data of every event that is dispatched.
fn dispatched(input: &[u8]) -> Vec<Vec<u8>> {
    read(input, false)
}

/// The same; with `marks`, a byte order mark in front of any event is skipped.
fn read(input: &[u8], marks: bool) -> Vec<Vec<u8>> {
    let input = input.strip_prefix(BYTE_ORDER_MARK).unwrap_or(input);
    let mut text = Vec::new();
    let mut bytes = input.iter().peekable();
    while let Some(byte) = bytes.next() {
        if *byte == b'\r' {
            bytes.next_if(|next| **next == b'\n');
        }
        text.push(if *byte == b'\r' { b'\n' } else { *byte });
    }
    let mut lines: Vec<_> = text.split(|byte| *byte == b'\n').collect();
    lines.pop();
    let (mut events, mut data) = (Vec::new(), Vec::new());
    let mut between = true;
    for line in lines {
        let unmarked = line.strip_prefix(BYTE_ORDER_MARK).filter(|_| marks && between).unwrap_or(line);
        between = line.is_empty() || (between && unmarked.starts_with(b":"));
        let line = if unmarked.is_empty() { line } else { unmarked };
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            _ if line.is_empty() => {
                if data.pop().is_some() {
                    events.push(std::mem::take(&mut data));
                }
                continue;
            }
            Some(colon) => (&line[..colon], line[colon + 1..].strip_prefix(b" ").unwrap_or(&line[colon + 1..])),
            None => (line, &[][..]),
        };
        if field == b"data" {
            data.extend_from_slice(value);
            data.push(b'\n');
        }
    }
    events
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    const ENDS: [&str; 5] = ["\n", "\r", "\r\n", "\n\n", "\r\n\r\n"];
    const PARTS: [&str; 11] =
        ["data", "data:", "data: ", "id: 1", "event: message", "retry:5", ":", ": ping", " ", "\u{feff}", "é"];
    let one_of = |texts: &'static [&'static str]| prop::sample::select(texts).prop_map(|text| text.as_bytes().to_vec());
    let piece = prop_oneof![
        6 => one_of(&ENDS),
        6 => one_of(&PARTS),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Cuts `input` at the given places.
fn split<'a>(input: &'a [u8], at: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<_> = at.iter().map(|index| index.index(input.len() + 1)).collect();
    at.extend([0, input.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &input[pair[0]..pair[1]]).collect()
}

/// A burst of small events is no reason to hold as much memory until the stream ends.
#[test]
fn what_waits_holds_little_more_than_what_is_pending() {
    for (burst, pending) in [(":x\n", ""), ("data: x\n\n", "data: y"), ("data: x\r\r", "\u{FEFF}")] {
        let mut framer = Framer::new(1 << 20);
        framer.push(burst.repeat((1 << 20) / burst.len()).as_bytes());
        framer.push(pending.as_bytes());
        assert_eq!(framer.by_ref().filter(Result::is_err).count(), 0);
        assert!(framer.buffer.capacity() <= ROOM, "{burst:?}: {}", framer.buffer.capacity());
        assert_eq!(framer.finish(), pending.as_bytes());
    }
}

proptest! {
    #[test]
    fn any_split_gives_the_same_frames(
        input in stream(),
        at in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        max in 1_usize..120,
    ) {
        let whole = frames(max, [input.as_slice()]);
        let parts = frames(max, split(&input, &at));
        let bytes = frames(max, input.chunks(1));
        prop_assert_eq!(&whole.0, &parts.0);
        prop_assert_eq!(&whole.0, &bytes.0);
        if whole.0.iter().all(Result::is_ok) {
            prop_assert_eq!(&whole.1, &parts.1);
            prop_assert_eq!(&whole.1, &bytes.1);
        }
    }

    #[test]
    fn nothing_is_lost_and_data_is_the_standards(input in stream()) {
        let (frames, rest) = frames(usize::MAX, [input.as_slice()]);
        let (mut all, mut data) = (Vec::new(), Vec::new());
        for frame in frames {
            match frame.unwrap() {
                Frame::Filler(bytes) => all.extend(bytes),
                Frame::Event(event) => {
                    all.extend(event.raw);
                    data.push(event.data);
                }
            }
        }
        all.extend(rest);
        prop_assert_eq!(&all, &input);
        prop_assert_eq!(data, read(&input, true));
    }

    #[test]
    fn filler_dispatches_nothing(input in stream()) {
        for frame in frames(usize::MAX, [input.as_slice()]).0 {
            if let Frame::Filler(bytes) = frame.unwrap() {
                prop_assert!(dispatched(&bytes).is_empty());
            }
        }
    }

    #[test]
    fn new_data_arrives(input in stream(), data: Vec<u8>) {
        // A receiver sees LF for every line end.
        let mut want = String::from_utf8_lossy(&data).replace("\r\n", "\n").replace('\r', "\n").into_bytes();
        let data = if std::str::from_utf8(&data).is_ok() { data } else { want.clone() };
        want = String::from_utf8_lossy(&data).replace("\r\n", "\n").replace('\r', "\n").into_bytes();
        let mut written = Vec::new();
        event(&mut written, &data);
        prop_assert_eq!(dispatched(&written), [want.clone()]);
        for frame in frames(usize::MAX, [input.as_slice()]).0 {
            if let Frame::Event(event) = frame.unwrap() {
                let changed = event.with_data(&data);
                prop_assert_eq!(dispatched(&changed), [want.clone()]);
                prop_assert_eq!(dispatched(&event.with_data(&event.data)), [event.data]);
            }
        }
    }
}
