//! How the story is printed: one short block per request and answer, colours on a terminal only.

use std::io::{self, Write};

use super::client::{Answer, META, Request};
use super::watch::Seen;

/// How many characters of a body or header are shown: enough for every frame, not for a whole listing.
const BODY_SHOWN: usize = 420;
const TOKEN_SHOWN: usize = 20;
/// The answer's headers that tell something about a decision.
const ANSWER_HEADERS: [&str; 4] = ["content-type", "allow", "www-authenticate", "cache-control"];

#[derive(Clone, Copy)]
enum Style {
    Bold,
    Dim,
    Sent,
    Came,
    Good,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Sent => "36",
            Self::Came => "33",
            Self::Good => "32",
        }
    }
}

/// Prints the story to `out`.
pub(super) struct Narrator<W> {
    out: W,
    colours: bool,
    steps: usize,
}

impl<W: Write> Narrator<W> {
    /// A narrator that writes to `out`, with ANSI colours when `colours` is true.
    pub(super) fn new(out: W, colours: bool) -> Self {
        Self { out, colours, steps: 0 }
    }

    /// A line as it is.
    pub(super) fn plain(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{text}")?;
        self.out.flush()
    }

    /// A heading without a number.
    pub(super) fn heading(&mut self, title: &str) -> io::Result<()> {
        writeln!(self.out)?;
        self.line(Style::Bold, &format!("── {title} ──"))
    }

    /// The heading of the story's next step, and what it is about.
    pub(super) fn step(&mut self, title: &str, about: &str) -> io::Result<()> {
        self.steps += 1;
        self.heading(&format!("{}. {title}", self.steps))?;
        self.plain(about)
    }

    /// What goes out.
    pub(super) fn request(&mut self, request: &Request) -> io::Result<()> {
        writeln!(self.out)?;
        self.line(Style::Sent, &format!("→ {} {}", request.method, request.path))?;
        for (name, value) in &request.headers {
            match *name {
                "Authorization" => self.line(Style::Dim, &format!("  {name}: {}…", shortened(value, TOKEN_SHOWN).0))?,
                "Content-Type" | "Accept" => {}
                _ => self.line(Style::Dim, &format!("  {name}: {value}"))?,
            }
        }
        self.body(&request.body)
    }

    /// What came back.
    pub(super) fn answer(&mut self, answer: &Answer) -> io::Result<()> {
        self.line(Style::Came, &format!("← {}", answer.status))?;
        for name in ANSWER_HEADERS {
            for value in answer.headers.get_all(name) {
                self.line(Style::Dim, &format!("  {name}: {}", value.to_str().unwrap_or("(not text)")))?;
            }
        }
        self.body(&answer.body)
    }

    /// A command that is run, as a reader would type it, and what it prints.
    pub(super) fn command(&mut self, command: &str, printed: &str) -> io::Result<()> {
        writeln!(self.out)?;
        self.line(Style::Sent, &format!("$ {command}"))?;
        printed.lines().try_for_each(|line| self.plain(&format!("  {line}")))
    }

    /// Something that was expected and holds.
    pub(super) fn holds(&mut self, what: &str) -> io::Result<()> {
        self.line(Style::Good, &format!("✓ {what}"))
    }

    /// What the upstream saw of the step.
    pub(super) fn upstream(&mut self, seen: &[Seen]) -> io::Result<()> {
        let calls = match seen {
            [] => "upstream saw nothing".to_owned(),
            seen => {
                let all: Vec<String> = seen.iter().map(Seen::brief).collect();
                format!("upstream saw {}: {}", seen.len(), all.join(", "))
            }
        };
        self.holds(&calls)
    }

    fn body(&mut self, body: &str) -> io::Result<()> {
        if body.is_empty() {
            return Ok(());
        }
        let compact = body.trim_end().replace(META, "{…}");
        let (shown, whole) = shortened(&compact, BODY_SHOWN);
        if whole {
            return self.plain(&format!("  {shown}"));
        }
        self.plain(&format!("  {shown}… ({} bytes)", body.len()))
    }

    fn line(&mut self, style: Style, text: &str) -> io::Result<()> {
        if self.colours {
            return self.plain(&format!("\x1b[{}m{text}\x1b[0m", style.code()));
        }
        self.plain(text)
    }
}

/// The first `limit` characters, and whether that is all there is.
fn shortened(text: &str, limit: usize) -> (&str, bool) {
    match text.char_indices().nth(limit) {
        None => (text, true),
        Some((end, _)) => (text.get(..end).unwrap_or(text), false),
    }
}
