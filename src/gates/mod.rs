//! External opinions: gates that are asked about a call after everything that we can decide ourselves (rung 17).
//!
//! ```text
//! Question ──▶ Gates::ask ──▶ gate, gate, gate, in configuration order; the first objection wins ──▶ Ruling
//!                              │ ext_authz: Envoy's own Authorization/Check, so that OPA and its kin work unchanged
//!                              │ grpc:      our contract, proto/portcullis/gate/v1/gate.proto
//!                              │ judge:     a model behind /v1/chat/completions asks whether the user wanted this
//!                              └ cel:       a compiled expression over principal, call and arguments
//! ```
//!
//! Each gate has a timeout, a breaker and a bound on concurrent calls, so that a dead one costs a bounded time; what its
//! failure means is configuration, and the default is to refuse. Gates in shadow mode are asked beside the others and
//! only recorded. Dropping the future of [`Gates::ask`] cancels whatever is being asked.
//!
//! A gate decides; it does not edit. It sees [`Question`]: verified facts and the arguments, never the caller's token,
//! cookies or other headers.

mod breaker;
mod build;
mod cel;
pub mod config;
mod decide;
mod ext_authz;
mod gate;
mod judge;
mod opinion;
mod peer;
mod question;

#[cfg(test)]
mod tests;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, join_all, select};

pub use build::{Fault, Setting};
use gate::{Gate, Outcome};
pub use opinion::{Decision, Denial, Failure, Instead, Objection, Opinion, Ruling};
pub use question::{Arguments, Asker, HttpCall, Intent, Question};

/// Our own gate contract, generated from `proto/portcullis/gate/v1/gate.proto`.
pub mod contract {
    #![allow(missing_docs, clippy::all, clippy::pedantic)]
    include!(concat!(env!("OUT_DIR"), "/portcullis.gate.v1.rs"));
}

/// The gates of one server, in configuration order.
#[derive(Default)]
pub struct Gates {
    gates: Vec<Gate>,
    /// Names of the headers that some gate reads an intent from.
    headers: Vec<Arc<str>>,
}

/// What the gates that are enforced say together.
struct Enforced {
    decision: Decision,
    notes: Vec<String>,
}

impl Gates {
    /// Whether any gate is to be asked about a call that reaches these capabilities. Allocates nothing.
    pub fn concern<'a>(&self, labels: &(impl Iterator<Item = &'a str> + Clone)) -> bool {
        self.gates.iter().any(|gate| gate.concerns(labels.clone()))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.gates.is_empty()
    }

    /// The headers that a [`Question`] must carry, lower case.
    #[must_use]
    pub fn headers(&self) -> &[Arc<str>] {
        &self.headers
    }

    /// Name and kind of each gate, and whether it is in shadow mode.
    pub fn described(&self) -> impl Iterator<Item = (&str, &'static str, bool)> {
        self.gates.iter().map(|gate| (&*gate.name, gate.kind.as_str(), gate.shadow))
    }

    /// The longest that [`Gates::ask`] may take for this question: the timeouts of those that are asked one after the other,
    /// or of the slowest in shadow mode.
    #[must_use]
    pub fn patience(&self, question: &Question) -> Duration {
        let concerned =
            self.gates.iter().filter(|gate| gate.concerns(question.capabilities.iter().map(|label| &**label)));
        let (mut enforced, mut shadow) = (Duration::ZERO, Duration::ZERO);
        for gate in concerned {
            if gate.shadow {
                shadow = shadow.max(gate.timeout);
            } else {
                enforced = enforced.saturating_add(gate.timeout);
            }
        }
        enforced.max(shadow)
    }

    /// What the gates that are enforced may take together, one after the other.
    #[must_use]
    pub fn enforced_time(&self) -> Duration {
        let enforced = self.gates.iter().filter(|gate| !gate.shadow);
        enforced.fold(Duration::ZERO, |sum, gate| sum.saturating_add(gate.timeout))
    }

    /// Asks every gate that the call concerns: those that are enforced one after the other until one objects, those in
    /// shadow mode beside them. Ends at once when an enforced gate objects.
    pub async fn ask(&self, question: &Question) -> Ruling {
        let concerned = |gate: &&Gate| gate.concerns(question.capabilities.iter().map(|label| &**label));
        let shadows = self.gates.iter().filter(|gate| gate.shadow).filter(concerned);
        let shadows = pin!(join_all(shadows.map(|gate| gate.outcome(question))));
        let enforced = pin!(self.enforced(question));
        let (Enforced { decision, notes }, shadows) = match select(enforced, shadows).await {
            Either::Left((enforced, rest)) => {
                let open = enforced.decision == Decision::Allow;
                (enforced, if open { rest.await } else { Vec::new() })
            }
            Either::Right((shadows, rest)) => (rest.await, shadows),
        };
        let shadowed = shadows
            .into_iter()
            .filter_map(|outcome| match outcome {
                Outcome::Objection(objection) => Some(objection),
                Outcome::Pass | Outcome::Noted(_) => None,
            })
            .collect();
        Ruling { decision, shadowed, notes }
    }

    async fn enforced(&self, question: &Question) -> Enforced {
        let mut notes = Vec::new();
        for gate in self.gates.iter().filter(|gate| !gate.shadow) {
            if !gate.concerns(question.capabilities.iter().map(|label| &**label)) {
                continue;
            }
            match gate.outcome(question).await {
                Outcome::Pass => {}
                Outcome::Noted(note) => notes.push(note),
                Outcome::Objection(objection) => return Enforced { decision: Decision::Object(objection), notes },
            }
        }
        Enforced { decision: Decision::Allow, notes }
    }

    /// Futures that follow the files of our own secrets for as long as the gates live.
    pub fn watch(&self) -> impl Iterator<Item = impl Future<Output = ()> + Send + 'static> {
        self.gates.iter().filter_map(|gate| match &gate.kind {
            gate::Kind::Judge(judge) => judge.watch(),
            _ => None,
        })
    }
}
