//! What each rung said, told from how far an exchange came and who refused.

use crate::identity::Caller;
use crate::ladder::{Kind, Server, scope};
use crate::protocol::Method;
use crate::refusal::Rung;
use crate::telemetry::audit::{Outcome as Verdict, Record};

/// What a rung said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It had no objection.
    Pass,
    /// It refused; in shadow mode it would have.
    Refuse,
    /// It was not reached, or has no say about this call.
    Skip,
}

impl Outcome {
    /// The word in output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Refuse => "refuse",
            Self::Skip => "skip",
        }
    }
}

/// One rung.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its number in the ladder.
    pub number: u8,
    /// Its name.
    pub rung: &'static str,
    /// What it said.
    pub outcome: Outcome,
    /// Why it refused, by code; of a gate that was not asked, that.
    pub reason: Option<String>,
}

/// Whether gates were asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Asked {
    /// None is concerned, or the call did not get there.
    #[default]
    No,
    /// Some are, and it was assumed that they do not object.
    Assumed,
    /// They were.
    Yes,
}

/// How far an exchange came.
pub(super) struct Climb<'a> {
    pub(super) server: Option<&'a Server>,
    pub(super) caller: Option<&'a Caller>,
    /// Whether it ended in the header phase.
    pub(super) head: bool,
    pub(super) gates: Asked,
    pub(super) forwarded: bool,
    pub(super) record: Option<&'a Record>,
    pub(super) reason: Option<&'a str>,
    pub(super) spared: &'a [(Rung, String)],
}

/// The rungs in order (ladder.md §2). The last four judge what the server answers.
const NAMES: [&str; 21] = [
    "route",
    "metadata",
    "method",
    "headers",
    "origin",
    "token",
    "scope",
    "body",
    "message",
    "envelope",
    "listed",
    "policy",
    "permission",
    "scope",
    "definition",
    "arguments",
    "gate",
    "answer",
    "listing",
    "discover",
    "screen",
];
const METADATA: usize = 2;
const BASELINE: usize = 7;
const HEAD_ENDS: usize = 8;
const MESSAGE: usize = 9;
const ENVELOPE: usize = 10;
const POLICY: usize = 12;
const CAPABILITY_SCOPE: usize = 14;
const ARGUMENTS: usize = 16;
const GATE: usize = 17;

impl Climb<'_> {
    /// The number of the rung that refused.
    fn number(&self, rung: Rung) -> Option<usize> {
        Some(match rung {
            Rung::Scope if self.head || self.held() => BASELINE,
            Rung::Scope => CAPABILITY_SCOPE,
            // A routing header that cannot be decoded, and a body that turns out too long, are found by later rungs.
            Rung::Headers if !self.head => ENVELOPE,
            Rung::Body if !self.head => MESSAGE,
            Rung::Service => return None,
            other => NAMES.iter().position(|name| *name == other.as_str())?.saturating_add(1),
        })
    }

    /// Whether the baseline scope is missing, which is told late where refusals are to be frames.
    fn held(&self) -> bool {
        self.server.zip(self.caller).is_some_and(|(server, caller)| scope::baseline(server, caller).is_err())
    }

    /// The last rung that had its say.
    fn reached(&self) -> usize {
        let refused = self.record.filter(|_| self.reason.is_some()).and_then(|record| record.rung);
        let answered = self.record.is_some_and(|record| record.outcome == Verdict::Answered);
        let Some(record) = self.record else { return METADATA };
        match (refused, record.outcome) {
            (Some(Rung::Scope), _) if !self.head && self.held() => ENVELOPE,
            (Some(rung), _) => self.number(rung).unwrap_or(0),
            (None, Verdict::Passed) => 1,
            (None, _) if self.forwarded || answered => GATE,
            (None, _) => 0,
        }
    }

    /// Whether a rung has anything to say about a call of this kind.
    fn concerns(&self, number: usize) -> bool {
        let http = self.server.is_some_and(|server| server.kind == Kind::Http);
        let method = self.record.and_then(|record| record.listed);
        match number {
            GATE => self.gates == Asked::Yes,
            HEAD_ENDS..=ARGUMENTS if http => false,
            POLICY => method != Some(Method::Discover),
            ARGUMENTS => method == Some(Method::ToolsCall),
            _ => true,
        }
    }
}

/// Every rung and what it said.
pub(super) fn rows(climb: &Climb<'_>) -> Vec<Row> {
    let reached = climb.reached();
    let mut rows: Vec<Row> = NAMES
        .into_iter()
        .zip(1_u8..)
        .map(|(rung, number)| {
            let at = usize::from(number);
            let outcome = if at <= reached && climb.concerns(at) { Outcome::Pass } else { Outcome::Skip };
            Row { number, rung, outcome, reason: None }
        })
        .collect();
    let mut refuse = |number: Option<usize>, code: &str| {
        let Some(row) = number.and_then(|number| rows.get_mut(number.checked_sub(1)?)) else { return };
        row.outcome = Outcome::Refuse;
        match &mut row.reason {
            Some(reason) if reason != code => *reason = format!("{reason}, {code}"),
            reason => *reason = Some(code.to_owned()),
        }
    };
    for (rung, code) in climb.spared {
        // What shadow mode spares is found behind the envelope.
        let number = if *rung == Rung::Scope { Some(CAPABILITY_SCOPE) } else { climb.number(*rung) };
        refuse(number, code);
    }
    match (climb.reason, climb.record) {
        (Some(code), Some(record)) => {
            refuse(record.rung.and_then(|rung| climb.number(rung)), code);
            if record.rung == Some(Rung::Service) {
                rows.push(Row { number: 0, rung: "service", outcome: Outcome::Refuse, reason: Some(code.to_owned()) });
            }
        }
        (None, Some(record)) if record.outcome == Verdict::Answered => refuse(Some(GATE), "gate.answered"),
        _ => {}
    }
    if climb.gates == Asked::Assumed
        && let Some(gate) = rows.get_mut(GATE - 1)
    {
        gate.reason = Some("not asked".to_owned());
    }
    rows
}
