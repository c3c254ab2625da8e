//! The story: what Portcullis lets through, what it refuses, and what each caller sees of it.

mod misbehaviour;

use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, bail};

use super::client::{Answer, Connection, Request};
use super::identity_provider::{IdentityProvider, Person};
use super::narrator::Narrator;
use super::watch::{Seen, Watch};

const ANA: Person = Person { sub: "ana", email: "ana@acme.com", groups: &[] };
const BO: Person = Person { sub: "bo", email: "bo@acme.com", groups: &["case-editors"] };

/// The credential that `examples/demo/upstream-token` holds, as far as the upstream's log shows it.
const SERVICE_CREDENTIAL: &str = "Bearer upstream-";

const SEARCH: (&str, &str) = ("search_cases", r#"{"query":"invoice"}"#);
const UPDATE: (&str, &str) = ("update_case", r#"{"id":"1042","status":"closed"}"#);

/// Who plays: the port to call, the configuration behind it, and the callers' tokens.
pub(super) struct Cast {
    edge: u16,
    config: PathBuf,
    /// Ana reads. Her token is good for everything a reader may do.
    pub(super) ana: String,
    /// Bo edits, but has consented to nothing beyond the baseline yet.
    bo: String,
    /// Bo again, after consenting to `cases:write`.
    pub(super) bo_writing: String,
}

impl Cast {
    /// Get the tokens for calls to Envoy on this port, behind which a Portcullis with this configuration decides.
    pub(super) fn new(idp: &IdentityProvider, edge: u16, config: PathBuf) -> anyhow::Result<Self> {
        Ok(Self {
            edge,
            config,
            ana: idp.token(&ANA, "mcp")?,
            bo: idp.token(&BO, "mcp")?,
            bo_writing: idp.token(&BO, "mcp cases:write")?,
        })
    }
}

/// Calls for the reader to repeat by hand; their tokens are shell variables.
pub(super) fn to_try() -> [Request; 3] {
    [
        Request::mcp("tools/list", "1", None, "").bearing("$ANA"),
        Request::call("2", UPDATE.0, UPDATE.1).bearing("$ANA"),
        Request::call("3", UPDATE.0, UPDATE.1).bearing("$BO"),
    ]
}

/// Tell the whole story, checking each answer.
///
/// # Errors
///
/// The first thing that did not come out as it must, with the step, what was expected and what came.
pub(super) async fn tell<W: Write>(cast: &Cast, watch: &mut Watch, narrator: &mut Narrator<W>) -> anyhow::Result<()> {
    // What starting up left in the log is no part of the story.
    watch.seen().await?;
    let client = Connection::open(cast.edge).await?;
    let mut story = Story { cast, watch, narrator, client, title: "" };
    let outcome = story.all_steps().await;
    let title = story.title;
    outcome.with_context(|| format!("the step \"{title}\" did not come out"))
}

struct Story<'a, W> {
    cast: &'a Cast,
    watch: &'a mut Watch,
    narrator: &'a mut Narrator<W>,
    /// One connection for all of it: a refusal must not cost the client its connection.
    client: Connection,
    title: &'static str,
}

impl<W: Write> Story<'_, W> {
    async fn all_steps(&mut self) -> anyhow::Result<()> {
        self.allowed().await?;
        self.refused_then_allowed().await?;
        self.two_listings().await?;
        self.no_token().await?;
        self.step_up().await?;
        self.header_lies().await?;
        self.unpriced().await?;
        self.broad_and_narrow().await?;
        self.rug_pull().await?;
        self.bad_arguments().await?;
        self.withheld().await?;
        self.noticed().await?;
        self.narrator.heading("The end")?;
        Ok(())
    }

    async fn allowed(&mut self) -> anyhow::Result<()> {
        self.step(
            "An allowed call",
            "Ana (reader, holds cases:read) searches cases. The upstream gets the call with its own service \
             credential;\nAna's token stays on this side.",
        )?;
        let answer = self.exchange(Request::call("1", SEARCH.0, SEARCH.1).bearing(&self.cast.ana)).await?;
        self.allowed_with(&answer, "1")?;
        self.expect("cases found", "2", &answer.at("/result/structuredContent/total"))?;
        let seen = self.upstream_saw(&["tools/call search_cases"]).await?;
        let credential = seen.first().and_then(|call| call.authorization.as_deref()).unwrap_or("none");
        self.expect("the upstream's Authorization begins with", SERVICE_CREDENTIAL, credential)
    }

    async fn refused_then_allowed(&mut self) -> anyhow::Result<()> {
        self.step(
            "A refusal that the client can read, and life goes on",
            "Ana tries to change a case. The refusal is a JSON-RPC error under her request's own id (one that a \
             double\nwould round), at HTTP 200: her MCP session lives on, and so does her connection.",
        )?;
        let id = "9007199254740993";
        let answer = self.exchange(Request::call(id, UPDATE.0, UPDATE.1).bearing(&self.cast.ana)).await?;
        self.refused_with(&answer, id, "policy.not_permitted")?;
        self.upstream_saw(&[]).await?;
        let answer = self.exchange(Request::call(r#""a\u0062c""#, SEARCH.0, SEARCH.1).bearing(&self.cast.ana)).await?;
        self.expect("HTTP status on the same connection", 200, answer.status.as_u16())?;
        self.expect("cases found", "2", &answer.at("/result/structuredContent/total"))?;
        self.upstream_saw(&["tools/call search_cases"]).await.map(drop)
    }

    async fn two_listings(&mut self) -> anyhow::Result<()> {
        self.step(
            "Two callers, two listings",
            "Each caller sees the tools that they may call. export_cases, which nobody priced, is in neither list.",
        )?;
        for (token, tools) in [(&self.cast.ana, "search_cases"), (&self.cast.bo, "search_cases, update_case")] {
            let answer = self.exchange(Request::mcp("tools/list", "3", None, "").bearing(token)).await?;
            self.allowed_with(&answer, "3")?;
            self.expect("tools listed", tools, &answer.names("/result/tools").join(", "))?;
            self.expect("cacheScope", "private", &answer.at("/result/cacheScope"))?;
        }
        self.upstream_saw(&["tools/list", "tools/list"]).await.map(drop)
    }

    async fn no_token(&mut self) -> anyhow::Result<()> {
        self.step(
            "No token",
            "401 with a challenge that says where to read who issues tokens (RFC 9728); that document needs none.",
        )?;
        let answer = self.exchange(Request::call("4", SEARCH.0, SEARCH.1)).await?;
        self.expect("HTTP status", 401, answer.status.as_u16())?;
        let document = format!("http://127.0.0.1:{}/.well-known/oauth-protected-resource/mcp", self.cast.edge);
        self.contains(
            "the challenge",
            answer.header("www-authenticate"),
            &format!("resource_metadata=\"{document}\""),
        )?;
        let answer = self.exchange(Request::get("/.well-known/oauth-protected-resource/mcp")).await?;
        self.expect("HTTP status", 200, answer.status.as_u16())?;
        let resource = format!("http://127.0.0.1:{}/mcp", self.cast.edge);
        self.expect("the resource it describes", &*resource, &answer.at("/resource"))?;
        self.upstream_saw(&[]).await.map(drop)
    }

    async fn step_up(&mut self) -> anyhow::Result<()> {
        self.step(
            "Step-up",
            "Bo (editor) may change cases, but has not consented to it: 403 names every scope the call needs.\nWith a \
             token that has them the same call goes through.",
        )?;
        let call = Request::call("5", UPDATE.0, UPDATE.1);
        let answer = self.exchange(call.clone().bearing(&self.cast.bo)).await?;
        self.expect("HTTP status", 403, answer.status.as_u16())?;
        let challenge = answer.header("www-authenticate");
        self.contains("the challenge", challenge, r#"error="insufficient_scope""#)?;
        self.contains("the challenge", challenge, r#"scope="mcp cases:write""#)?;
        self.upstream_saw(&[]).await?;
        let answer = self.exchange(call.bearing(&self.cast.bo_writing)).await?;
        self.allowed_with(&answer, "5")?;
        self.expect("the case's new status", "closed", &answer.at("/result/structuredContent/status"))?;
        self.upstream_saw(&["tools/call update_case"]).await.map(drop)
    }

    async fn header_lies(&mut self) -> anyhow::Result<()> {
        self.step(
            "A header that lies about the body",
            "Ana's Mcp-Name says search_cases, her body says update_case. What is forwarded is the body, so both must \
             agree.",
        )?;
        let call = Request::call("6", UPDATE.0, UPDATE.1).claiming("Mcp-Name", SEARCH.0);
        let answer = self.exchange(call.bearing(&self.cast.ana)).await?;
        self.expect("HTTP status", 400, answer.status.as_u16())?;
        self.expect("the id", "6", answer.id())?;
        self.expect("the code (HeaderMismatch)", "-32020", &answer.at("/error/code"))?;
        self.upstream_saw(&[]).await.map(drop)
    }

    async fn unpriced(&mut self) -> anyhow::Result<()> {
        self.step(
            "An unpriced tool",
            "The upstream serves export_cases, but nobody decided what it costs. It runs for no one, Bo included.",
        )?;
        let answer = self.exchange(Request::call("7", "export_cases", "{}").bearing(&self.cast.bo_writing)).await?;
        self.refused_with(&answer, "7", "policy.unpriced")?;
        self.upstream_saw(&[]).await.map(drop)
    }

    async fn broad_and_narrow(&mut self) -> anyhow::Result<()> {
        self.step(
            "A resource that two patterns cover",
            "cases://case/1042/internal lies under cases://{+path} (cases:read) and under cases://case/{id}/internal\n\
             (cases:internal). Every pattern that covers it applies: Ana may not read it, Bo may.",
        )?;
        let uri = "cases://case/1042";
        let answer = self.exchange(Request::read("8", uri).bearing(&self.cast.ana)).await?;
        self.allowed_with(&answer, "8")?;
        self.upstream_saw(&["resources/read cases://case/1042"]).await?;
        let read = Request::read("9", &format!("{uri}/internal"));
        let answer = self.exchange(read.clone().bearing(&self.cast.ana)).await?;
        self.refused_with(&answer, "9", "policy.not_permitted")?;
        self.upstream_saw(&[]).await?;
        let answer = self.exchange(read.bearing(&self.cast.bo)).await?;
        self.allowed_with(&answer, "9")?;
        self.upstream_saw(&["resources/read cases://case/1042/internal"]).await.map(drop)
    }

    fn step(&mut self, title: &'static str, about: &str) -> anyhow::Result<()> {
        self.title = title;
        Ok(self.narrator.step(title, about)?)
    }

    async fn exchange(&mut self, request: Request) -> anyhow::Result<Answer> {
        self.narrator.request(&request)?;
        let answer = self.client.send(&request).await?;
        self.narrator.answer(&answer)?;
        Ok(answer)
    }

    /// HTTP 200 and a result under this id.
    fn allowed_with(&mut self, answer: &Answer, id: &str) -> anyhow::Result<()> {
        self.expect("HTTP status", 200, answer.status.as_u16())?;
        self.expect("the id", id, answer.id())?;
        self.expect("the result's type", "complete", &answer.at("/result/resultType"))
    }

    /// A policy frame: HTTP 200, an error under this id, with this reason, and no challenge (ladder §3).
    fn refused_with(&mut self, answer: &Answer, id: &str, reason: &str) -> anyhow::Result<()> {
        self.expect("HTTP status", 200, answer.status.as_u16())?;
        self.expect("the id", id, answer.id())?;
        self.expect("the code", "-32000", &answer.at("/error/code"))?;
        self.expect("the reason", reason, &answer.at("/error/data/error"))
    }

    async fn upstream_saw(&mut self, calls: &[&str]) -> anyhow::Result<Vec<Seen>> {
        let seen = self.watch.seen().await?;
        let came: Vec<String> = seen.iter().map(Seen::brief).collect();
        if came != calls {
            bail!("expected the upstream to see {calls:?} of this step, but it saw {came:?}");
        }
        self.narrator.upstream(&seen)?;
        Ok(seen)
    }

    fn expect<T: PartialEq + Display + Copy>(&mut self, what: &str, expected: T, came: T) -> anyhow::Result<()> {
        if expected != came {
            bail!("{what}: expected `{expected}`, came `{came}`");
        }
        Ok(self.narrator.holds(&format!("{what}: {came}"))?)
    }

    fn contains(&mut self, what: &str, text: &str, part: &str) -> anyhow::Result<()> {
        if !text.contains(part) {
            bail!("{what}: expected `{part}` in it, came `{text}`");
        }
        Ok(self.narrator.holds(&format!("{what} holds {part}"))?)
    }
}
