//! What was decided, for people and for programs.

use std::fmt::{self, Write as _};

use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};

use portcullis::explain::{Answer, Explained, Outcome, Row};
use portcullis::gates::Asker;

/// The JSON form.
#[derive(Serialize)]
struct View<'a> {
    principal: Option<PrincipalView<'a>>,
    matched_rules: Vec<RuleView<'a>>,
    denied_by: Option<usize>,
    rungs: Vec<RungView<'a>>,
    answer: Option<AnswerView<'a>>,
}

#[derive(Serialize)]
struct PrincipalView<'a> {
    name: &'a str,
    issuer: &'a str,
    subject: &'a str,
    email: Option<&'a str>,
    domain: Option<&'a str>,
    roles: Vec<&'a str>,
    permissions: Vec<String>,
}

#[derive(Serialize)]
struct RuleView<'a> {
    index: usize,
    #[serde(rename = "match")]
    summary: &'a str,
    roles: Vec<&'a str>,
}

#[derive(Serialize)]
struct RungView<'a> {
    rung: &'a str,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct AnswerView<'a> {
    status: u16,
    #[serde(serialize_with = "in_order")]
    headers: &'a [(&'static str, String)],
    body: String,
}

fn in_order<S: Serializer>(headers: &[(&'static str, String)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(headers.len()))?;
    for (name, value) in headers {
        map.serialize_entry(name, value)?;
    }
    map.end()
}

/// The permissions of the caller by name.
fn permissions(explained: &Explained) -> Vec<String> {
    let both = explained.server.as_deref().zip(explained.caller.as_deref());
    both.map_or_else(Vec::new, |(server, caller)| {
        if caller.principal.permissions.is_all() {
            return vec!["*".to_owned()];
        }
        Asker::new(caller, &server.policy).permissions.iter().map(ToString::to_string).collect()
    })
}

/// The JSON form of what was decided.
fn json(explained: &Explained) -> View<'_> {
    let principal = explained.caller.as_deref().map(|caller| {
        let principal = &caller.principal;
        PrincipalView {
            name: &principal.name,
            issuer: &principal.issuer,
            subject: &principal.subject,
            email: principal.email.as_deref(),
            domain: principal.domain.as_deref(),
            roles: principal.roles.iter().map(AsRef::as_ref).collect(),
            permissions: permissions(explained),
        }
    });
    let matched = explained.rules.iter().flat_map(|rules| &rules.matched);
    let matched = matched.map(|rule| RuleView {
        index: rule.index,
        summary: &rule.summary,
        roles: rule.roles.iter().map(AsRef::as_ref).collect(),
    });
    let rungs = explained.rungs.iter();
    let rungs =
        rungs.map(|row| RungView { rung: row.rung, outcome: row.outcome.as_str(), reason: row.reason.as_deref() });
    let answer = explained.answer.as_ref().map(|Answer { status, headers, body }| AnswerView {
        status: *status,
        headers,
        body: String::from_utf8_lossy(body).into_owned(),
    });
    View {
        principal,
        matched_rules: matched.collect(),
        denied_by: explained.rules.as_ref().and_then(|rules| rules.denied_by),
        rungs: rungs.collect(),
        answer,
    }
}

/// The same as text, with a line feed at the end.
pub(super) fn json_text(explained: &Explained) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&json(explained)).map(|text| text + "\n")
}

/// What was decided, to be read.
pub(super) fn text(explained: &Explained) -> Result<String, fmt::Error> {
    let mut out = String::new();
    let server = explained.server.as_ref().map_or("none", |server| &server.name);
    writeln!(out, "server       {server}{}", if shadow(explained) { " (shadow)" } else { "" })?;
    if !explained.capability.is_empty() {
        writeln!(out, "capability   {}", shown(&explained.capability))?;
    }
    caller(explained, &mut out)?;
    writeln!(out)?;
    rungs(explained, &mut out)?;
    writeln!(out)?;
    match &explained.answer {
        None if explained.would_refuse.is_empty() => writeln!(out, "forwarded to the server")?,
        None => writeln!(
            out,
            "forwarded to the server; enforcing would have refused: {}",
            explained.would_refuse.join(", ")
        )?,
        Some(answer) => answered(answer, &mut out)?,
    }
    if let Some(visible) = &explained.visible {
        let labels: Vec<String> = visible.iter().map(|label| shown(&label.to_string())).collect();
        let labels = if labels.is_empty() { "nothing".to_owned() } else { labels.join(", ") };
        writeln!(out, "of what was recorded the caller is shown: {labels}")?;
    }
    if let Some(log) = &explained.log {
        writeln!(out, "\nfor the operator: {}", shown(log))?;
    }
    Ok(out)
}

fn shadow(explained: &Explained) -> bool {
    explained.server.as_ref().is_some_and(|server| server.shadow)
}

fn caller(explained: &Explained, out: &mut String) -> fmt::Result {
    let Some(caller) = explained.caller.as_deref() else {
        return writeln!(out, "principal    nobody: no identity was established");
    };
    let principal = &caller.principal;
    let list = |names: &[String]| if names.is_empty() { "none".to_owned() } else { shown(&names.join(", ")) };
    writeln!(out, "principal    {}", shown(&principal.name))?;
    writeln!(out, "  issuer     {}", shown(&principal.issuer))?;
    writeln!(out, "  subject    {}", shown(&principal.subject))?;
    writeln!(out, "  roles      {}", list(&principal.roles.iter().map(ToString::to_string).collect::<Vec<_>>()))?;
    writeln!(out, "  holds      {}", list(&permissions(explained)))?;
    let rules = explained.rules.as_ref().map(ToString::to_string).unwrap_or_default();
    for line in rules.lines() {
        writeln!(out, "  {}", shown(line))?;
    }
    Ok(())
}

fn rungs(explained: &Explained, out: &mut String) -> fmt::Result {
    for Row { number, rung, outcome, reason } in &explained.rungs {
        let reason = match (reason, outcome) {
            (None, _) => String::new(),
            (Some(reason), Outcome::Refuse) if explained.answer.is_none() => {
                format!("  {reason} (shadow: not enforced)")
            }
            (Some(reason), _) => format!("  {reason}"),
        };
        writeln!(out, "{}", format!("{number:>4}  {rung:<10}  {:<6}{reason}", outcome.as_str()).trim_end())?;
    }
    Ok(())
}

fn answered(answer: &Answer, out: &mut String) -> fmt::Result {
    writeln!(out, "answered here: HTTP {}", answer.status)?;
    for (name, value) in &answer.headers {
        writeln!(out, "  {name}: {}", shown(value))?;
    }
    let body = String::from_utf8_lossy(&answer.body);
    if !body.is_empty() {
        writeln!(out, "\n  {}", shown(&body))?;
    }
    Ok(())
}

/// Somebody's word, on one line and without what steers a terminal.
pub(in crate::cli) fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
