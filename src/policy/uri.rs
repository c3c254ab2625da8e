//! Whether a resource URI is in normal form (ladder §4, last paragraph).
//!
//! Prices belong to URIs as they are written, but an upstream may normalise what it gets: drop a tab, resolve `..`,
//! decode `%61`. A URI that could become another one on the way might be priced as the cheap one and served as the dear
//! one, so only a URI that normalisation leaves alone is judged; every other is refused.

use std::borrow::Cow;

/// The rule of the normal form that a URI breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotNormal {
    /// No `scheme:` in front (RFC 3986 §3.1).
    #[error("expected an absolute URI, one that begins with a scheme such as 'https:'")]
    NotAbsolute,
    /// A control character, U+0000 to U+001F or U+007F.
    #[error("expected no control character")]
    Control,
    /// A blank.
    #[error("expected no space")]
    Space,
    /// `\`, which many parsers read as `/`.
    #[error("expected no backslash")]
    Backslash,
    /// A character outside ASCII.
    #[error("expected characters outside ASCII to be percent-encoded")]
    NotAscii,
    /// One of `"`, `<`, `>`, `^`, `` ` ``, `|`, which no URI holds (RFC 3986 appendix A).
    #[error("expected only characters that a URI may hold")]
    Character,
    /// `%` without two hexadecimal digits behind it.
    #[error("expected two hexadecimal digits after '%'")]
    MalformedPercent,
    /// A percent-encoded octet written in lower case (RFC 3986 §6.2.2.1).
    #[error("expected upper-case hexadecimal digits after '%'")]
    LowerCasePercent,
    /// A percent-encoded letter, digit, `-`, `.`, `_` or `~` (RFC 3986 §6.2.2.2).
    #[error("expected letters, digits, '-', '.', '_' and '~' not to be percent-encoded")]
    EncodedUnreserved,
    /// `.` or `..` as a segment (RFC 3986 §6.2.2.3), its dots and the slashes around it encoded or not.
    #[error("expected no '.' or '..' segment")]
    DotSegment,
    /// An upper-case letter in the scheme (RFC 3986 §6.2.2.1).
    #[error("expected a lower-case scheme")]
    UpperCaseScheme,
    /// An upper-case letter in the host of a web URI.
    #[error("expected a lower-case host")]
    UpperCaseHost,
    /// A percent-encoded octet in the host of a web URI, which URL parsers decode.
    #[error("expected no percent-encoding in the host")]
    EncodedHost,
    /// The scheme's own port, an empty one, or one with leading zeros, in a web URI.
    #[error("expected no port that equals the scheme's default, is empty or begins with 0")]
    Port,
    /// A web URI that does not name its host after exactly two slashes.
    #[error("expected '//' and a host after the scheme")]
    NoHost,
}

/// Schemes whose URIs every URL parser normalises further, with their default ports (WHATWG URL §4.2).
const WEB_SCHEMES: [(&str, Option<u16>); 6] =
    [("http", Some(80)), ("https", Some(443)), ("ws", Some(80)), ("wss", Some(443)), ("ftp", Some(21)), ("file", None)];

/// Whether `text` is an absolute URI in normal form, or a URI template whose literal text is: each `{…}` counts as one
/// plain character. Linear; allocates only for a text with braces.
///
/// # Errors
/// The first rule found broken.
pub fn normal_form(text: &str) -> Result<(), NotNormal> {
    let sample = sample(text);
    let uri = sample.as_ref();
    characters(uri)?;
    let (scheme, rest) = split_scheme(uri).ok_or(NotNormal::NotAbsolute)?;
    // Encoded dots before encoded letters, so that the more telling rule is named.
    dot_segments(rest)?;
    percents(uri)?;
    if scheme.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(NotNormal::UpperCaseScheme);
    }
    match WEB_SCHEMES.iter().find(|(name, _)| *name == scheme) {
        Some((_, default_port)) => web(scheme, rest, *default_port),
        None => Ok(()),
    }
}

/// `text` with each `{…}` replaced by the shortest expansion that shows its operator.
fn sample(text: &str) -> Cow<'_, str> {
    if !text.contains('{') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    if text.starts_with('{') {
        // The expression may expand to the scheme; nothing is known of it.
        out.push_str("x:");
    }
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        out.extend(after.chars().next().filter(|operator| "#./;?&".contains(*operator)));
        out.push('x');
        rest = after.split_once('}').map_or("", |(_, behind)| behind);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn characters(uri: &str) -> Result<(), NotNormal> {
    for byte in uri.bytes() {
        match byte {
            b' ' => return Err(NotNormal::Space),
            0..=0x1F | 0x7F => return Err(NotNormal::Control),
            b'\\' => return Err(NotNormal::Backslash),
            0x80.. => return Err(NotNormal::NotAscii),
            b'"' | b'<' | b'>' | b'^' | b'`' | b'|' => return Err(NotNormal::Character),
            _ => {}
        }
    }
    Ok(())
}

/// `scheme` and what follows the colon; `None` when there is no scheme (RFC 3986 §3.1).
fn split_scheme(uri: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = uri.split_once(':')?;
    let letters = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    (scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && letters).then_some((scheme, rest))
}

/// Everything between the scheme and the query counts as segments, an authority too: no host is called `..`, and not
/// every upstream knows where the authority of a private scheme ends. Encoded slashes count as slashes, for those that
/// decode first.
fn dot_segments(rest: &str) -> Result<(), NotNormal> {
    let mut rest = rest.split(['?', '#']).next().unwrap_or_default().as_bytes();
    // Whether the segment at hand consists of dots only, and of how many.
    let mut dots = Some(0_u8);
    loop {
        let (separator, dot, width) = match rest {
            [] => (true, false, 0),
            [b'%', b'2', b'e' | b'E', ..] => (false, true, 3),
            [b'%', b'2', b'f' | b'F', ..] | [b'%', b'5', b'c' | b'C', ..] => (true, false, 3),
            [b'/', ..] => (true, false, 1),
            [b'.', ..] => (false, true, 1),
            [_, ..] => (false, false, 1),
        };
        match dots {
            Some(1 | 2) if separator => return Err(NotNormal::DotSegment),
            _ if separator => dots = Some(0),
            Some(count) if dot => dots = Some(count.saturating_add(1)),
            _ => dots = None,
        }
        match rest.get(width..) {
            Some(behind) if width > 0 => rest = behind,
            _ => return Ok(()),
        }
    }
}

fn percents(uri: &str) -> Result<(), NotNormal> {
    let mut rest = uri.as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        let behind = rest.get(at.saturating_add(1)..).unwrap_or_default();
        let [high, low, after @ ..] = behind else { return Err(NotNormal::MalformedPercent) };
        let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (Some(tens), Some(ones)) = (digit(high), digit(low)) else { return Err(NotNormal::MalformedPercent) };
        if high.is_ascii_lowercase() || low.is_ascii_lowercase() {
            return Err(NotNormal::LowerCasePercent);
        }
        let octet = (tens << 4) | ones;
        if octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~') {
            return Err(NotNormal::EncodedUnreserved);
        }
        rest = after;
    }
    Ok(())
}

/// What URL parsers change in web URIs beyond RFC 3986: the host's case and encoding, ports, missing or extra slashes.
fn web(scheme: &str, rest: &str, default_port: Option<u16>) -> Result<(), NotNormal> {
    let authority = rest.strip_prefix("//").ok_or(NotNormal::NoHost)?;
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let host_port = authority.rsplit_once('@').map_or(authority, |(_, host_port)| host_port);
    let (host, port) = match host_port.rsplit_once(':') {
        // A colon inside the brackets of an IPv6 address is none of a port.
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (host_port, None),
    };
    if host.is_empty() && scheme != "file" {
        return Err(NotNormal::NoHost);
    }
    if host.contains('%') {
        return Err(NotNormal::EncodedHost);
    }
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(NotNormal::UpperCaseHost);
    }
    match port {
        Some(port) if port.is_empty() || port.starts_with('0') => Err(NotNormal::Port),
        Some(port) if default_port.is_some_and(|default| port.parse() == Ok(default)) => Err(NotNormal::Port),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
