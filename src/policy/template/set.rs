//! Many templates at once: which of them cover a URI.

use std::collections::HashMap;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::util::pool::Pool;
use regex_automata::{Anchored, Input, MatchKind};
use smallvec::SmallVec;

use super::automaton::{self, SIZE_LIMIT};
use super::{Template, TemplateFault};

/// Templates and URIs under one roof. Asking costs one hash look-up and one pass over the URI, however many there are.
#[derive(Debug)]
pub struct TemplateSet {
    /// By the text as written: URIs, which match themselves, and templates, which a URI that still holds braces must
    /// equal.
    exact: HashMap<Box<str>, Indices>,
    patterns: Option<Patterns>,
}

/// Indices into the slice that a [`TemplateSet`] was built from, ascending.
pub(in crate::policy) type Indices = SmallVec<[u32; 4]>;

/// All templates with expressions, as one automaton that is made deterministic as far as URIs ask for it.
struct Patterns {
    dfa: DFA,
    /// By pattern: its index in the set. The automaton has each pattern twice, see [`automaton::build`].
    indices: Vec<u32>,
    caches: Pool<Cache, MakeCache>,
}

type MakeCache = Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>;

/// Bytes of deterministic states kept per thread; beyond that they are made again.
const CACHE: usize = 4 << 20;

impl TemplateSet {
    /// Compiles `templates`.
    ///
    /// # Errors
    /// [`TemplateFault::TooLarge`], with the index of the first that does not fit.
    pub fn build(templates: &[Template]) -> Result<Self, (usize, TemplateFault)> {
        let mut exact: HashMap<Box<str>, Indices> = HashMap::new();
        let (mut indices, mut open) = (Vec::new(), Vec::new());
        for (index, template) in (0_u32..).zip(templates) {
            exact.entry(template.text().into()).or_default().push(index);
            if !template.is_literal() {
                indices.push(index);
                open.push(template);
            }
        }
        let patterns = Patterns::build(&open, &indices).map_err(|at| {
            let text = open.get(at).map_or(String::new(), |template| template.text().to_owned());
            let index = indices.get(at).map_or(0, |index| *index as usize);
            (index, TemplateFault::TooLarge { text, limit: SIZE_LIMIT })
        })?;
        Ok(Self { exact, patterns })
    }

    /// Every entry that covers `uri`, as indices in ascending order: the URI itself, and all templates that it is an
    /// expansion of. A URI that still holds a brace is covered only by the identical template.
    ///
    /// A URI that something covers is also covered by each template that it fits with empty values: they do not make a
    /// URI known, but servers exist that read `cases://case//internal` as `cases://case/{id}/internal`, and what that
    /// costs must not be passed by under `cases://{+path}`.
    ///
    /// `uri` is expected to be in normal form ([`crate::policy::uri`]); characters outside ASCII are covered by nothing
    /// but an identical text. Linear in its length.
    #[must_use]
    pub fn covering(&self, uri: &str) -> SmallVec<[u32; 4]> {
        let exact = self.exact.get(uri);
        let patterns = self.patterns.as_ref().filter(|_| !uri.contains(['{', '}']));
        let Some(patterns) = patterns else { return exact.cloned().unwrap_or_default() };
        let Some(Covering { filled, mut all }) = patterns.covering(uri) else { return Indices::new() };
        if !filled && exact.is_none() {
            return Indices::new();
        }
        all.extend(exact.into_iter().flatten().copied());
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// The templates that match a URI.
struct Covering {
    /// Whether one does without empty values.
    filled: bool,
    /// All that do, in any order, some twice.
    all: Indices,
}

impl Patterns {
    /// `None` when there are no templates. On failure, the index of the first that does not fit.
    fn build(templates: &[&Template], indices: &[u32]) -> Result<Option<Self>, usize> {
        if templates.is_empty() {
            return Ok(None);
        }
        let nfa = automaton::build(templates)?;
        // Without a minimum clear count the automaton never gives up: a full cache is cleared and filled again.
        let config = DFA::config().match_kind(MatchKind::All).cache_capacity(CACHE).skip_cache_capacity_check(true);
        let last = templates.len().saturating_sub(1);
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa).map_err(|_| last)?;
        let for_caches = dfa.clone();
        let caches: Pool<Cache, MakeCache> = Pool::new(Box::new(move || for_caches.create_cache()));
        Ok(Some(Self { dfa, indices: indices.to_vec(), caches }))
    }

    /// The templates that match all of `uri`. `None` when the automaton gave up, which its configuration rules out; then
    /// nothing may be covered, for a template that was not seen could cost more than those that were.
    fn covering(&self, uri: &str) -> Option<Covering> {
        let none = Covering { filled: false, all: Indices::new() };
        let mut guard = self.caches.get();
        let cache = &mut *guard;
        let mut state = self.dfa.start_state_forward(cache, &Input::new(uri).anchored(Anchored::Yes)).ok()?;
        for byte in uri.bytes() {
            state = self.dfa.next_state(cache, state, byte).ok()?;
            if state.is_dead() {
                return Some(none);
            }
            if state.is_quit() {
                return None;
            }
        }
        // Matches are reported one step late, so those at this step are exactly the ones that end with the URI.
        let state = self.dfa.next_eoi_state(cache, state).ok()?;
        if !state.is_match() {
            return Some(none);
        }
        let mut covering = none;
        for at in 0..self.dfa.match_len(cache, state) {
            let pattern = self.dfa.match_pattern(cache, state, at).as_usize();
            let empty = pattern.checked_sub(self.indices.len());
            covering.filled |= empty.is_none();
            covering.all.push(*self.indices.get(empty.unwrap_or(pattern))?);
        }
        Some(covering)
    }
}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patterns").field("indices", &self.indices).finish_non_exhaustive()
    }
}
