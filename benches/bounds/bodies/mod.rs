//! The bodies: for each rung an honest one, then the dearest ones we know of.

mod answers;
mod requests;

use std::iter::repeat_n;

use portcullis::protocol::version::CURRENT;

/// Bytes of every body but a token.
const SIZE: usize = 1 << 20;
/// Bytes of what a token says.
const TOKEN: usize = 8 << 10;

/// Where the work happens.
#[derive(Clone, Copy)]
pub(crate) enum Measured {
    /// The claims of a token.
    Claims,
    /// Rungs 8 to 16.
    Request,
    /// A CEL rule over the arguments.
    Gate(&'static str),
    /// Rungs 18 to 21, on an answer of this content type.
    Answer(&'static str),
}

pub(crate) struct Arm {
    pub(crate) rung: &'static str,
    pub(crate) name: &'static str,
    pub(crate) honest: bool,
    pub(crate) method: &'static str,
    pub(crate) named: String,
    pub(crate) measured: Measured,
    /// The body, which is only made where it is measured.
    pub(crate) body: Box<dyn Fn() -> Vec<u8>>,
    /// Tools that are recorded besides.
    pub(crate) tools: usize,
    /// The reason for which it is refused in the end.
    pub(crate) refused: Option<&'static str>,
}

/// As many of `item(n)` as fit beside what else a body holds, with commas between, but no more than `most`.
fn list(most: usize, item: impl Fn(usize) -> String) -> String {
    list_within(SIZE, most, item)
}

fn list_within(size: usize, most: usize, item: impl Fn(usize) -> String) -> String {
    let mut out = String::with_capacity(size);
    for n in 0..most {
        let item = item(n);
        if out.len() + item.len() + 600 > size {
            break;
        }
        if n > 0 {
            out.push(',');
        }
        out += &item;
    }
    out
}

fn many(text: &str) -> String {
    repeat_n(text, (SIZE - 600) / text.len()).collect()
}

/// Fills a message up to the size with white space, which costs least.
fn message(id: &str, method: &str, members: &str) -> Vec<u8> {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{members}"_meta":{{"io.modelcontextprotocol/protocolVersion":"{CURRENT}","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    );
    padded(text)
}

fn padded(mut text: String) -> Vec<u8> {
    text.extend(repeat_n(' ', SIZE.saturating_sub(text.len())));
    text.into_bytes()
}

fn call(tool: &str, arguments: &str) -> Vec<u8> {
    message("1", "tools/call", &format!(r#""name":"{tool}","arguments":{arguments},"#))
}

fn result(members: &str) -> Vec<u8> {
    padded(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{{members}}}}}"#))
}

/// Records as programs send them.
fn rows() -> String {
    list(SIZE, |n| format!(r#"{{"id":{n},"open":true,"owner":"ana@acme.com","title":"printer does not answer"}}"#))
}

fn honest_arguments() -> String {
    format!(r#"{{"rows":[{}]}}"#, rows())
}

impl Arm {
    /// The call whose answer is measured.
    pub(crate) fn request(&self) -> Vec<u8> {
        let members = match self.method {
            "tools/call" => r#""name":"free","arguments":{},"#,
            "subscriptions/listen" => r#""notifications":{},"#,
            _ => "",
        };
        let mut bytes = message("1", self.method, members);
        bytes.truncate(bytes.trim_ascii_end().len());
        bytes
    }
}

/// A rung, whose arms follow, the honest one first.
struct Rung(&'static str, Vec<Arm>);

impl Rung {
    fn of(name: &'static str) -> Self {
        Self(name, Vec::new())
    }

    fn arm(
        &mut self,
        name: &'static str,
        (method, named): (&'static str, &str),
        measured: Measured,
        body: impl Fn() -> Vec<u8> + 'static,
        refused: Option<&'static str>,
    ) -> &mut Arm {
        let (rung, honest, body) = (self.0, self.1.is_empty(), Box::new(body));
        let arm = Arm { rung, name, honest, method, named: named.to_owned(), measured, body, tools: 0, refused };
        self.1.push(arm);
        self.1.last_mut().expect("it was pushed")
    }

    fn call(
        &mut self,
        name: &'static str,
        tool: &'static str,
        arguments: impl Fn() -> String + 'static,
        refused: Option<&'static str>,
    ) {
        self.arm(name, ("tools/call", tool), Measured::Request, move || call(tool, &arguments()), refused);
    }
}

pub(crate) fn arms() -> Vec<Arm> {
    let up = [
        requests::claims(),
        requests::reading(),
        requests::envelope(),
        requests::resources(),
        requests::schemas(),
        requests::gates(),
    ];
    let down = [answers::listings(), answers::screening(), answers::streams()];
    up.into_iter().chain(down).flat_map(|rung| rung.1).collect()
}
