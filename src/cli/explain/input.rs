//! From options to a request.

use std::io::Read as _;
use std::path::Path;

use portcullis::explain::{self, Asked, Call, Who, http};
use portcullis::ladder::Snapshot;
use portcullis::message::headers::{Header, HeaderRef, Headers};

use super::ExplainArgs;

/// Longer files are mistakes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// What is asked; an error says what is wrong with the options.
pub(super) fn asked(args: &ExplainArgs, snapshot: &Snapshot) -> Result<Asked, String> {
    let name = args.server.as_deref();
    let (mut head, body) = if let Some(file) = &args.request {
        let server = match (name, snapshot.servers()) {
            (None, servers) if servers.len() > 1 => None,
            _ => Some(super::server(snapshot, name)?),
        };
        let scheme = server.or(snapshot.servers().first()).map_or("https", |server| &server.resource.scheme);
        let attributes = explain::attributes(server.map(AsRef::as_ref));
        http::read(&read(file)?, scheme, attributes).map_err(|fault| format!("{}: {fault}", file.display()))?
    } else {
        let arguments = args.arguments.as_deref().map(|text| text_or_file(text, &['{', '['])).transpose()?;
        let call = Call {
            method: args.method.as_deref(),
            capability: args.capability.as_deref(),
            arguments: arguments.as_deref(),
        };
        call.request(super::server(snapshot, name)?).map_err(|fault| fault.to_string())?
    };
    if let Some(file) = &args.token {
        let token = utf8(file, read(file)?)?;
        let bearer = Header::new("authorization", format!("Bearer {}", token.trim()).as_bytes());
        let others = head.headers.iter().filter(|header| header.name() != "authorization").map(HeaderRef::to_owned);
        head.headers = Headers::new(others.chain([bearer]).collect());
    }
    let Some(claims) = &args.claims else { return Ok(Asked { head, body, who: Who::Presented }) };
    let mut claims = text_or_file(claims, &['{'])?;
    explain::readable(&claims)?;
    if args.fill_claims {
        claims = explain::complete(super::server(snapshot, name)?, &claims);
    }
    Ok(Asked { head, body, who: Who::Vouched(claims) })
}

/// What was written on the command line, or in the file that it names.
fn text_or_file(text: &str, begins: &[char]) -> Result<String, String> {
    if text.trim_start().starts_with(begins) {
        return Ok(text.to_owned());
    }
    let file = Path::new(text);
    utf8(file, read(file)?)
}

fn utf8(file: &Path, bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| format!("{}: expected UTF-8 text", file.display()))
}

/// The bytes of a file, or of standard input for `-`.
pub(in crate::cli) fn read(file: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let done = if file.as_os_str() == "-" {
        std::io::stdin().lock().take(MAX_BYTES.saturating_add(1)).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|open| open.take(MAX_BYTES.saturating_add(1)).read_to_end(&mut bytes))
    };
    match done {
        Ok(length) if length as u64 > MAX_BYTES => {
            Err(format!("{}: expected at most {MAX_BYTES} bytes", file.display()))
        }
        Ok(_) => Ok(bytes),
        Err(error) => Err(format!("{}: expected a file that can be read, but {error}", file.display())),
    }
}
