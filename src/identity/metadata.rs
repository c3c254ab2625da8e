//! The documents that tell a client where to get a token: RFC 9728 for the resource, RFC 8414 for its authorization
//! server. Rendered once at load; a request for one costs a comparison of paths.

use bytes::Bytes;
use serde_json::{Value, json};
use url::Url;

const PROTECTED_RESOURCE: &str = "/.well-known/oauth-protected-resource";
const AUTHORIZATION_SERVER: &str = "/.well-known/oauth-authorization-server";

/// What the documents of one server are made of.
#[derive(Clone, Copy, Debug)]
pub struct MetadataSource<'a> {
    /// The server's public URL, as configured.
    pub resource: &'a str,
    /// Issuers of tokens for it; empty when callers bring none (`peer`, `static`), then there is no RFC 9728 document.
    pub authorization_servers: &'a [&'a str],
    /// Baseline, advertised and capability scopes in this order; repeats and `offline_access` are left out here.
    pub scopes: &'a [&'a str],
    /// RFC 8414 members to serve, as configured.
    pub authorization_server: Option<&'a Value>,
}

/// The well-known documents of one server.
#[derive(Clone, Debug)]
pub struct Metadata {
    url: Box<str>,
    documents: Vec<(Box<str>, Bytes)>,
}

/// Why a resource URL cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected an absolute https URL (http on loopback only) without user, query and fragment, got {got:?}: {problem}"
)]
pub struct ResourceFault {
    got: String,
    problem: &'static str,
}

impl Metadata {
    /// Renders the documents.
    ///
    /// # Errors
    /// [`ResourceFault`]: the resource is not a URL that clients could use.
    pub fn new(source: &MetadataSource<'_>) -> Result<Self, ResourceFault> {
        let (origin, path) = split_resource(source.resource)?;
        let suffixed = format!("{PROTECTED_RESOURCE}{path}");
        let url = format!("{origin}{suffixed}").into_boxed_str();
        let mut documents = Vec::with_capacity(3);
        if !source.authorization_servers.is_empty() {
            let document = Bytes::from(protected_resource(source).to_string());
            if !path.is_empty() {
                documents.push((PROTECTED_RESOURCE.into(), document.clone()));
            }
            documents.push((suffixed.into(), document));
        }
        if let Some(members) = source.authorization_server {
            documents.push((AUTHORIZATION_SERVER.into(), Bytes::from(members.to_string())));
        }
        Ok(Self { url, documents })
    }

    /// URL of the RFC 9728 document, for challenges: the well-known part inserted before the resource's path (§3.1).
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The JSON document under `path` (without its query), if it is one of this server's.
    #[must_use]
    pub fn document(&self, path: &str) -> Option<&Bytes> {
        self.documents.iter().find(|(own, _)| **own == *path).map(|(_, document)| document)
    }

    /// The paths of this server's documents: RFC 9728 root form and path-suffixed form, RFC 8414 when configured.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.documents.iter().map(|(path, _)| &**path)
    }
}

/// Origin and path of a resource, as the bytes stand; a lone `/` counts as no path (RFC 9728 §3.1).
fn split_resource(resource: &str) -> Result<(&str, &str), ResourceFault> {
    let fault = |problem| Err(ResourceFault { got: resource.into(), problem });
    let Ok(url) = Url::parse(resource) else { return fault("it does not parse") };
    if url.scheme() != "https" && !(url.scheme() == "http" && super::fetch::is_loopback(&url)) {
        return fault("its scheme is another");
    }
    if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
        return fault("it has one of these");
    }
    // The parser forgives what a client's comparison will not: backslashes, tabs, missing slashes, upper case.
    if !resource.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\<>^`{|}".contains(&byte)) {
        return fault("it holds a character that no URL may hold");
    }
    let after_scheme = resource.split_once("://").filter(|(scheme, _)| *scheme == url.scheme());
    let Some((scheme, rest)) = after_scheme else { return fault("its scheme is not written in lower case with `://`") };
    let authority = rest.find('/').unwrap_or(rest.len());
    match resource.split_at_checked(scheme.len().saturating_add(3).saturating_add(authority)) {
        Some((origin, "/")) => Ok((origin, "")),
        Some(parts) => Ok(parts),
        None => fault("it does not parse"),
    }
}

fn protected_resource(source: &MetadataSource<'_>) -> Value {
    let mut scopes: Vec<&str> = Vec::new();
    for scope in source.scopes {
        // Whether to ask for refresh tokens is between client and authorization server (MCP authorization).
        if *scope != "offline_access" && !scopes.contains(scope) {
            scopes.push(scope);
        }
    }
    let mut document = json!({
        "resource": source.resource,
        "authorization_servers": source.authorization_servers,
        "bearer_methods_supported": ["header"],
    });
    if let (false, Some(members)) = (scopes.is_empty(), document.as_object_mut()) {
        members.insert("scopes_supported".into(), json!(scopes));
    }
    document
}

#[cfg(test)]
mod tests;
