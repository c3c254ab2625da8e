//! A minimal MCP 2026-07-28 client that lists what a server offers: `server/discover` and the four lists, nothing else.
//!
//! What it reads was written by the server that is being watched, so it believes nothing: every page is bounded in bytes
//! and time, read by the strict reader and held to the protocol, and a list that does not end is a fault:
//!
//! - **Circles**: a cursor or a page that was there before ends the walk with a fault (pagination that ignores its cursor
//!   would otherwise look like a long list of the same tools).
//! - **Another answer**: the id must be ours, the result complete, the keys spelled as the protocol has them.
//! - **Somewhere else**: no redirect is followed; the credential goes to the configured address only.
//! - **Half a listing** is none: what is missing in it would look like something that is no longer offered.

mod call;
mod fault;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use rustls::ClientConfig;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::Credential;
use super::http::{HttpClient, client};
use crate::message::json::{Document, Kind as JsonKind, Limits, Value};
use crate::policy::{Kind, Label};
use crate::protocol::{Method, keys, version};
use crate::record::{Listed, Listing};

pub use fault::{ListingFault, Problem};

/// Pages of one list; a server with more is not one that a person can have reviewed.
pub const MAX_PAGES: usize = 64;

/// Where a server is and how it is asked.
#[derive(Clone)]
pub struct Settings {
    /// Its MCP endpoint, http or https.
    pub url: Url,
    /// What we present; only a bearer is sent.
    pub credential: Credential,
    /// For one page: from the first byte of the request to the last of the answer.
    pub timeout: Duration,
    /// Most bytes of one page.
    pub page: usize,
    /// Most nesting of one page.
    pub depth: usize,
    /// Lists that are walked at the same time, at least 1.
    pub concurrency: usize,
    /// How TLS is spoken with it, and whom that trusts; `None` for the authorities of the web.
    pub tls: Option<ClientConfig>,
}

/// A client of one server. Clones share its connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    http: HttpClient,
    url: Url,
    credential: Credential,
    timeout: Duration,
    page: usize,
    depth: usize,
    concurrency: usize,
    ids: AtomicU64,
}

/// How far a walk has come: told before each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The list that is walked.
    pub method: Method,
    /// The page that is asked for, from 1.
    pub page: usize,
    /// Entries of this list so far.
    pub entries: usize,
}

/// Who wants to know.
pub type OnProgress<'a> = &'a (dyn Fn(Progress) + Send + Sync);

impl Client {
    /// A client; nothing is sent yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let Settings { url, credential, timeout, page, depth, concurrency, tls } = settings;
        let (http, ids) = (client(timeout, tls), AtomicU64::new(1));
        let concurrency = concurrency.max(1);
        Self { inner: Arc::new(Inner { http, url, credential, timeout, page, depth, concurrency, ids }) }
    }

    /// For one page.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.inner.timeout
    }

    /// The future that follows our credential's file while the credential lives; `None` when it cannot change.
    #[must_use]
    pub fn watch(&self) -> Option<impl Future<Output = ()> + Send + 'static> {
        self.inner.credential.watch()
    }

    /// Asks what the server offers at all and lists that: its instructions and every entry of every advertised kind.
    ///
    /// # Errors
    /// [`ListingFault`]: the first page that could not be had. There is no half listing.
    pub async fn survey(&self, progress: OnProgress<'_>) -> Result<Listing, ListingFault> {
        progress(Progress { method: Method::Discover, page: 1, entries: 0 });
        let document = call::call(&self.inner, Method::Discover, None).await;
        let discovered = document.and_then(|document| discovered(&document));
        let (instructions, kinds) = discovered.map_err(|problem| problem.at(Method::Discover, 1))?;
        let listing = self.list(&kinds, progress).await?;
        Ok(Listing { instructions, ..listing })
    }

    /// Lists these kinds, page by page. A list that the server does not know (-32601) is an empty one.
    ///
    /// # Errors
    /// As [`Client::survey`].
    pub async fn list(&self, kinds: &[Kind], progress: OnProgress<'_>) -> Result<Listing, ListingFault> {
        let methods: Vec<(Kind, Method)> =
            kinds.iter().flat_map(|kind| lists(*kind).iter().map(|method| (*kind, *method))).collect();
        let walks = methods.into_iter().map(|(kind, method)| walk(Arc::clone(&self.inner), kind, method, progress));
        let lists: Vec<Vec<Listed>> =
            futures_util::stream::iter(walks).buffered(self.inner.concurrency).try_collect().await?;
        let entries = lists.into_iter().flatten().collect();
        Ok(Listing { instructions: None, kinds: kinds.to_vec(), entries })
    }
}

impl Inner {
    fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }
}

/// The lists that hold a kind.
fn lists(kind: Kind) -> &'static [Method] {
    match kind {
        Kind::Tool => &[Method::ToolsList],
        Kind::Prompt => &[Method::PromptsList],
        Kind::Resource => &[Method::ResourcesList, Method::TemplatesList],
    }
}

/// Instructions and advertised kinds of a `server/discover` answer.
fn discovered(document: &Document) -> Result<(Option<String>, Vec<Kind>), Problem> {
    let Some(result) = document.root().get("result") else { return Ok((None, Vec::new())) };
    let versions = result.get("supportedVersions");
    if !versions.is_some_and(|all| all.items().any(|version| version.as_str() == Some(version::CURRENT))) {
        let got = versions.map_or_else(|| "nothing".to_owned(), |versions| fault::shown(versions.raw()));
        return Err(Problem::Version { got });
    }
    let instructions = match result.get("instructions") {
        None => None,
        Some(value) if value.is_null() => None,
        Some(value) => Some(value.as_str().ok_or_else(|| not_text("`instructions` as a string", value))?.to_owned()),
    };
    let capabilities = result
        .get("capabilities")
        .filter(|capabilities| capabilities.kind() == JsonKind::Object)
        .ok_or_else(|| Problem::message("an object `capabilities`", "none"))?;
    let advertised = |kind: &Kind| {
        let member = match kind {
            Kind::Tool => "tools",
            Kind::Prompt => "prompts",
            Kind::Resource => "resources",
        };
        capabilities.get(member).is_some_and(|value| value.kind() == JsonKind::Object)
    };
    Ok((instructions, Kind::ALL.into_iter().filter(advertised).collect()))
}

fn not_text(expected: &'static str, value: Value<'_>) -> Problem {
    Problem::message(expected, fault::shown(value.raw()))
}

/// Walks one list to its end.
async fn walk(
    client: Arc<Inner>,
    kind: Kind,
    method: Method,
    progress: OnProgress<'_>,
) -> Result<Vec<Listed>, ListingFault> {
    let mut walk =
        Walk { kind, method, depth: client.depth, entries: Vec::new(), cursors: HashSet::new(), pages: HashSet::new() };
    let mut cursor: Option<String> = None;
    for page in 1..=MAX_PAGES {
        progress(Progress { method, page, entries: walk.entries.len() });
        let step = match call::call(&client, method, cursor.as_deref()).await {
            Ok(document) => walk.page(&document),
            Err(problem) if page == 1 && problem.is_unknown_method() => Ok(None),
            Err(problem) => Err(problem),
        };
        cursor = step.map_err(|problem| problem.at(method, page))?;
        if cursor.is_none() {
            return Ok(walk.entries);
        }
    }
    Err(Problem::TooManyPages(MAX_PAGES).at(method, MAX_PAGES))
}

/// A list as far as it was walked.
struct Walk {
    kind: Kind,
    method: Method,
    depth: usize,
    entries: Vec<Listed>,
    cursors: HashSet<String>,
    /// SHA-256 of the pages that held something.
    pages: HashSet<[u8; 32]>,
}

impl Walk {
    /// Takes in a page; returns the cursor of the next one.
    fn page(&mut self, document: &Document) -> Result<Option<String>, Problem> {
        let result = document.root().get("result");
        let member = |name: &str| result.and_then(|result| result.get(name));
        let list = self.method.listed_member().and_then(member).filter(|list| list.kind() == JsonKind::Array);
        let Some(list) = list else { return Err(Problem::message("a list under the method's member", "none")) };
        if !list.is_empty() && !self.pages.insert(Sha256::digest(list.raw()).into()) {
            return Err(Problem::RepeatedPage);
        }
        for (index, entry) in list.items().enumerate() {
            let listed = self.entry(entry).map_err(|problem| Problem::Entry { index, problem })?;
            self.entries.push(listed);
        }
        let cursor = match member("nextCursor") {
            None => return Ok(None),
            // Some servers write the end of a list so.
            Some(cursor) if cursor.is_null() => return Ok(None),
            Some(cursor) => cursor.as_str().ok_or_else(|| not_text("`nextCursor` as a string", cursor))?,
        };
        if !self.cursors.insert(cursor.to_owned()) {
            return Err(Problem::RepeatedCursor(fault::shown(cursor)));
        }
        Ok(Some(cursor.to_owned()))
    }

    fn entry(&self, entry: Value<'_>) -> Result<Listed, String> {
        if let Some(key) = keys::entry_variant(entry) {
            return Err(format!("expected the protocol's keys as they are spelled, got {}", fault::shown(key)));
        }
        let text = |name: &str| entry.get(name).and_then(|value| value.as_str()).filter(|text| !text.is_empty());
        let missing =
            |name: &str| format!("expected `{name}` as a string that is not empty, got {}", fault::shown(entry.raw()));
        let name = text("name").ok_or_else(|| missing("name"))?;
        match self.method {
            Method::ResourcesList => text("uri").map(drop).ok_or_else(|| missing("uri"))?,
            Method::TemplatesList => text("uriTemplate").map(drop).ok_or_else(|| missing("uriTemplate"))?,
            _ => {}
        }
        let limits = Limits { depth: self.depth, nodes: usize::MAX };
        let document = Document::read(entry.raw().as_bytes().to_vec(), limits).map_err(|fault| fault.to_string())?;
        Ok(Listed { label: Label::new(self.kind, name), document })
    }
}
