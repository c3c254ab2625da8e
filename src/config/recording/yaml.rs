//! YAML scalars: reading their extent, writing them so that every reader reads the same.

/// The length of a quoted scalar at the beginning of `rest`, quotes included.
pub(super) fn closing(rest: &str, quote: char) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        // Two single quotes are one that belongs to the text.
        let doubled = c == '\'' && quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == '\'');
        if doubled || (c == '\\' && quote == '"') {
            chars.next();
        } else if c == quote {
            return Some(at.saturating_add(1));
        } else if c == '\n' {
            return None;
        }
    }
    None
}

/// A text as a plain scalar where that cannot be misread, else in quotes.
pub(super) fn scalar(text: &str) -> String {
    let plain =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b));
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_word = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word));
    if begins && !is_word && text.split(':').all(plain) { text.to_owned() } else { quoted(text) }
}

/// A text as a double-quoted scalar; whatever a reader might not see is written as an escape.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            c if c.is_alphanumeric() => out.push(c),
            c if u32::from(c) <= 0xFFFF => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push_str(&format!("\\U{:08X}", u32::from(c))),
        }
    }
    out.push('"');
    out
}
