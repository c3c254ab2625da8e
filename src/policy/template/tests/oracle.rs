//! The slow and obvious matcher, and an expander, for the property tests: neither shares anything with the automaton but
//! the parsed template.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::policy::template::{Modifier, Operator, Part, Template, Variable};

/// What covers `uri`: nothing, unless it is an expansion of one with values that are there; then also every template
/// that it fits with empty ones.
pub(super) fn covering(templates: &[Template], uri: &str) -> Vec<u32> {
    if !templates.iter().any(|template| covers(template, uri, false)) {
        return Vec::new();
    }
    (0..).zip(templates).filter(|(_, template)| covers(template, uri, true)).map(|(at, _)| at).collect()
}

/// Whether `uri` is an expansion of `template`, with `empty` values or without: every way to split it is tried.
fn covers(template: &Template, uri: &str, empty: bool) -> bool {
    if uri.contains(['{', '}']) || template.is_literal() {
        return uri == template.text();
    }
    let mut reached = BTreeSet::from([0]);
    for part in &template.parts {
        reached = reached.iter().flat_map(|from| part_ends(part, uri, *from, empty)).collect();
    }
    reached.contains(&uri.len())
}

/// Where a match of `part` that begins at `from` may end.
fn part_ends(part: &Part, uri: &str, from: usize, empty: bool) -> BTreeSet<usize> {
    match part {
        Part::Literal(text) => after(uri, from, text).into_iter().collect(),
        Part::Expression(operator, variables) if operator.is_named() => {
            let mut ends = BTreeSet::from([from]);
            named(*operator, variables, uri, (from, empty), &[], &mut ends);
            ends
        }
        Part::Expression(operator, variables) => listed(*operator, variables, uri, from, empty),
    }
}

fn after(uri: &str, from: usize, text: &str) -> Option<usize> {
    uri[from..].starts_with(text).then(|| from + text.len())
}

/// Where a value of up to `most` characters may end.
fn values(uri: &str, from: usize, forbidden: &str, most: usize, empty: bool) -> BTreeSet<usize> {
    let mut ends = BTreeSet::new();
    let mut at = from;
    while ends.len() < most {
        let rest = &uri[at..];
        let Some(first) = rest.chars().next() else { break };
        let is_digit = |c: char| c.is_ascii_digit() || ('A'..='F').contains(&c);
        let width = match first {
            '%' if rest.len() >= 3 && rest.is_char_boundary(3) && rest[1..3].chars().all(is_digit) => 3,
            '%' => break,
            _ if forbidden.contains(first) || !first.is_ascii_graphic() => break,
            _ => 1,
        };
        at += width;
        ends.insert(at);
    }
    if empty {
        ends.insert(from);
    }
    ends
}

fn limit(variable: &Variable) -> usize {
    match variable.modifier {
        Modifier::Prefix(most) => most.into(),
        Modifier::None | Modifier::Explode => usize::MAX,
    }
}

fn listed(operator: Operator, variables: &[Variable], uri: &str, from: usize, empty: bool) -> BTreeSet<usize> {
    let (first, separator, forbidden) = match operator {
        Operator::Simple => ("", ",", "/,?#"),
        Operator::Reserved => ("", ",", ""),
        Operator::Fragment => ("#", ",", ""),
        Operator::Label => (".", ".", "/,?#"),
        Operator::Path => ("/", "/", "/,?#"),
        _ => unreachable!("named"),
    };
    let mut reached = BTreeSet::from([from]);
    for (index, variable) in variables.iter().enumerate() {
        let lead = if index == 0 { first } else { separator };
        let one = |at: usize, lead: &str| -> BTreeSet<usize> {
            after(uri, at, lead).into_iter().flat_map(|at| values(uri, at, forbidden, limit(variable), empty)).collect()
        };
        let mut ends: BTreeSet<usize> = reached.iter().flat_map(|at| one(*at, lead)).collect();
        if variable.modifier == Modifier::Explode {
            // As often as there are characters is often enough.
            for _ in uri.chars() {
                let more: BTreeSet<usize> = ends.iter().flat_map(|at| one(*at, separator)).collect();
                ends.extend(more);
            }
        }
        reached = ends;
    }
    reached
}

fn named(
    operator: Operator,
    variables: &[Variable],
    uri: &str,
    (from, empty): (usize, bool),
    seen: &[&str],
    ends: &mut BTreeSet<usize>,
) {
    let (first, separator, forbidden) = match operator {
        Operator::PathParameter => (";", ";", "/,?#;"),
        Operator::Query => ("?", "&", "/,?#&"),
        Operator::QueryContinuation => ("&", "&", "/,?#&"),
        _ => unreachable!("listed"),
    };
    let lead = if seen.is_empty() { first } else { separator };
    for variable in variables {
        if seen.contains(&variable.name.as_str()) && variable.modifier != Modifier::Explode {
            continue;
        }
        let Some(name_end) = after(uri, from, &format!("{lead}{}", variable.name)) else { continue };
        let mut here: BTreeSet<usize> = after(uri, name_end, "=")
            .into_iter()
            .flat_map(|at| values(uri, at, forbidden, limit(variable), empty))
            .collect();
        if operator == Operator::PathParameter {
            here.insert(name_end);
        }
        for end in here {
            ends.insert(end);
            let seen: Vec<&str> = seen.iter().copied().chain([variable.name.as_str()]).collect();
            named(operator, variables, uri, (end, empty), &seen, ends);
        }
    }
}

/// RFC 6570 expansion with `value(n)` for the n-th value needed; `skip` leaves out named parameters.
pub(super) fn expand(template: &Template, value: &dyn Fn(usize) -> String, skip: &dyn Fn(usize) -> bool) -> String {
    let (mut out, mut count) = (String::new(), 0);
    for part in &template.parts {
        match part {
            Part::Literal(text) => out.push_str(text),
            Part::Expression(operator, variables) => {
                let (first, separator) = operator.first_and_separator();
                let mut lead = first;
                for variable in variables {
                    let repeats = if variable.modifier == Modifier::Explode { 2 } else { 1 };
                    for _ in 0..repeats {
                        count += 1;
                        if operator.is_named() && skip(count) {
                            continue;
                        }
                        let text: String = value(count).chars().take(limit(variable)).collect();
                        let name = if operator.is_named() { format!("{}=", variable.name) } else { String::new() };
                        out.push_str(lead);
                        out.push_str(&name);
                        out.push_str(&encode(&text, operator.is_reserved()));
                        lead = separator;
                    }
                }
            }
        }
    }
    out
}

/// Percent-encodes what is not unreserved (RFC 6570 §3.2.1), or not reserved either.
fn encode(text: &str, keep_reserved: bool) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        let keep = byte.is_ascii_alphanumeric()
            || b"-._~".contains(&byte)
            || (keep_reserved && b":/?#[]@!$&'()*+,;=".contains(&byte));
        if keep {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("writing to a string");
        }
    }
    out
}
