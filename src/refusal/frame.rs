//! The JSON-RPC error object, written so that it cannot fail on the wire.
//!
//! Three tiers: the full frame; a minimal one without `data` (and without the id when the id is what is wrong); a
//! constant. A tier is used only when what it wrote reads back through our own strict reader, because parts of a frame
//! are other people's bytes: the caller's id, a gate's details.

use crate::message::json::{Document, Kind, Limits};

use super::reason::DEFAULT_CODE;
use super::{Detail, Refusal};

/// Most bytes of `error.message`.
pub const MESSAGE_CAP: usize = 1024;
/// Most bytes of `error.data`.
pub const DATA_CAP: usize = 8 * 1024;

/// The last tier, when nothing else can be written.
pub const CONSTANT: &str =
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"The request was refused."}}"#;

// The constant carries the code constant, checked when this compiles; that it is valid JSON is checked by `tests`.
const _: () = assert!(DEFAULT_CODE == -32000);

/// How much of the frame could be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Everything.
    Full,
    /// Without `data`, or without the id.
    Minimal,
    /// The constant.
    Constant,
}

/// What a frame says, apart from the refusal itself.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    /// The caller's id, byte for byte; `None` when none could be read: the member is left out.
    pub id: Option<&'a str>,
    /// JSON-RPC code.
    pub code: i32,
    /// Public text.
    pub message: &'a str,
    /// Whether `data` names reason, rung and decision.
    pub explain: bool,
    /// Decision id.
    pub decision: &'a str,
}

/// Writes the frame of `refusal`. `cap` bounds the whole frame in bytes.
#[must_use]
pub fn write(refusal: &Refusal, content: Content<'_>, cap: usize) -> (Vec<u8>, Tier) {
    let mut data = Vec::new();
    if write_data(&mut data, refusal, content) && data.len() <= DATA_CAP {
        let full = assemble(content, IdForm::of(content.id), &data);
        if acceptable(&full, cap) {
            return (full, Tier::Full);
        }
    }
    for id in [IdForm::of(content.id), IdForm::Null] {
        let minimal = assemble(content, id, &[]);
        if acceptable(&minimal, cap) {
            return (minimal, Tier::Minimal);
        }
    }
    (CONSTANT.as_bytes().to_vec(), Tier::Constant)
}

/// How the `id` member is written.
#[derive(Clone, Copy)]
enum IdForm<'a> {
    Echo(&'a str),
    LeftOut,
    /// JSON-RPC 2.0 §5.1: a tier that lost the caller's id says `null`.
    Null,
}

impl<'a> IdForm<'a> {
    fn of(id: Option<&'a str>) -> Self {
        id.map_or(Self::LeftOut, Self::Echo)
    }
}

fn assemble(content: Content<'_>, id: IdForm<'_>, data: &[u8]) -> Vec<u8> {
    let id_length = if let IdForm::Echo(id) = id { id.len() } else { 4 };
    let mut out = Vec::with_capacity(96 + id_length + content.message.len().min(MESSAGE_CAP) + data.len());
    out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    match id {
        IdForm::Echo(id) => {
            out.extend_from_slice(br#""id":"#);
            out.extend_from_slice(id.as_bytes());
            out.push(b',');
        }
        IdForm::Null => out.extend_from_slice(br#""id":null,"#),
        IdForm::LeftOut => {}
    }
    out.extend_from_slice(br#""error":{"code":"#);
    out.extend_from_slice(content.code.to_string().as_bytes());
    out.extend_from_slice(br#","message":"#);
    string(&mut out, cut(content.message, MESSAGE_CAP));
    if !data.is_empty() {
        out.extend_from_slice(br#","data":"#);
        out.extend_from_slice(data);
    }
    out.extend_from_slice(b"}}");
    out
}

/// Writes the members of `data`, or nothing when there is none to write; `false` when they cannot be rendered.
fn write_data(out: &mut Vec<u8>, refusal: &Refusal, content: Content<'_>) -> bool {
    let Ok(foreign) = foreign_members(refusal) else { return false };
    let mut object = Members::new(out);
    for (name, value) in &refusal.data {
        detail(object.member(name), value);
    }
    if content.explain {
        string(object.member("error"), refusal.error());
        string(object.member("plugin"), refusal.plugin());
        if let Some(description) = refusal.description.as_deref().filter(|text| !text.is_empty()) {
            string(object.member("description"), cut(description, MESSAGE_CAP));
        }
        if !refusal.details.is_empty() || !foreign.is_empty() {
            let mut details = Members::new(object.member("details"));
            for (name, value) in &refusal.details {
                detail(details.member(name), value);
            }
            details.all(&foreign);
            details.close();
        }
        if !content.decision.is_empty() {
            string(object.member("decision"), content.decision);
        }
    }
    object.close();
    true
}

/// What stands between the braces of a gate's own details, without what we say ourselves (`retry_after_seconds`): ours
/// comes from a field of its own. They are read on their own first: text that is only balanced within the frame could
/// write members of `data` itself.
///
/// # Errors
/// Why they do not read as one JSON object.
fn foreign_members(refusal: &Refusal) -> Result<String, String> {
    let Some(details) = refusal.gate.as_ref().and_then(|gate| gate.details.as_deref()) else {
        return Ok(String::new());
    };
    let document = Document::read(details.as_bytes().to_vec(), Limits { depth: 24, nodes: 2048 })
        .map_err(|fault| format!("expected `details` to be one JSON object: {fault}"))?;
    if document.root().kind() != Kind::Object {
        return Err("expected `details` to be one JSON object, got another JSON value".to_owned());
    }
    let foreign = |name: Option<&str>| !refusal.details.iter().any(|(own, _)| Some(*own) == name);
    if document.root().entries().all(|(key, _)| foreign(key.as_str())) {
        let inside = document.root().raw().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        return Ok(inside.unwrap_or_default().trim_ascii().to_owned());
    }
    let members = document.root().entries().filter(|(key, _)| foreign(key.as_str()));
    Ok(members.map(|(key, value)| format!("{}:{}", key.raw(), value.raw())).collect::<Vec<_>>().join(","))
}

/// Why a frame says less than it was to, for the operator.
#[must_use]
pub fn why_less(refusal: &Refusal) -> String {
    let content = Content { id: None, code: 0, message: "", explain: true, decision: "" };
    let mut data = Vec::new();
    let why = match foreign_members(refusal) {
        Err(fault) => fault,
        Ok(foreign) => {
            write_data(&mut data, refusal, content);
            // The decision's id is not counted here.
            if data.len().saturating_add(64) > DATA_CAP {
                format!(
                    "expected `details` and the rest of at most {DATA_CAP} bytes, got {} ({} of them `details`)",
                    data.len(),
                    foreign.len()
                )
            } else {
                "the caller's id, or one of the details, cannot stand in a frame".to_owned()
            }
        }
    };
    format!("error.data could not be rendered and was left out: {why}")
}

/// An object under construction; nothing is written before its first member.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    open: bool,
}

impl<'a> Members<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, open: false }
    }

    fn member(&mut self, name: &str) -> &mut Vec<u8> {
        self.out.push(if self.open { b',' } else { b'{' });
        self.open = true;
        string(self.out, name);
        self.out.push(b':');
        self.out
    }

    /// Members as somebody else wrote them, already read as those of one object.
    fn all(&mut self, members: &str) {
        if !members.is_empty() {
            self.out.push(if self.open { b',' } else { b'{' });
            self.open = true;
            self.out.extend_from_slice(members.as_bytes());
        }
    }

    fn close(self) {
        if self.open {
            self.out.push(b'}');
        }
    }
}

fn detail(out: &mut Vec<u8>, value: &Detail) {
    match value {
        Detail::Text(text) => string(out, cut(text, MESSAGE_CAP)),
        Detail::Number(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Detail::Json(json) => out.extend_from_slice(json.as_bytes()),
        Detail::Texts(texts) => {
            out.push(b'[');
            for (n, text) in texts.iter().enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                string(out, cut(text, MESSAGE_CAP));
            }
            out.push(b']');
        }
    }
}

/// The plain form where no frame can be sent: `{"error","message","plugin"}`.
#[must_use]
pub fn plain(error: &str, plugin: &str, message: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + message.len().min(MESSAGE_CAP));
    let mut object = Members::new(&mut out);
    string(object.member("error"), error);
    string(object.member("message"), cut(message, MESSAGE_CAP));
    string(object.member("plugin"), plugin);
    object.close();
    out
}

/// The body of a challenge: OAuth's `{"error","error_description"}`.
#[must_use]
pub fn challenge(error: &str, description: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + description.len().min(MESSAGE_CAP));
    let mut object = Members::new(&mut out);
    string(object.member("error"), error);
    string(object.member("error_description"), cut(description, MESSAGE_CAP));
    object.close();
    out
}

/// Whether the frame fits and reads back as the one error object it is meant to be.
fn acceptable(frame: &[u8], cap: usize) -> bool {
    let limits = Limits { depth: 32, nodes: 4096 };
    frame.len() <= cap
        && Document::read(frame.to_vec(), limits).is_ok_and(|document| {
            let id = document.root().get("id").map(|id| id.kind());
            matches!(id, None | Some(Kind::String | Kind::Number | Kind::Null))
                && document.root().get("error").is_some()
        })
}

/// `text`, cut at a character border to at most `cap` bytes.
fn cut(text: &str, cap: usize) -> &str {
    if text.len() <= cap {
        return text;
    }
    let end = (0..=cap).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

fn string(out: &mut Vec<u8>, text: &str) {
    crate::message::write::string(out, text);
}
