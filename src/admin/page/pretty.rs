//! Canonical JSON laid out for a person: one member or item a line, so that two texts can be compared line by line.

/// Lays out `text`, which has no white space outside of strings and may be cut anywhere. Letters are left as they are.
pub(super) fn pretty(text: &str) -> String {
    let mut out = String::with_capacity(text.len().saturating_mul(2));
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if quoted {
            out.push(letter);
            quoted = escaped || letter != '"';
            escaped = !escaped && letter == '\\';
            continue;
        }
        match letter {
            '{' | '[' => {
                out.push(letter);
                if let Some(end) = letters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth = depth.saturating_add(1);
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(letter);
            }
            ',' => {
                out.push(letter);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                quoted = letter == '"';
                out.push(letter);
            }
        }
    }
    out
}

/// Deep nesting is not moved further to the right: a hostile text would grow with the square of its depth.
fn line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth.min(32)));
}
