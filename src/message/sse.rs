//! Server-sent events: an incremental framer, and writing events.
//!
//! Follows the WHATWG HTML standard, "Interpreting an event stream". A frame keeps the bytes it was made of, so an
//! event that nobody objects to goes on as it came: all frames and the rest of [`Framer::finish`] concatenated are the
//! input. How the input was split into chunks changes no frame; the price is that the LF of a CRLF that ends an event
//! or a line between events is a [`Frame::Filler`] of its own, because the CR had ended the line already.
//!
//! Known attack: `data: x`, blank line, byte order mark, `data: y`. The standard has a receiver ignore the second
//! event, whose field name is not `data`. But if the first event is dropped on the way, the mark stands at the
//! beginning of the stream and the receiver skips it. So a mark in front of any event is read as if it were not there.

mod write;

#[cfg(test)]
mod tests;

pub use write::event;

/// A piece of an event stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Bytes that dispatch nothing at the receiver: the byte order mark, comments and blank lines between events,
    /// events without any `data` line.
    Filler(Vec<u8>),
    /// An event that a receiver dispatches.
    Event(Event),
}

/// One event, complete with the blank line that ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The bytes as they came; when the blank line ended in CRLF, up to its CR.
    pub raw: Vec<u8>,
    /// The values of the `data` lines, joined by LF.
    pub data: Vec<u8>,
}

/// An event, or a line between events, of more bytes than allowed. The framer stops there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected at most {max} bytes in one server-sent event")]
pub struct TooLarge {
    /// The bound that was given to [`Framer::new`].
    pub max: usize,
}

/// Cuts a byte stream into [`Frame`]s as the bytes arrive; every byte is looked at once.
///
/// Push a chunk, then take frames until `None`, which means that more bytes are needed. After [`TooLarge`] there are no
/// more frames, whatever is pushed: what cannot be judged whole must not go on.
#[derive(Debug)]
pub struct Framer {
    max: usize,
    buffer: Vec<u8>,
    /// Start of the frame that is being read: an event, or a line between events.
    start: usize,
    /// Start of the line that is being read.
    line: usize,
    /// Up to where the line was searched for its end.
    scanned: usize,
    /// The last byte of the line before was a CR: an LF at `line` belongs to that.
    after_cr: bool,
    place: Place,
    /// Whether the event that is being read has a `data` line, and the values so far.
    data: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At the very first byte, where a byte order mark may stand.
    Beginning,
    Between,
    InEvent,
    Stopped,
}

/// What [`Framer::lead`] found.
enum Lead {
    /// Too few bytes to know.
    Unknown,
    /// A frame of its own, which ends there.
    Frame(usize),
    /// Nothing: a line follows.
    Line,
}

/// Bytes that the buffer may keep room for while nothing fills them.
const ROOM: usize = 16 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl Framer {
    /// A framer at the beginning of a stream that refuses frames of more than `max_event_bytes` (line ends and field
    /// names counted).
    #[must_use]
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            max: max_event_bytes,
            buffer: Vec::new(),
            start: 0,
            line: 0,
            scanned: 0,
            after_cr: false,
            place: Place::Beginning,
            data: None,
        }
    }

    /// Takes the next bytes of the stream; ignored once a frame was [`TooLarge`].
    pub fn push(&mut self, chunk: &[u8]) {
        if self.place == Place::Stopped {
            return;
        }
        // Only bytes behind the last frame move, and each once: they are part of the next frame.
        if self.start > 0 {
            self.buffer.drain(..self.start.min(self.buffer.len()));
            self.begin_at_start();
        }
        self.buffer.extend_from_slice(chunk);
    }

    /// What was in front of the frame that is being read is gone.
    fn begin_at_start(&mut self) {
        self.line = self.line.saturating_sub(self.start);
        self.scanned = self.scanned.saturating_sub(self.start);
        self.start = 0;
    }

    /// More bytes are needed: a stream may wait for them for hours, and of a chunk of many frames only what is pending is to
    /// wait with it.
    fn give_back(&mut self) {
        let room = self.buffer.capacity();
        if room > ROOM && self.pending() <= room / 4 {
            self.buffer = self.buffer.get(self.start..).unwrap_or_default().to_vec();
            self.begin_at_start();
        }
    }

    /// Whether bytes are held that belong to an event which is not whole yet.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.place != Place::Stopped && self.buffer.len() > self.start
    }

    /// How many bytes are held of it.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.buffer.len().saturating_sub(self.start)
    }

    /// The bytes behind the last frame, at the end of the stream: empty, or a frame that was never completed.
    ///
    /// The standard has receivers discard an incomplete event; not all do, so these bytes are to be judged or dropped.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.buffer.drain(..self.start.min(self.buffer.len()));
        self.buffer
    }

    /// A frame that ends at `end`.
    fn cut(&mut self, end: usize) -> Result<Frame, TooLarge> {
        if end.saturating_sub(self.start) > self.max {
            return Err(self.stop());
        }
        let raw = self.take(end);
        self.place = Place::Between;
        Ok(match self.data.take() {
            Some(data) => Frame::Event(Event { raw, data }),
            None => Frame::Filler(raw),
        })
    }

    /// The bytes of the frame that ends at `end`; the next one starts behind it.
    ///
    /// The shorter side is copied: a frame that fills the buffer, as an event that came alone does, is handed over as it is,
    /// and of many frames in one chunk each is copied once.
    fn take(&mut self, end: usize) -> Vec<u8> {
        let behind = self.buffer.len().saturating_sub(end);
        if self.start == 0 && behind < end {
            let rest = self.buffer.split_off(end.min(self.buffer.len()));
            (self.line, self.scanned) = (0, 0);
            return std::mem::replace(&mut self.buffer, rest);
        }
        let raw = self.buffer.get(self.start..end).unwrap_or_default().to_vec();
        (self.start, self.line, self.scanned) = (end, end, end);
        raw
    }

    fn stop(&mut self) -> TooLarge {
        self.place = Place::Stopped;
        TooLarge { max: self.max }
    }

    /// What stands at the beginning of a line besides the line: a byte order mark at the very first byte, or the LF
    /// that belongs to the CR before.
    fn lead(&mut self) -> Lead {
        let rest = self.buffer.get(self.line..).unwrap_or_default();
        if self.place == Place::Beginning {
            if rest.starts_with(BYTE_ORDER_MARK) {
                return Lead::Frame(BYTE_ORDER_MARK.len());
            }
            if BYTE_ORDER_MARK.starts_with(rest) {
                return Lead::Unknown;
            }
            self.place = Place::Between;
        }
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            if rest.starts_with(b"\n") {
                let end = self.line.saturating_add(1);
                if self.place == Place::Between {
                    return Lead::Frame(end);
                }
                self.line = end;
                self.scanned = self.scanned.max(end);
            }
        }
        Lead::Line
    }

    /// Takes in the line that ends at `end`, line end not included; returns whether a frame ends with it.
    fn take_line(&mut self, end: usize) -> bool {
        let line = self.buffer.get(self.line..end).unwrap_or_default();
        if line.is_empty() {
            return true;
        }
        let mut line = line;
        if self.place == Place::Between {
            line = without_mark(line);
            if line.starts_with(b":") {
                return true;
            }
            self.place = Place::InEvent;
        }
        if let Some(value) = data_value(line) {
            match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            }
        }
        false
    }
}

impl Iterator for Framer {
    type Item = Result<Frame, TooLarge>;

    /// The next frame; `None` when more bytes are needed, and for good after an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.place == Place::Stopped {
            return None;
        }
        loop {
            match self.lead() {
                Lead::Unknown => {
                    self.give_back();
                    return None;
                }
                Lead::Frame(end) => return Some(self.cut(end)),
                Lead::Line => {}
            }
            let unread = self.buffer.get(self.scanned..).unwrap_or_default();
            let Some(found) = line_end(unread) else {
                self.scanned = self.buffer.len();
                self.give_back();
                return (self.pending() > self.max).then(|| Err(self.stop()));
            };
            let end = self.scanned.saturating_add(found);
            self.after_cr = unread.get(found) == Some(&b'\r');
            let done = self.take_line(end);
            let behind = end.saturating_add(1);
            if done {
                return Some(self.cut(behind));
            }
            (self.line, self.scanned) = (behind, behind);
        }
    }
}

/// A line in front of which a byte order mark may stand, without it.
fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
}

/// The value of a `data` line; `None` for every other line.
fn data_value(line: &[u8]) -> Option<&[u8]> {
    match line.strip_prefix(b"data")? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

/// Where the first CR or LF stands.
fn line_end(bytes: &[u8]) -> Option<usize> {
    let ends = |byte: &u8| matches!(byte, b'\n' | b'\r');
    // Whole blocks are asked without an early exit, which the compiler turns into vector code.
    let (blocks, _) = bytes.as_chunks::<32>();
    let clear = blocks.iter().take_while(|block| !block.iter().fold(false, |any, byte| any | ends(byte))).count();
    let offset = clear.saturating_mul(32);
    let rest = bytes.get(offset..).unwrap_or_default();
    rest.iter().position(ends).map(|found| offset.saturating_add(found))
}
