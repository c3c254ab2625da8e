//! From replies to what Envoy reads (`ProcessingResponse`), written in one go: each length is known before its bytes.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::time::Duration;

use bytes::BufMut;
use smallvec::SmallVec;

use crate::exchange::{Immediate, Reply, Verdict};
use crate::ladder::forward::HeaderEdits;
use crate::message::protobuf::{begin, bytes, field_len, number, number_len};

/// Our namespace of dynamic metadata: Envoy's `metadata_options.receiving_namespaces` must name it.
const NAMESPACE: &[u8] = b"portcullis";

/// One reply, measured.
pub(super) struct Message<'a> {
    reply: &'a Reply,
    /// Bytes of its `CommonResponse`, or of its `ImmediateResponse`.
    inner: usize,
    metadata: Option<Metadata<'a>>,
}

impl<'a> Message<'a> {
    pub(super) fn of(reply: &'a Reply) -> Self {
        let (inner, verdict) = match reply {
            Reply::RequestHeaders { edits, verdict } | Reply::RequestBody { edits, verdict } => {
                (edited_len(edits), Some(verdict))
            }
            Reply::ResponseHeaders { edits } => (edited_len(edits), None),
            // CommonResponse.body_mutation, BodyMutation.streamed_response.
            Reply::ResponseBody { bytes, ends } => (field_len(field_len(piece_len(bytes, *ends))), None),
            Reply::ResponseTrailers | Reply::MoreTime(_) => (0, None),
            Reply::Immediate(immediate) => (immediate_len(immediate), Some(&immediate.verdict)),
        };
        Self { reply, inner, metadata: verdict.map(Metadata::of) }
    }

    /// Its bytes.
    pub(super) fn len(&self) -> usize {
        let response = match self.reply {
            Reply::MoreTime(time) => field_len(duration_len(*time)),
            Reply::ResponseTrailers => field_len(0),
            Reply::Immediate(_) => field_len(self.inner),
            // A CommonResponse that says nothing is left out.
            _ if self.inner == 0 => field_len(0),
            _ => field_len(field_len(self.inner)),
        };
        response + self.metadata.as_ref().map_or(0, |metadata| field_len(metadata.outer()))
    }

    pub(super) fn write(&self, out: &mut impl BufMut) {
        match self.reply {
            Reply::RequestHeaders { edits, .. } => self.common(out, 1, |out| write_edits(out, edits)),
            Reply::ResponseHeaders { edits } => self.common(out, 2, |out| write_edits(out, edits)),
            Reply::RequestBody { edits, .. } => self.common(out, 3, |out| write_edits(out, edits)),
            Reply::ResponseBody { bytes, ends } => self.common(out, 4, |out| write_piece(out, bytes, *ends)),
            // ProcessingResponse.response_trailers, empty.
            Reply::ResponseTrailers => begin(out, 6, 0),
            Reply::Immediate(immediate) => {
                // ProcessingResponse.immediate_response.
                begin(out, 7, self.inner);
                write_immediate(out, immediate);
            }
            // ProcessingResponse.override_message_timeout. Envoy reads nothing else of such a message, so nothing else is said.
            Reply::MoreTime(time) => {
                begin(out, 10, duration_len(*time));
                write_duration(out, *time);
            }
        }
        if let Some(metadata) = &self.metadata {
            // ProcessingResponse.dynamic_metadata.
            begin(out, 8, metadata.outer());
            metadata.write(out);
        }
    }

    /// A field of the oneof that is a `HeadersResponse` or a `BodyResponse`: in both, `response` is a `CommonResponse` under 1.
    fn common<B: BufMut>(&self, out: &mut B, field: u8, write: impl FnOnce(&mut B)) {
        if self.inner == 0 {
            return begin(out, field, 0);
        }
        begin(out, field, field_len(self.inner));
        begin(out, 1, self.inner);
        write(out);
    }
}

/// `CommonResponse.header_mutation`; 0 when there is nothing to change.
fn edited_len(edits: &HeaderEdits) -> usize {
    if edits.set.is_empty() && edits.remove.is_empty() { 0 } else { field_len(mutation_len(edits)) }
}

/// `HeaderMutation`.
fn mutation_len(edits: &HeaderEdits) -> usize {
    let set = edits.set.iter().map(|(name, value)| set_len(name, value));
    let removed = edits.remove.iter().map(|name| field_len(name.len()));
    set.chain(removed).sum()
}

/// `HeaderMutation.set_headers`, one of them: a `HeaderValueOption`, whose `header` is a `HeaderValue`.
fn set_len(name: &str, value: impl AsRef<[u8]>) -> usize {
    field_len(field_len(header_len(name, value.as_ref())))
}

/// `HeaderValue`. Envoy 1.40 reads `raw_value` only: a mutation that uses `value` sets an empty header.
fn header_len(name: &str, value: &[u8]) -> usize {
    field_len(name.len()) + field_len(value.len())
}

fn write_set(out: &mut impl BufMut, name: &str, value: &[u8]) {
    let header = header_len(name, value);
    begin(out, 1, field_len(header));
    begin(out, 1, header);
    bytes(out, 1, name.as_bytes());
    bytes(out, 3, value);
}

fn write_edits(out: &mut impl BufMut, edits: &HeaderEdits) {
    begin(out, 2, mutation_len(edits));
    for (name, value) in &edits.set {
        write_set(out, name, value);
    }
    for name in &edits.remove {
        let name: &Cow<'_, str> = name;
        bytes(out, 2, name.as_bytes());
    }
}

/// `StreamedBodyResponse`.
fn piece_len(bytes: &[u8], ends: bool) -> usize {
    field_len(bytes.len()) + if ends { number_len(1) } else { 0 }
}

fn write_piece(out: &mut impl BufMut, piece: &[u8], ends: bool) {
    let length = piece_len(piece, ends);
    begin(out, 3, field_len(length));
    begin(out, 3, length);
    bytes(out, 1, piece);
    if ends {
        number(out, 2, 1);
    }
}

/// `ImmediateResponse`: `status` (an `HttpStatus`, whose `code` is 1), `headers`, `body`, `details`.
fn immediate_len(immediate: &Immediate) -> usize {
    field_len(number_len(immediate.status.into()))
        + field_len(immediate_headers_len(immediate))
        + field_len(immediate.body.len())
        + field_len(immediate.details.len())
}

fn immediate_headers_len(immediate: &Immediate) -> usize {
    immediate.headers.iter().map(|(name, value)| set_len(name, value)).sum()
}

fn write_immediate(out: &mut impl BufMut, immediate: &Immediate) {
    begin(out, 1, number_len(immediate.status.into()));
    number(out, 1, immediate.status.into());
    begin(out, 2, immediate_headers_len(immediate));
    for (name, value) in &immediate.headers {
        write_set(out, name, value.as_bytes());
    }
    bytes(out, 3, &immediate.body);
    bytes(out, 5, immediate.details.as_bytes());
}

/// `google.protobuf.Duration`.
fn duration_len(time: Duration) -> usize {
    number_len(time.as_secs()) + number_len(time.subsec_nanos().into())
}

fn write_duration(out: &mut impl BufMut, time: Duration) {
    number(out, 1, time.as_secs());
    number(out, 2, time.subsec_nanos().into());
}

/// What the second lock and the access log read: a `google.protobuf.Struct` with one struct in it.
struct Metadata<'a> {
    decided: bool,
    texts: SmallVec<[(&'static str, &'a str); 8]>,
    /// Bytes of the struct that is ours.
    ours: usize,
}

const DECIDED: &str = "decided";

impl<'a> Metadata<'a> {
    /// A verdict says both keys of the lock: an earlier filter may have planted them, and Envoy merges, so a key that is left out
    /// would keep what was planted. While nothing is decided, `decided: false` alone keeps the lock shut, and the rest follows
    /// with the verdict: each key costs Envoy as much as a small decision.
    fn of(verdict: &'a Verdict) -> Self {
        let mut texts = SmallVec::<[(&'static str, &'a str); 8]>::new();
        if verdict.decided {
            texts.push(("server", verdict.server.as_deref().unwrap_or_default()));
        }
        let more = [
            ("decision", verdict.decision),
            ("reason", verdict.reason_text()),
            ("method", &verdict.method),
            ("capability", &verdict.capability),
            ("principal", &verdict.principal),
            ("id", &verdict.id),
        ];
        texts.extend(more.into_iter().filter(|(_, said)| !said.is_empty()));
        let flag = field_len(entry_len(DECIDED.as_bytes(), number_len(1)));
        let ours = flag + texts.iter().map(|(name, said)| field_len(text_len(name, said))).sum::<usize>();
        Self { decided: verdict.decided, texts, ours }
    }

    /// Bytes of the outer struct.
    fn outer(&self) -> usize {
        field_len(entry_len(NAMESPACE, field_len(self.ours)))
    }

    fn write(&self, out: &mut impl BufMut) {
        let value = field_len(self.ours);
        write_entry(out, NAMESPACE, value);
        // Value.struct_value.
        begin(out, 5, self.ours);
        write_entry(out, DECIDED.as_bytes(), number_len(1));
        // Value.bool_value, said also where it is false.
        number(out, 4, self.decided.into());
        for (name, said) in &self.texts {
            write_entry(out, name.as_bytes(), field_len(said.len()));
            // Value.string_value.
            bytes(out, 3, said.as_bytes());
        }
    }
}

/// An entry of `Struct.fields` whose Value has `value` bytes.
fn entry_len(key: &[u8], value: usize) -> usize {
    field_len(key.len()) + field_len(value)
}

fn text_len(key: &str, said: &str) -> usize {
    entry_len(key.as_bytes(), field_len(said.len()))
}

/// `Struct.fields`, one entry up to its Value, which is to follow.
fn write_entry(out: &mut impl BufMut, key: &[u8], value: usize) {
    begin(out, 1, entry_len(key, value));
    bytes(out, 1, key);
    begin(out, 2, value);
}
