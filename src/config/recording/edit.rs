//! A record's YAML file edited in place, by line and token: a person wrote prices and comments into it, and a program that
//! writes the whole file anew would lose them.
//!
//! Every edit is a small one (a digest, a line), and the result is read again and must say exactly what was meant: prices
//! untouched, digests new. A file that is written in a way that these edits do not fit is refused, not guessed at.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::yaml::{closing, quoted, scalar};
use crate::config::tree::{Content, Entry, Node, Place, PlacedFault};
use crate::policy::{Kind, Label};
use crate::record::Digest;

/// A capability as it is offered now.
#[derive(Clone, Debug)]
pub struct Offered {
    /// Its label.
    pub label: Label,
    /// The digest of its definition.
    pub digest: Digest,
    /// A resource's URI or URI template.
    pub uri: Option<String>,
}

/// What a recording makes of a record.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// Where it was taken: a URL.
    pub from: &'a str,
    /// When, as RFC 3339 in UTC.
    pub at: &'a str,
    /// The revision spoken.
    pub protocol: &'a str,
    /// Everything that is offered, in the order of the listing.
    pub offered: &'a [Offered],
    /// What is offered and was left without a price by a person: it gets no entry again.
    pub unpriced: &'a BTreeSet<Label>,
    /// Whether a definition or the instructions changed: then the time is another one, whatever else stays.
    pub changed: bool,
}

/// The YAML file of a first recording.
#[must_use]
pub fn first(name: &str, definitions: &str, plan: &Plan<'_>) -> String {
    let mut out = format!(
        "# The prices of `{name}`: what each capability costs, decided by a person and reviewed like code.\n\
         # TODO never loads: name a permission that a role grants, or remove the entry, and the capability never runs.\n\
         recorded: {}\ndefinitions: {}\ncapabilities:",
        recorded(plan),
        scalar(definitions)
    );
    out.push_str(if plan.offered.is_empty() { " {}\n" } else { "\n" });
    out.extend(plan.offered.iter().map(|offered| lines(offered, "  ", "\n")));
    out
}

/// Edits `text`, whose tree is `root`; the same text when nothing of it changes but the time.
pub(super) fn edited(text: &str, root: &Node, plan: &Plan<'_>) -> Result<String, PlacedFault> {
    let mut editor = Editor { text, edits: Vec::new(), newline: if text.contains("\r\n") { "\r\n" } else { "\n" } };
    let offered: BTreeMap<&Label, &Offered> = plan.offered.iter().map(|offered| (&offered.label, offered)).collect();
    let capabilities =
        root.get("capabilities").ok_or_else(|| fault(root, "expected the key `capabilities`; add it"))?;
    let mut entries: Vec<(&Entry, Option<Label>)> =
        capabilities.entries().iter().map(|entry| (entry, entry.key.parse().ok())).collect();
    entries.sort_by_key(|(entry, _)| entry.place);
    let known: BTreeSet<&Label> = entries.iter().filter_map(|(_, label)| label.as_ref()).collect();
    let new: Vec<&Offered> = plan
        .offered
        .iter()
        .filter(|offered| !known.contains(&offered.label) && !plan.unpriced.contains(&offered.label))
        .collect();
    let mut left = 0_usize;
    for (index, (entry, label)) in entries.iter().enumerate() {
        match label.as_ref().and_then(|label| offered.get(label)) {
            Some(offered) => {
                left = left.saturating_add(1);
                editor.update(entry, offered)?;
            }
            None => {
                editor.comment_out(entry, entries.get(index.saturating_add(1)).map(|(next, _)| *next), plan.at)?;
            }
        }
    }
    editor.add(root, capabilities, entries.last().map(|(entry, _)| *entry), &new, left)?;
    if plan.changed || !editor.edits.is_empty() {
        editor.recorded(root, plan)?;
    }
    let edited = editor.apply();
    holds(&edited, root, plan, &new).map_err(|what| {
        let message = format!(
            "expected a record that can be edited in place, but {what}; write each capability as a block of its own, \
             without anchors, or move the file away and record anew"
        );
        fault(root, &message)
    })?;
    Ok(edited)
}

/// Permission, digest and URI of an entry, as far as it has them.
type Decided = (Option<String>, Option<String>, Option<String>);

/// Whether the edited text says what was meant.
fn holds(edited: &str, before: &Node, plan: &Plan<'_>, new: &[&Offered]) -> Result<(), String> {
    let (Some(root), faults) = Node::parse(edited) else { return Err("it is no YAML any more".to_owned()) };
    if !faults.is_empty() {
        return Err("a key stands in it twice".to_owned());
    }
    let entries = |root: &'_ Node| -> BTreeMap<Label, Decided> {
        let of = |entry: &Entry| {
            let member = |key: &str| entry.node.get(key).and_then(Node::text).map(str::to_owned);
            Some((entry.key.parse().ok()?, (member("permission"), member("digest"), member("uri"))))
        };
        root.get("capabilities").map_or(&[][..], Node::entries).iter().filter_map(of).collect()
    };
    let (old, now) = (entries(before), entries(&root));
    let mut expected = 0_usize;
    for offered in plan.offered {
        let added = new.iter().any(|added| added.label == offered.label);
        let price = match old.get(&offered.label) {
            Some((price, _, _)) => price.clone(),
            None if added => Some("TODO".to_owned()),
            None => continue,
        };
        expected = expected.saturating_add(1);
        let uri = if offered.label.kind() == Kind::Resource { offered.uri.clone() } else { None };
        if now.get(&offered.label) != Some(&(price, Some(offered.digest.to_string()), uri)) {
            return Err(format!("{} would not read as it should", offered.label));
        }
    }
    let keys = |root: &Node| root.entries().iter().map(|entry| entry.key.clone()).collect::<BTreeSet<_>>();
    let mut wanted = keys(before);
    wanted.insert("recorded".to_owned());
    if now.len() != expected || !keys(&root).is_subset(&wanted) || keys(&root).len() < keys(before).len() {
        return Err("it would hold other entries than it should".to_owned());
    }
    Ok(())
}

struct Editor<'a> {
    text: &'a str,
    edits: Vec<(Range<usize>, String)>,
    newline: &'static str,
}

impl Editor<'_> {
    /// The digest and the URI of an entry that stays.
    fn update(&mut self, entry: &Entry, offered: &Offered) -> Result<(), PlacedFault> {
        let Content::Mapping(_) = &entry.node.content else {
            return Err(fault(&entry.node, "expected `{permission: …, digest: …}`; correct the entry"));
        };
        let mut missing = Vec::new();
        let uri = offered.uri.clone().filter(|_| offered.label.kind() == Kind::Resource);
        for (key, value) in [("uri", uri), ("digest", Some(offered.digest.to_string()))] {
            let Some(value) = value else { continue };
            match entry.node.get(key) {
                Some(node) if node.text() == Some(&value) => {}
                Some(node) => self.replace(node, quoted(&value))?,
                None => missing.push(format!("{key}: {}", quoted(&value))),
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let Some(permission) = entry.node.entry("permission") else {
            return Err(fault(&entry.node, "expected the key `permission`; add the price, or `TODO`"));
        };
        let end = self.token(&permission.node)?.end;
        if self.rest(entry.node.place).starts_with('{') {
            self.edits.push((end..end, format!(", {}", missing.join(", "))));
        } else {
            let indent = " ".repeat(permission.place.column.saturating_sub(1));
            let lines: String = missing.iter().map(|line| format!("{indent}{line}{}", self.newline)).collect();
            self.insert_line(self.line_after(end), &lines);
        }
        Ok(())
    }

    /// Turns the lines of an entry into comments: what it cost is not forgotten.
    fn comment_out(&mut self, entry: &Entry, next: Option<&Entry>, at: &str) -> Result<(), PlacedFault> {
        let start = self.line_start(entry.place.line);
        let indent = entry.place.column.saturating_sub(1);
        if !self.text.get(start..).is_some_and(|line| line.chars().take(indent).all(|c| c == ' ')) {
            return Err(own_line(&entry.node));
        }
        let end = self.extent(entry, next)?;
        let day = at.split('T').next().unwrap_or(at);
        let pad = " ".repeat(indent);
        let mut lines = format!("{pad}# No longer offered on {day}:{}", self.newline);
        for line in self.text.get(start..end).unwrap_or_default().split_inclusive('\n') {
            let (space, rest) = line.split_at_checked(indent).unwrap_or(("", line));
            let is_blank = line.trim().is_empty();
            lines.push_str(&if is_blank { line.to_owned() } else { format!("{space}# {rest}") });
        }
        self.edits.push((start..end, lines));
        Ok(())
    }

    /// Where the lines of an entry end: before the next entry and the comments that lead it in.
    fn extent(&self, entry: &Entry, next: Option<&Entry>) -> Result<usize, PlacedFault> {
        if next.is_some_and(|next| next.place.line <= entry.place.line) {
            return Err(own_line(&entry.node));
        }
        let indent = entry.place.column.saturating_sub(1);
        let last = next.map_or(usize::MAX, |next| next.place.line);
        let (mut end, mut at) = (self.line_start(entry.place.line), self.line_start(entry.place.line));
        for line in entry.place.line..last {
            let Some(text) = self.text.get(at..).and_then(|rest| rest.split_inclusive('\n').next()) else { break };
            at = at.saturating_add(text.len());
            let depth = text.len().saturating_sub(text.trim_start_matches(' ').len());
            let deeper = depth > indent || line == entry.place.line;
            let content = text.trim();
            if !content.is_empty() && !deeper && !content.starts_with('#') {
                break;
            }
            if !content.is_empty() && deeper {
                end = at;
            }
        }
        Ok(end)
    }

    /// New capabilities behind the last entry. `left` is how many of the old ones stay.
    fn add(
        &mut self,
        root: &Node,
        capabilities: &Node,
        last: Option<&Entry>,
        new: &[&Offered],
        left: usize,
    ) -> Result<(), PlacedFault> {
        if new.is_empty() && (left > 0 || last.is_none()) {
            return Ok(());
        }
        let Some(key) = root.entry("capabilities") else { return Ok(()) };
        let colon = self.offset(key.place).saturating_add("capabilities:".len());
        if !self.rest(key.place).starts_with("capabilities:") {
            return Err(fault(root, "expected the key `capabilities:` without quotes; correct it"));
        }
        if new.is_empty() {
            self.edits.push((colon..colon, " {}".to_owned()));
            return Ok(());
        }
        let (at, indent) = match last {
            Some(entry) if self.rest(capabilities.place).starts_with('{') => return Err(own_line(&entry.node)),
            Some(entry) => (self.extent(entry, None)?, entry.place.column.saturating_sub(1)),
            None => {
                if self.rest(capabilities.place).starts_with('{') {
                    // Empty braces, and the blanks in front of them.
                    let start = self.offset(capabilities.place);
                    let end = self.text.get(start..).and_then(|rest| rest.find('}')).unwrap_or(0);
                    self.edits.push((colon..start.saturating_add(end).saturating_add(1), String::new()));
                }
                (self.line_after(colon), key.place.column.saturating_add(1))
            }
        };
        let pad = " ".repeat(indent);
        let lines: String = new.iter().map(|offered| lines(offered, &pad, self.newline)).collect();
        self.insert_line(at, &lines);
        Ok(())
    }

    /// Where and when.
    fn recorded(&mut self, root: &Node, plan: &Plan<'_>) -> Result<(), PlacedFault> {
        let Some(node) = root.get("recorded") else {
            let first = root.entries().iter().map(|entry| entry.place.line).min().unwrap_or(1);
            let line = format!("recorded: {}{}", recorded(plan), self.newline);
            self.insert_line(self.line_start(first), &line);
            return Ok(());
        };
        let values = [("from", quoted(plan.from)), ("at", plan.at.to_owned()), ("protocol", quoted(plan.protocol))];
        for (key, value) in values {
            let Some(node) = node.get(key) else { continue };
            let own = value.trim_matches('"');
            if node.text() != Some(own) {
                self.replace(node, value)?;
            }
        }
        Ok(())
    }

    fn replace(&mut self, node: &Node, with: String) -> Result<(), PlacedFault> {
        let token = self.token(node)?;
        self.edits.push((token, with));
        Ok(())
    }

    /// Inserts whole lines at the beginning of a line, or behind a last line that has no end.
    fn insert_line(&mut self, at: usize, lines: &str) {
        let ended = at == 0 || self.text.get(..at).is_some_and(|before| before.ends_with('\n'));
        let lines = if ended { lines.to_owned() } else { format!("{}{lines}", self.newline) };
        self.edits.push((at..at, lines));
    }

    /// The bytes of a scalar as it is written.
    fn token(&self, node: &Node) -> Result<Range<usize>, PlacedFault> {
        let start = self.offset(node.place);
        let rest = self.rest(node.place);
        let text = node.text().unwrap_or_default();
        let length = match rest.chars().next() {
            Some('"') => closing(rest, '"'),
            Some('\'') => closing(rest, '\''),
            _ => rest.starts_with(text).then_some(text.len()).filter(|length| *length > 0),
        };
        let end = length.map(|length| start.saturating_add(length));
        end.map(|end| start..end).ok_or_else(|| fault(node, "expected a value in one piece on one line; write it so"))
    }

    fn rest(&self, place: Place) -> &str {
        self.text.get(self.offset(place)..).unwrap_or_default()
    }

    /// The byte of a place; columns count characters.
    fn offset(&self, place: Place) -> usize {
        let start = self.line_start(place.line);
        let line = self.text.get(start..).unwrap_or_default();
        let column = place.column.saturating_sub(1);
        start.saturating_add(line.char_indices().nth(column).map_or(line.len(), |(at, _)| at))
    }

    fn line_start(&self, line: usize) -> usize {
        let ends = self.text.match_indices('\n').map(|(at, _)| at.saturating_add(1));
        std::iter::once(0).chain(ends).nth(line.saturating_sub(1)).unwrap_or(self.text.len())
    }

    /// The beginning of the line after the one that byte `at` stands on.
    fn line_after(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        rest.find('\n').map_or(self.text.len(), |end| at.saturating_add(end).saturating_add(1))
    }

    fn apply(mut self) -> String {
        self.edits.sort_by_key(|(range, _)| (range.start, range.end));
        let mut out = String::with_capacity(self.text.len());
        let mut at = 0;
        for (range, new) in &self.edits {
            out.push_str(self.text.get(at..range.start).unwrap_or_default());
            out.push_str(new);
            at = range.end.max(at);
        }
        out.push_str(self.text.get(at..).unwrap_or_default());
        out
    }
}

/// The lines of a capability that nobody priced yet.
fn lines(offered: &Offered, pad: &str, newline: &str) -> String {
    let mut out = format!("{pad}{}:{newline}{pad}  permission: TODO{newline}", scalar(&offered.label.to_string()));
    if let Some(uri) = offered.uri.as_ref().filter(|_| offered.label.kind() == Kind::Resource) {
        out.push_str(&format!("{pad}  uri: {}{newline}", quoted(uri)));
    }
    out.push_str(&format!("{pad}  digest: \"{}\"{newline}", offered.digest));
    out
}

fn recorded(plan: &Plan<'_>) -> String {
    format!("{{from: {}, at: {}, protocol: {}}}", quoted(plan.from), plan.at, quoted(plan.protocol))
}

fn own_line(node: &Node) -> PlacedFault {
    fault(node, "expected each capability as lines of its own; write `capabilities:` as a block, one entry a line")
}

fn fault(node: &Node, message: &str) -> PlacedFault {
    PlacedFault { place: node.place, path: node.path.clone(), message: message.to_owned() }
}
