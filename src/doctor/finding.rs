//! What is found, and the list of it.

use serde::Serialize;

use super::check::{Check, Severity};

/// One thing that is unsafe or will surprise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The id of the check, stable; `docs/doctor.md` explains it.
    pub id: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// Where: keys from the root, list items by their names where they have one.
    #[serde(rename = "where")]
    pub place: String,
    /// What should have been there.
    pub expected: String,
    /// What is there.
    pub found: String,
    /// What to do.
    pub fix: &'static str,
}

/// Findings as they come up.
#[derive(Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    pub(super) fn add(&mut self, check: Check, place: impl Into<String>, found: impl Into<String>) {
        self.expecting(check, place, check.expected(), found);
    }

    /// As [`Self::add`], with an expectation that says more than the check's own.
    pub(super) fn expecting(
        &mut self,
        check: Check,
        place: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        self.0.push(Finding {
            id: check.id(),
            severity: check.severity(),
            place: place.into(),
            expected: expected.into(),
            found: found.into(),
            fix: check.fix(),
        });
    }

    /// The worst first, then as the configuration is read; each once.
    pub(super) fn sorted(mut self) -> Vec<Finding> {
        self.0.sort_by_key(|finding| finding.severity);
        let mut once: Vec<Finding> = Vec::with_capacity(self.0.len());
        let mut seen = std::collections::HashSet::new();
        for finding in self.0 {
            if seen.insert((finding.id, finding.place.clone(), finding.found.clone())) {
                once.push(finding);
            }
        }
        once
    }
}
