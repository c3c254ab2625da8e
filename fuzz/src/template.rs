//! URI templates against a matcher that tries everything, with a parser of its own.

use std::collections::BTreeSet;

use portcullis::policy::{Template, TemplateSet};

/// A piece of a template: text, or an operator and its variables with `*` or a limit.
enum Piece<'t> {
    Text(&'t str),
    Expression(char, Vec<(&'t str, bool, usize)>),
}

/// Up to three templates and a URI, each on a line of its own, the URI last.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if text.len() > 160 {
        return;
    }
    let mut lines: Vec<&str> = text.split('\n').collect();
    let uri = lines.pop().unwrap_or_default();
    lines.truncate(3);
    let templates: Vec<Template> = lines.iter().filter_map(|line| Template::parse(line).ok()).collect();
    // Long URIs against many parameters take the slow matcher for ever.
    let parameters: usize = templates.iter().map(|template| template.text().matches([',', '{']).count()).sum();
    if uri.len() > 40 || parameters > 9 {
        return;
    }
    let Ok(set) = TemplateSet::build(&templates) else { return };
    let read: Vec<_> = templates.iter().map(|template| (template.text(), pieces(template.text()))).collect();
    let covers = |empty| read.iter().map(move |(text, pieces)| covers(text, pieces, uri, empty));
    let expected: Vec<u32> = if covers(false).any(|covers| covers) {
        (0..).zip(covers(true)).filter(|(_, covers)| *covers).map(|(at, _)| at).collect()
    } else {
        Vec::new()
    };
    assert_eq!(set.covering(uri).to_vec(), expected, "{uri:?} against {lines:?}");
    for (index, template) in (0..).zip(&templates) {
        assert!(set.covering(template.text()).contains(&index), "a template covers its own text");
    }
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while let Some(open) = rest.find('{') {
        let close = rest.find('}').expect("braces in pairs");
        pieces.push(Piece::Text(&rest[..open]));
        let inside = &rest[open + 1..close];
        let operator = inside.chars().next().filter(|first| "+#./;?&".contains(*first));
        let names = if operator.is_some() { &inside[1..] } else { inside };
        let variable = |text: &'_ str| -> (usize, bool, usize) {
            match text.split_once(':') {
                Some((name, most)) => (name.len(), false, most.parse().expect("a limit")),
                None => (text.trim_end_matches('*').len(), text.ends_with('*'), usize::MAX),
            }
        };
        let variables = names.split(',').map(|text| {
            let (length, explode, most) = variable(text);
            (&text[..length], explode, most)
        });
        pieces.push(Piece::Expression(operator.unwrap_or(' '), variables.collect()));
        rest = &rest[close + 1..];
    }
    pieces.push(Piece::Text(rest));
    pieces
}

fn covers(text: &str, pieces: &[Piece<'_>], uri: &str, empty: bool) -> bool {
    if uri.contains(['{', '}']) || pieces.len() == 1 {
        return uri == text;
    }
    let mut ends = BTreeSet::from([0]);
    for piece in pieces {
        ends = ends.into_iter().flat_map(|from| after(piece, uri, from, empty)).collect();
    }
    ends.contains(&uri.len())
}

/// Where a match of this piece that begins at `from` may end.
fn after(piece: &Piece<'_>, uri: &str, from: usize, empty: bool) -> BTreeSet<usize> {
    match piece {
        Piece::Text(text) => literal(uri, from, text).into_iter().collect(),
        Piece::Expression(operator @ (';' | '?' | '&'), variables) => {
            let mut ends = BTreeSet::from([from]);
            named(*operator, variables, uri, from, empty, &mut Vec::new(), &mut ends);
            ends
        }
        Piece::Expression(operator, variables) => {
            let (first, separator) = match operator {
                '#' => ("#", ","),
                '.' => (".", "."),
                '/' => ("/", "/"),
                _ => ("", ","),
            };
            let forbidden = if matches!(operator, '+' | '#') { "" } else { "/,?#" };
            let mut reached = BTreeSet::from([from]);
            for (at, (_, explode, most)) in variables.iter().enumerate() {
                let step = |from: usize, lead: &str| -> BTreeSet<usize> {
                    literal(uri, from, lead)
                        .into_iter()
                        .flat_map(|at| value(uri, at, forbidden, *most, empty))
                        .collect()
                };
                let lead = if at == 0 { first } else { separator };
                let mut ends: BTreeSet<usize> = reached.iter().flat_map(|from| step(*from, lead)).collect();
                // As often as there are characters is often enough.
                for _ in (0..uri.len()).filter(|_| *explode) {
                    let more: BTreeSet<usize> = ends.iter().flat_map(|from| step(*from, separator)).collect();
                    ends.extend(more);
                }
                reached = ends;
            }
            reached
        }
    }
}

/// Parameters in any order, each once unless it explodes, any left out.
fn named<'t>(
    operator: char,
    variables: &[(&'t str, bool, usize)],
    uri: &str,
    from: usize,
    empty: bool,
    seen: &mut Vec<&'t str>,
    ends: &mut BTreeSet<usize>,
) {
    let separator = if operator == ';' { ';' } else { '&' };
    let lead = if seen.is_empty() { operator } else { separator };
    for (name, explode, most) in variables {
        if seen.contains(name) && !explode {
            continue;
        }
        let Some(named_to) = literal(uri, from, &format!("{lead}{name}")) else { continue };
        let forbidden = format!("/,?#{separator}");
        let mut here: BTreeSet<usize> =
            literal(uri, named_to, "=").into_iter().flat_map(|at| value(uri, at, &forbidden, *most, empty)).collect();
        if operator == ';' {
            here.insert(named_to);
        }
        for end in here {
            ends.insert(end);
            seen.push(name);
            named(operator, variables, uri, end, empty, seen, ends);
            seen.pop();
        }
    }
}

fn literal(uri: &str, from: usize, text: &str) -> Option<usize> {
    uri[from..].starts_with(text).then(|| from + text.len())
}

/// Where a value may end: characters of a URI, none that is forbidden, an encoded octet counted as one.
fn value(uri: &str, from: usize, forbidden: &str, most: usize, empty: bool) -> BTreeSet<usize> {
    let (bytes, mut at, mut ends) = (uri.as_bytes(), from, BTreeSet::new());
    let hex = |byte: Option<&u8>| byte.is_some_and(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'));
    while ends.len() < most && at < bytes.len() {
        at += match bytes[at] {
            b'%' if hex(bytes.get(at + 1)) && hex(bytes.get(at + 2)) => 3,
            byte if byte.is_ascii_graphic() && byte != b'%' && !forbidden.as_bytes().contains(&byte) => 1,
            _ => break,
        };
        ends.insert(at);
    }
    if empty {
        ends.insert(from);
    }
    ends
}
