//! What a caller sees of a listing: the server's answer is made of all that was recorded, and rung 19 cuts it.

use crate::exchange::{Event, Exchange, Now, Reply};
use crate::ladder::{Server, message};
use crate::message::headers::{Header, Headers};
use crate::message::json::Document;
use crate::policy::{Kind, Label};
use crate::protocol::{Id, Method};
use crate::record::Entry;

use super::{LIMITS, Trace};

/// The id of a request, byte for byte.
pub(super) fn id(body: &[u8]) -> Option<String> {
    let document = Document::read(body.to_vec(), LIMITS).ok()?;
    message::id(&document).map(Id::raw).map(str::to_owned)
}

/// The capabilities that come back of everything recorded, in the order of their labels; `None` when no listing was forwarded.
pub(super) fn visible(exchange: &mut Exchange, trace: &Trace, now: Now) -> Option<Vec<Label>> {
    let (server, id) = (trace.server.as_deref()?, trace.id.as_deref()?);
    let method = exchange.awaits().filter(|_| trace.forwarded)?;
    let member = method.listed_member()?;
    let offered = offered(server, method);
    let definitions: Vec<&str> = offered.iter().map(|(_, entry)| entry.document().text()).collect();
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","{member}":[{}],"ttlMs":0,"cacheScope":"private"}}}}"#,
        definitions.join(",")
    );
    let headers = Headers::new(vec![Header::new(":status", b"200"), Header::new("content-type", b"application/json")]);
    exchange.step(Event::ResponseHeaders { headers, ends: false }, now);
    let step = exchange.step(Event::ResponseBody { bytes: body.into_bytes().into(), ends: true }, now);
    let sent = step.replies.into_iter().find_map(|reply| match reply {
        Reply::ResponseBody { bytes, .. } => Some(bytes),
        _ => None,
    })?;
    let sent = Document::read(sent, LIMITS).ok()?;
    let entries = sent.root().path(&["result", member])?.items();
    let shown: Vec<&str> = entries.filter_map(|entry| entry.get("name")?.as_str()).collect();
    Some(offered.iter().map(|(label, _)| *label).filter(|label| shown.contains(&label.name())).cloned().collect())
}

/// What the record has of the kind that a method lists.
fn offered(server: &Server, method: Method) -> Vec<(&Label, &Entry)> {
    let template = |entry: &Entry| entry.document().root().get("uriTemplate").is_some();
    let listed = |label: &Label, entry: &Entry| match method {
        Method::ToolsList => label.kind() == Kind::Tool,
        Method::PromptsList => label.kind() == Kind::Prompt,
        Method::ResourcesList => label.kind() == Kind::Resource && !template(entry),
        Method::TemplatesList => label.kind() == Kind::Resource && template(entry),
        _ => false,
    };
    let entries = server.record.entries().map(|(label, entry)| (label, &**entry));
    let mut offered: Vec<_> = entries.filter(|(label, entry)| listed(label, entry)).collect();
    offered.sort_unstable_by_key(|(label, _)| *label);
    offered
}
