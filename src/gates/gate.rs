//! One gate: when it is asked, how long, how many calls at once, and what its failure means.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::time::timeout_at;

use super::breaker::Breaker;
use super::cel::Rule;
use super::decide::Decide;
use super::ext_authz::ExtAuthz;
use super::judge::Judge;
use super::opinion::{Failure, Instead, Objection, Opinion};
use super::question::Question;
use crate::telemetry::record::{Action, Asked};

/// A gate that is ready to be asked.
pub(super) struct Gate {
    pub(super) name: Arc<str>,
    pub(super) kind: Kind,
    /// Recorded, not enforced.
    pub(super) shadow: bool,
    /// `on_failure: allow`.
    pub(super) allow_on_failure: bool,
    /// Labels that it is asked about; `None` for all.
    pub(super) capabilities: Option<HashSet<Arc<str>>>,
    /// For one opinion, waiting for a free slot included.
    pub(super) timeout: Duration,
    pub(super) breaker: Breaker,
    /// Calls that it is asked about at once.
    pub(super) slots: Semaphore,
}

/// How a gate is asked.
pub(super) enum Kind {
    ExtAuthz(ExtAuthz),
    Grpc(Decide),
    Judge(Box<Judge>),
    Cel(Rule),
}

impl Kind {
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::ExtAuthz(_) => "ext_authz",
            Self::Grpc(_) => "grpc",
            Self::Judge(_) => "judge",
            Self::Cel(_) => "cel",
        }
    }
}

/// What one gate means for one call.
pub(super) enum Outcome {
    Pass,
    Noted(String),
    Objection(Objection),
}

impl Gate {
    /// Whether it is asked about a call that reaches these capabilities; none for plain HTTP.
    pub(super) fn concerns<'a>(&self, mut labels: impl Iterator<Item = &'a str>) -> bool {
        self.capabilities.as_ref().is_none_or(|own| labels.any(|label| own.contains(label)))
    }

    /// Its opinion, with its failure already turned into what the configuration makes of it.
    pub(super) async fn outcome(&self, question: &Question) -> (Outcome, Asked) {
        let from = Instant::now();
        let opinion = self.opinion(question).await;
        let (gate, to) = (Arc::clone(&self.name), Instant::now());
        let (kind, said, outcome) = (self.kind.as_str(), opinion.as_str(), self.meaning(opinion));
        let action = match &outcome {
            _ if self.shadow => Action::Audit,
            Outcome::Pass | Outcome::Noted(_) => Action::Allow,
            Outcome::Objection(_) => Action::Deny,
        };
        (outcome, Asked { gate, kind, shadow: self.shadow, said, action, from, to })
    }

    fn meaning(&self, opinion: Opinion) -> Outcome {
        let object = |what| Outcome::Objection(Objection { gate: Arc::clone(&self.name), what });
        match opinion {
            Opinion::Allow => Outcome::Pass,
            Opinion::Deny(denial) => object(Instead::Denied(denial)),
            Opinion::Answer(result) => object(Instead::Answered(result)),
            Opinion::Failed(failure) if self.allow_on_failure => {
                Outcome::Noted(format!("gate {} failed and lets calls pass: {}", self.name, failure.why))
            }
            Opinion::Failed(failure) => object(Instead::Unavailable(failure)),
        }
    }

    /// Asks within the timeout. A cancelled future leaves nothing behind.
    async fn opinion(&self, question: &Question) -> Opinion {
        if let Kind::Cel(rule) = &self.kind {
            return rule.ask(question);
        }
        let resting = || Opinion::Failed(Failure::new("it failed too often in a row and is not asked for a while"));
        let begun = Instant::now();
        if !self.breaker.is_closed(begun) {
            return resting();
        }
        let Some(due) = begun.checked_add(self.timeout) else { return resting() };
        let slot = timeout_at(due.into(), self.slots.acquire()).await;
        // A slot that came free with the last moment is none: the question would only be taken back.
        let (Ok(Ok(_slot)), true) = (slot, Instant::now() < due) else {
            let why = format!(
                "no slot was free: it waited {:?} of {:?} while as many calls as `concurrency` allows were asked about",
                begun.elapsed(),
                self.timeout
            );
            return Opinion::Failed(Failure::new(why));
        };
        let asked = Instant::now();
        let Some(leave) = self.breaker.admit(asked) else { return resting() };
        let waited = asked.saturating_duration_since(begun);
        let opinion = timeout_at(due.into(), self.ask(question, due)).await.unwrap_or_else(|_| self.late(waited));
        // Whoever keeps the time that the gate was told may notice first.
        let opinion = match opinion {
            Opinion::Failed(failure) if !failure.of_this_call && Instant::now() >= due => self.late(waited),
            opinion => opinion,
        };
        if let Opinion::Failed(Failure { of_this_call: true, .. }) = &opinion {
            // Not settled: nothing was learned about the gate.
            return opinion;
        }
        let good = !matches!(opinion, Opinion::Failed(_));
        if leave.settle(good, Instant::now())
            && let Opinion::Failed(failure) = &opinion
        {
            tracing::warn!(gate = %self.name, why = failure.why, "gate failed too often; it is not asked for a while");
        }
        opinion
    }

    async fn ask(&self, question: &Question, due: Instant) -> Opinion {
        match &self.kind {
            Kind::ExtAuthz(gate) => gate.ask(question, due).await,
            Kind::Grpc(gate) => gate.ask(question, due).await,
            Kind::Judge(gate) => gate.ask(question).await,
            Kind::Cel(rule) => rule.ask(question),
        }
    }

    /// The time ran out, of which the call `waited` for its turn.
    fn late(&self, waited: Duration) -> Opinion {
        let why = format!("it did not answer within {:?}", self.timeout);
        let failure = Failure::new(if waited < Duration::from_millis(1) {
            why
        } else {
            format!("{why}, of which the call waited {waited:?} for a free slot (`concurrency`)")
        });
        Opinion::Failed(match &self.kind {
            Kind::Judge(_) => Failure { code: super::judge::unavailable(), ..failure },
            _ => failure,
        })
    }
}
