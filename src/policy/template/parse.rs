//! Reading a template (RFC 6570 §2).

use super::{Modifier, Operator, Part, TemplateFault, Variable};

/// Named parameters of one expression that may come in any order: the automaton has a state per subset of them.
pub(super) const MAX_NAMED: usize = 10;

/// Characters that RFC 6570 §2.2 reserves for operators to come.
const RESERVED_OPERATORS: &str = "=,!@|";

pub(super) fn parts(text: &str) -> Result<Vec<Part>, TemplateFault> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(['{', '}']).unwrap_or(rest.len());
        let (literal, behind) = rest.split_at(end);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal.to_owned()));
        }
        let Some(inside) = behind.strip_prefix('{') else {
            if behind.is_empty() {
                break;
            }
            return Err(TemplateFault::Stray { text: text.to_owned(), at: position(text, behind) });
        };
        let (expression, behind) = inside
            .split_once('}')
            .ok_or_else(|| TemplateFault::Unclosed { text: text.to_owned(), at: position(text, behind) })?;
        if let Some((before, _)) = expression.split_once('{') {
            let at = position(text, inside).saturating_add(before.chars().count());
            return Err(TemplateFault::Stray { text: text.to_owned(), at });
        }
        parts.push(self::expression(expression)?);
        rest = behind;
    }
    Ok(parts)
}

/// Where `rest`, the end of `text`, begins: in characters, from 1.
fn position(text: &str, rest: &str) -> usize {
    text.chars().count().saturating_sub(rest.chars().count()).saturating_add(1)
}

fn expression(text: &str) -> Result<Part, TemplateFault> {
    let owned = || text.to_owned();
    let first = text.chars().next().ok_or_else(|| TemplateFault::NoName { expression: owned() })?;
    if RESERVED_OPERATORS.contains(first) {
        return Err(TemplateFault::Operator { expression: owned(), found: first });
    }
    let (operator, list) = match Operator::of(first) {
        Some(operator) => (operator, text.strip_prefix(first).unwrap_or_default()),
        None => (Operator::Simple, text),
    };
    let mut variables: Vec<Variable> = Vec::new();
    for written in list.split(',') {
        if written.is_empty() {
            return Err(TemplateFault::NoName { expression: owned() });
        }
        let fault = || TemplateFault::Variable { expression: owned(), variable: written.to_owned() };
        let variable = variable(written).ok_or_else(fault)?;
        if operator.is_named() && variables.iter().any(|before| before.name == variable.name) {
            return Err(TemplateFault::Repeated { expression: owned(), name: variable.name });
        }
        variables.push(variable);
    }
    if operator.is_named() && variables.len() > MAX_NAMED {
        return Err(TemplateFault::TooMany { expression: owned(), limit: MAX_NAMED });
    }
    Ok(Part::Expression(operator, variables))
}

/// A name and its modifier. Names are a little wider than RFC 6570 §2.3 has them: `-` is common in the field.
fn variable(written: &str) -> Option<Variable> {
    let (name, modifier) = match (written.strip_suffix('*'), written.split_once(':')) {
        (Some(name), _) => (name, Modifier::Explode),
        (None, Some((name, length))) => (name, Modifier::Prefix(prefix(length)?)),
        (None, None) => (written, Modifier::None),
    };
    let pieces = name.split('.').all(|piece| !piece.is_empty() && piece_is_name(piece));
    pieces.then(|| Variable { name: name.to_owned(), modifier })
}

/// `max-length`: 1 to 9999 without leading zeros.
fn prefix(length: &str) -> Option<u16> {
    let digits = length.bytes().all(|byte| byte.is_ascii_digit()) && !length.starts_with('0') && length.len() <= 4;
    if digits { length.parse().ok() } else { None }
}

fn piece_is_name(piece: &str) -> bool {
    let mut bytes = piece.bytes();
    while let Some(byte) = bytes.next() {
        let good = match byte {
            b'%' => {
                let hex = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
                hex(bytes.next()) && hex(bytes.next())
            }
            _ => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
        };
        if !good {
            return false;
        }
    }
    true
}
