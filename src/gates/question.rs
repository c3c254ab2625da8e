//! What a gate is asked: the verified facts of one call, and nothing that would let it act as the caller.

use std::sync::Arc;

use crate::identity::Caller;
use crate::message::json::{Document, Kind, Value};
use crate::policy::Policy;

/// Most bytes of an intent: a `_meta` key may be as large as a request.
const INTENT_CAP: usize = 8 * 1024;

/// One call, as gates see it. The caller's token, cookies and other headers are not in it.
#[derive(Clone, Debug)]
pub struct Question {
    /// The decision's id.
    pub decision: String,
    /// The guarded server's name.
    pub server: Arc<str>,
    /// Who is calling.
    pub principal: Asker,
    /// The MCP method, or the HTTP method of plain HTTP.
    pub method: String,
    /// Labels of what the call reaches; empty for plain HTTP.
    pub capabilities: Vec<Arc<str>>,
    /// The message; `None` for plain HTTP.
    pub message: Option<Arc<Document>>,
    /// Of plain HTTP: what is asked for.
    pub http: Option<HttpCall>,
    /// Values of the headers that some gate reads its intent from, by name; `None` for one that is there and no text, or
    /// there twice.
    pub headers: Vec<(Arc<str>, Option<String>)>,
    /// The claims of the verified token, for an intent or a rule that is about one. Never sent anywhere whole.
    pub claims: Arc<Document>,
}

/// Authority and path of a plain HTTP request.
#[derive(Clone, Debug)]
pub struct HttpCall {
    /// The authority, comparable.
    pub authority: String,
    /// Path and query as the bytes stand.
    pub path: String,
}

/// The principal by name.
#[derive(Clone, Debug)]
pub struct Asker {
    /// Email, else `issuer#subject`.
    pub name: String,
    /// `iss`.
    pub issuer: Arc<str>,
    /// `sub`.
    pub subject: Arc<str>,
    /// Only when verified.
    pub email: Option<Arc<str>>,
    /// Roles in the order of the rules.
    pub roles: Vec<Arc<str>>,
    /// Names of the permissions held. Whoever holds all has `*` first, then those that the policy names.
    pub permissions: Vec<Arc<str>>,
}

impl Asker {
    /// The caller, with the permissions' names out of the policy that gave them.
    #[must_use]
    pub fn new(caller: &Caller, policy: &Policy) -> Self {
        let principal = &caller.principal;
        let held = &principal.permissions;
        let names = policy.permissions();
        let permissions = if held.is_all() {
            std::iter::once(Arc::from("*")).chain(names.all().cloned()).collect()
        } else {
            held.iter().filter_map(|id| names.name(id).cloned()).collect()
        };
        Self {
            name: principal.to_string(),
            issuer: Arc::clone(&principal.issuer),
            subject: Arc::clone(&principal.subject),
            email: principal.email.clone(),
            roles: principal.roles.clone(),
            permissions,
        }
    }
}

/// The arguments of a call, as far as a gate may see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arguments<'a> {
    /// The text as the caller wrote it, cut at a character border.
    pub json: &'a str,
    /// Whether something was cut.
    pub truncated: bool,
}

impl Question {
    /// `params` of the message.
    fn params(&self) -> Option<Value<'_>> {
        self.message.as_ref()?.root().get("params")
    }

    /// The arguments byte for byte: `params.arguments` where the method has them, else the members of `params` that say
    /// what is asked for. An empty text for plain HTTP.
    #[must_use]
    pub fn arguments(&self) -> String {
        let Some(message) = &self.message else { return String::new() };
        let Some(params) = message.root().get("params") else { return "{}".to_owned() };
        if matches!(self.method.as_str(), "tools/call" | "prompts/get") {
            return params.get("arguments").map_or("{}", |arguments| arguments.raw()).to_owned();
        }
        members(params, &["_meta"])
    }

    /// The members of `params` beside `name`, `arguments` and `_meta`, as one JSON object: what a retry brings after
    /// `input_required`. `None` where there are none, and for methods whose [`Question::arguments`] hold them.
    #[must_use]
    pub fn other_params(&self) -> Option<String> {
        let params = self.params().filter(|_| self.has_arguments())?;
        Some(members(params, &["name", "arguments", "_meta"])).filter(|object| object != "{}")
    }

    /// Whether the call is one of a thing that takes `arguments`.
    pub(super) fn has_arguments(&self) -> bool {
        matches!(self.method.as_str(), "tools/call" | "prompts/get")
    }

    /// The arguments as a value, for rules; `None` where the call has none.
    pub(super) fn arguments_value(&self) -> Option<Value<'_>> {
        let params = self.params()?;
        if self.has_arguments() { params.get("arguments") } else { Some(params) }
    }

    /// The name or URI that the call names; empty where it names none.
    #[must_use]
    pub fn named(&self) -> &str {
        let text = |key: &str| self.params().and_then(|params| params.get(key)).and_then(|value| value.as_str());
        text("name").or_else(|| text("uri")).unwrap_or_default()
    }

    /// A member of `params._meta`.
    pub(super) fn meta(&self, key: &str) -> Intent<'_> {
        let found = self.params().and_then(|params| params.get("_meta")?.get(key));
        found.map_or(Intent::Absent, |value| Intent::of(text(value)))
    }

    /// A header that some gate asked for.
    pub(super) fn header(&self, name: &str) -> Intent<'_> {
        let found = self.headers.iter().find(|(own, _)| &**own == name);
        found.map_or(Intent::Absent, |(_, value)| Intent::of(value.as_deref()))
    }

    /// A claim: one of exactly this name, else the path that its dots describe.
    pub(super) fn claim(&self, name: &str) -> Intent<'_> {
        let root = self.claims.root();
        let found = root.get(name).or_else(|| name.split('.').try_fold(root, |value, step| value.get(step)));
        found.map_or(Intent::Absent, |value| Intent::of(text(value)))
    }
}

/// What a source says of the intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent<'a> {
    /// The intent, not empty.
    Found(&'a str),
    /// There is none, or an empty one.
    Absent,
    /// Something is there, and no one text: a header twice, or not UTF-8, or a value of another type, or more than 8 KiB.
    /// Whoever may leave the intent out may not hide somebody else's by adding a second.
    Unreadable,
}

impl<'a> Intent<'a> {
    /// Of what is there; `None` when that is no one text.
    fn of(text: Option<&'a str>) -> Self {
        match text.map(str::trim) {
            None => Self::Unreadable,
            Some("") => Self::Absent,
            Some(text) if text.len() > INTENT_CAP => Self::Unreadable,
            Some(text) => Self::Found(text),
        }
    }
}

/// The members of an object but those, as the caller wrote them.
fn members(object: Value<'_>, without: &[&str]) -> String {
    let mut out = String::from("{");
    for (key, value) in object.entries().filter(|(key, _)| key.as_str().is_none_or(|key| !without.contains(&key))) {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(key.raw());
        out.push(':');
        out.push_str(value.raw());
    }
    out.push('}');
    out
}

/// The text of a value that is one.
fn text(value: Value<'_>) -> Option<&str> {
    if value.kind() == Kind::String { value.as_str() } else { None }
}

impl<'a> Arguments<'a> {
    /// At most `cap` bytes of `json`.
    #[must_use]
    pub fn cut(json: &'a str, cap: usize) -> Self {
        if json.len() <= cap {
            return Self { json, truncated: false };
        }
        let end = (0..=cap).rev().find(|end| json.is_char_boundary(*end)).unwrap_or(0);
        Self { json: json.get(..end).unwrap_or_default(), truncated: true }
    }
}
