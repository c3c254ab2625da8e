//! From claims to matching rules without asking every rule: each condition is filed under the value that fulfils it, so
//! a look-up per claim value finds the conditions it meets, and a rule matches when as many are met as it has.

use std::collections::HashMap;

use crate::message::json::{Kind, Value};
use crate::message::number;
use crate::policy::bits::Bits;
use crate::policy::claims::{ClaimPath, Claims, fold};
use crate::policy::source::{MatchSource, Scalar};

/// Conditions by the value that fulfils them. A condition is an index into `Index::owners`.
type ByValue = HashMap<Box<str>, Vec<u32>>;

/// The conditions of all rules.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    issuer: ByValue,
    subject: ByValue,
    /// Folded.
    email: ByValue,
    /// Folded.
    domain: ByValue,
    claims: Vec<ClaimIndex>,
    /// By condition: the rule it belongs to.
    owners: Vec<u32>,
    /// By rule: how many conditions it has.
    needs: Vec<u32>,
}

/// The conditions about one claim path.
#[derive(Clone, Debug)]
struct ClaimIndex {
    path: ClaimPath,
    texts: ByValue,
    /// By canonical decimal.
    numbers: ByValue,
    yes: Vec<u32>,
    no: Vec<u32>,
}

/// What has been met so far while one caller is looked at.
struct Tally<'a> {
    index: &'a Index,
    conditions: Bits,
    /// By rule: how many of its conditions are met.
    met: Vec<u32>,
}

impl Index {
    /// Files the conditions of the next rule.
    pub(super) fn add(&mut self, matches: &MatchSource) {
        let rule = u32::try_from(self.needs.len()).unwrap_or(u32::MAX);
        let first = self.owners.len();
        if let Some(issuer) = &matches.issuer {
            let condition = self.condition(rule);
            file(&mut self.issuer, issuer, condition);
        }
        if let Some(subject) = &matches.sub {
            let condition = self.condition(rule);
            file(&mut self.subject, subject, condition);
        }
        if let Some(email) = &matches.email {
            let condition = self.condition(rule);
            file(&mut self.email, &fold(email), condition);
        }
        if let Some(domain) = &matches.domain {
            let condition = self.condition(rule);
            file(&mut self.domain, &fold(domain), condition);
        }
        for (path, values) in matches.claim.iter().flatten() {
            let condition = self.condition(rule);
            self.add_claim(path, values, condition);
        }
        self.needs.push(u32::try_from(self.owners.len().saturating_sub(first)).unwrap_or(u32::MAX));
    }

    /// The rules that match.
    pub(super) fn matching(&self, claims: &Claims) -> Bits {
        let mut tally = Tally { index: self, conditions: Bits::default(), met: vec![0; self.needs.len()] };
        tally.meet(self.issuer.get(claims.issuer.as_ref()));
        tally.meet(self.subject.get(claims.subject.as_ref()));
        if let Some(email) = claims.verified_email() {
            tally.meet(self.email.get(fold(email).as_str()));
        }
        if let Some(domain) = claims.domain() {
            tally.meet(self.domain.get(fold(domain).as_str()));
        }
        for claim in &self.claims {
            match claim.path.find(&claims.document) {
                Some(array) if array.kind() == Kind::Array => {
                    array.items().for_each(|item| claim.meet(item, &mut tally));
                }
                Some(value) => claim.meet(value, &mut tally),
                None => {}
            }
        }
        let complete = tally.met.iter().zip(&self.needs).map(|(met, needs)| met == needs);
        (0_u32..).zip(complete).filter(|(_, complete)| *complete).map(|(rule, _)| rule).collect()
    }

    fn condition(&mut self, rule: u32) -> u32 {
        let condition = u32::try_from(self.owners.len()).unwrap_or(u32::MAX);
        self.owners.push(rule);
        condition
    }

    /// Files the values of one condition about the claim at `path`.
    fn add_claim<'a>(&mut self, path: &str, values: impl IntoIterator<Item = &'a Scalar>, condition: u32) {
        let known = self.claims.iter_mut().find(|claim| claim.path.name() == path);
        let mut new = None;
        let claim = known.unwrap_or_else(|| new.insert(ClaimIndex::new(path)));
        for value in values {
            claim.file(value, condition);
        }
        self.claims.extend(new);
    }
}

impl ClaimIndex {
    fn new(path: &str) -> Self {
        Self {
            path: ClaimPath::new(path),
            texts: ByValue::new(),
            numbers: ByValue::new(),
            yes: Vec::new(),
            no: Vec::new(),
        }
    }

    fn file(&mut self, value: &Scalar, condition: u32) {
        match value {
            Scalar::Text(text) => file(&mut self.texts, text, condition),
            // A configured number always has a canonical form: it came from 64 bits.
            Scalar::Number(text) => {
                if let Some(number) = number::canonical(text) {
                    file(&mut self.numbers, &number, condition);
                }
            }
            Scalar::Bool(true) => self.yes.push(condition),
            Scalar::Bool(false) => self.no.push(condition),
        }
    }

    fn meet(&self, value: Value<'_>, tally: &mut Tally<'_>) {
        match value.kind() {
            Kind::String => tally.meet(value.as_str().and_then(|text| self.texts.get(text))),
            Kind::Number if self.numbers.is_empty() => {}
            Kind::Number => {
                let number = value.as_number().and_then(number::canonical);
                tally.meet(number.and_then(|number| self.numbers.get(number.as_str())));
            }
            Kind::Bool if value.as_bool() == Some(true) => tally.meet(Some(&self.yes)),
            Kind::Bool => tally.meet(Some(&self.no)),
            Kind::Null | Kind::Array | Kind::Object => {}
        }
    }
}

impl Tally<'_> {
    /// Counts conditions as met, each once however many values of an array meet it.
    fn meet(&mut self, conditions: Option<&Vec<u32>>) {
        for condition in conditions.into_iter().flatten() {
            if self.conditions.contains(*condition) {
                continue;
            }
            self.conditions.insert(*condition);
            let owner = self.index.owners.get(*condition as usize);
            if let Some(met) = owner.and_then(|rule| self.met.get_mut(*rule as usize)) {
                *met = met.saturating_add(1);
            }
        }
    }
}

fn file(map: &mut ByValue, value: &str, condition: u32) {
    map.entry(value.into()).or_default().push(condition);
}
