//! The request that a well-behaved client makes of a method, a capability and arguments.

use crate::ladder::head::Modes;
use crate::ladder::server::Matcher;
use crate::ladder::{Head, Kind as ServerKind, Server};
use crate::message::headers::{Header, Headers};
use crate::message::json::Document;
use crate::message::write;
use crate::policy::{Kind, Label};
use crate::protocol::version::CURRENT;
use crate::protocol::{Method, envelope, method, routing};

use super::{LIMITS, attributes};

/// A call in the words of an operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call<'a> {
    /// The MCP method; without one, that which runs the capability.
    pub method: Option<&'a str>,
    /// A label (`tool:search`, `prompt:triage`, `resource:index`), or the URI of a resource.
    pub capability: Option<&'a str>,
    /// The arguments, JSON text.
    pub arguments: Option<&'a str>,
}

/// Why there is no such request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unaskable(pub String);

impl Call<'_> {
    /// The request to `server`, without an identity.
    ///
    /// # Errors
    /// [`Unaskable`]: method, capability and arguments do not go together, or are not what they should be.
    pub fn request(&self, server: &Server) -> Result<(Head, Vec<u8>), Unaskable> {
        if server.kind == ServerKind::Http {
            return self.http(server);
        }
        let method = self.method()?;
        let arguments = self.arguments.map(json).transpose()?;
        let name = self.capability.map(|text| name(server, method, text)).transpose()?;
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("accept".to_owned(), "application/json, text/event-stream".to_owned()),
            ("mcp-protocol-version".to_owned(), CURRENT.to_owned()),
            ("mcp-method".to_owned(), method.to_owned()),
        ];
        let known = Method::parse(method);
        if let Some(name) = name.as_ref().filter(|_| known.is_some_and(|method| method.named_by().is_some())) {
            headers.push(("mcp-name".to_owned(), routing::encode(&name.text)));
        }
        if let (Some(Method::ToolsCall), Some(name)) = (known, &name) {
            let entry = server.record.entry(&Label::new(Kind::Tool, &name.text));
            for (header, value) in
                entry.into_iter().flat_map(|entry| entry.mirrored().headers(arguments.as_ref().map(Document::root)))
            {
                headers.push((header.to_owned(), routing::encode(&value)));
            }
        }
        let members = members(method, known, name.as_ref(), arguments.as_ref().map(Document::text))?;
        let body = message(method, &members);
        headers.push(("content-length".to_owned(), body.len().to_string()));
        Ok((head(server, "POST", headers, false), body))
    }

    fn http(&self, server: &Server) -> Result<(Head, Vec<u8>), Unaskable> {
        if self.capability.is_some() || self.arguments.is_some() {
            return Err(Unaskable(format!(
                "expected no capability and no arguments for `{}`, which is plain HTTP; name an HTTP method or a request",
                server.name
            )));
        }
        Ok((head(server, self.method.unwrap_or("GET"), Vec::new(), true), Vec::new()))
    }

    fn method(&self) -> Result<&str, Unaskable> {
        match (self.method, self.capability) {
            (Some(method), _) if method.is_empty() || method.chars().any(char::is_control) => {
                Err(Unaskable("expected an MCP method such as tools/call".to_owned()))
            }
            (Some(method), _) => Ok(method),
            (None, None) => {
                Err(Unaskable("expected a method such as tools/list, or a capability such as tool:search".to_owned()))
            }
            (None, Some(text)) => Ok(match text.split_once(':').map(|(word, _)| word) {
                None | Some("tool") => Method::ToolsCall.as_str(),
                Some("prompt") => Method::PromptsGet.as_str(),
                Some(_) => Method::ResourcesRead.as_str(),
            }),
        }
    }
}

fn json(text: &str) -> Result<Document, Unaskable> {
    Document::read(text.trim().as_bytes().to_vec(), LIMITS)
        .map_err(|fault| Unaskable(format!("expected the arguments as JSON, but {fault}")))
}

/// What a method names: a tool or prompt by name, a resource by URI.
struct Named {
    kind: Kind,
    text: String,
}

impl Named {
    fn of(label: &Label) -> Self {
        Self { kind: label.kind(), text: label.name().to_owned() }
    }
}

/// What the method is to name.
fn name(server: &Server, method: &str, text: &str) -> Result<Named, Unaskable> {
    let label: Label = text.parse().map_err(|fault| Unaskable(format!("{fault} in `{text}`")))?;
    let typed = text.starts_with(&format!("{}:", label.kind()));
    let wanted = match Method::parse(method) {
        Some(Method::ToolsCall) => Kind::Tool,
        Some(Method::PromptsGet) => Kind::Prompt,
        Some(Method::Complete) if label.kind() == Kind::Prompt => return Ok(Named::of(&label)),
        Some(Method::ResourcesRead | Method::Listen | Method::Complete) => return uri(server, &label, text),
        _ => return Err(Unaskable(format!("expected no capability for {method}, got `{text}`"))),
    };
    if label.kind() == wanted {
        return Ok(Named::of(&label));
    }
    if typed {
        return Err(Unaskable(format!("expected a {wanted} for {method}, got `{text}`")));
    }
    Ok(Named { kind: wanted, text: text.to_owned() })
}

/// A resource is named by its URI; by its label where that has one that is no template.
fn uri(server: &Server, label: &Label, text: &str) -> Result<Named, Unaskable> {
    let priced = server.prices.resource(label.name()).filter(|_| label.kind() == Kind::Resource);
    let named = |text: &str| Ok(Named { kind: Kind::Resource, text: text.to_owned() });
    let Some(uri) = priced.and_then(|capability| capability.uri.as_deref()) else { return named(text) };
    if uri.contains('{') {
        return Err(Unaskable(format!("expected the URI of a resource, got `{text}`, which is the template {uri}")));
    }
    named(uri)
}

/// Members of `params`, each with a comma behind it.
fn members(
    method: &str,
    known: Option<Method>,
    name: Option<&Named>,
    arguments: Option<&str>,
) -> Result<Vec<u8>, Unaskable> {
    let mut out = Vec::new();
    let text = |out: &mut Vec<u8>, before: &str, value: &str, behind: &str| {
        out.extend_from_slice(before.as_bytes());
        write::string(out, value);
        out.extend_from_slice(behind.as_bytes());
    };
    let prompt = name.is_some_and(|name| name.kind == Kind::Prompt);
    let mut takes = Some("arguments").filter(|_| matches!(known, Some(Method::ToolsCall | Method::PromptsGet)));
    match (known, name.map(|name| name.text.as_str())) {
        (Some(Method::ResourcesRead), Some(uri)) => text(&mut out, "\"uri\":", uri, ","),
        (Some(Method::Listen), Some(uri)) => {
            text(&mut out, "\"notifications\":{\"resourceSubscriptions\":[", uri, "]},");
        }
        (Some(Method::Complete), Some(name)) => {
            takes = Some("argument");
            let before = if prompt {
                "\"ref\":{\"type\":\"ref/prompt\",\"name\":"
            } else {
                "\"ref\":{\"type\":\"ref/resource\",\"uri\":"
            };
            text(&mut out, before, name, "},");
            if arguments.is_none() {
                out.extend_from_slice(br#""argument":{"name":"name","value":""},"#);
            }
        }
        (_, Some(name)) => text(&mut out, "\"name\":", name, ","),
        (_, None) => {}
    }
    match (takes, arguments) {
        (Some(member), Some(arguments)) => out.extend_from_slice(format!("\"{member}\":{arguments},").as_bytes()),
        (None, Some(_)) => return Err(Unaskable(format!("expected no arguments for {method}"))),
        (_, None) => {}
    }
    Ok(out)
}

fn message(method: &str, members: &[u8]) -> Vec<u8> {
    let mut out = br#"{"jsonrpc":"2.0","#.to_vec();
    if !method::is_notification(method) {
        out.extend_from_slice(br#""id":1,"#);
    }
    out.extend_from_slice(br#""method":"#);
    write::string(&mut out, method);
    out.extend_from_slice(br#","params":{"#);
    out.extend_from_slice(members);
    out.extend_from_slice(
        format!(
            r#""_meta":{{"{}":"{CURRENT}","{}":{{}}}}}}}}"#,
            envelope::PROTOCOL_VERSION,
            envelope::CLIENT_CAPABILITIES
        )
        .as_bytes(),
    );
    out
}

fn head(server: &Server, method: &str, headers: Vec<(String, String)>, ends: bool) -> Head {
    let url = server.resource.url.as_str();
    let behind = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (own, path) = behind.find('/').and_then(|at| behind.split_at_checked(at)).unwrap_or((behind, "/"));
    let (authority, path) = match &server.matcher {
        Matcher::Authority { authorities, path } => (authorities.first().map_or(own, String::as_str), path.as_str()),
        Matcher::Route(_) | Matcher::Cluster(_) => (own, path),
    };
    let pseudo =
        [(":method", method), (":authority", authority), (":path", path), (":scheme", &server.resource.scheme)];
    let pseudo = pseudo.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let headers = pseudo.into_iter().chain(headers);
    let headers = headers.map(|(name, value)| Header::new(&name, value.as_bytes())).collect();
    Head { headers: Headers::new(headers), attributes: attributes(Some(server)), ends, modes: Modes::Whole }
}
