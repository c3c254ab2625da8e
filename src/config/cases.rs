//! The cases of `portcullis test`: who calls what, and what is to become of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use super::deserialize;
use super::located::Located;
use super::tree::{Node, Place, PlacedFault};

/// Longer files are mistakes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Claims by name, as a token would carry them. `iss`, `aud` and `exp` are filled in as the server expects them where they
/// are left out; `null` leaves a claim out for good.
pub type ClaimsSource = serde_json::Map<String, serde_json::Value>;

/// Calls and what is to become of them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CasesSource {
    /// The configuration file, beside this one. `--config` goes first.
    #[serde(default)]
    pub config: Option<PathBuf>,
    /// The server of all cases that name none; may be left out where the configuration has one.
    #[serde(default)]
    pub server: Option<String>,
    /// Callers by name, each with the claims of their token. `iss`, `aud` and `exp` are filled in where they are left out; a
    /// claim that is `null` stays out.
    #[serde(default)]
    pub principals: BTreeMap<String, ClaimsSource>,
    /// The cases, in the order in which they are tried. Each stands for itself.
    pub cases: Vec<CaseSource>,
}

/// One call and what is to become of it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaseSource {
    /// What is said when it passes or fails.
    pub name: String,
    /// The server that is called.
    #[serde(default)]
    pub server: Option<String>,
    /// Who calls: a name of `principals`. Without it and without `claims` the call brings no token.
    #[serde(default)]
    pub principal: Option<String>,
    /// Who calls: the claims of their token, instead of a name.
    #[serde(default)]
    pub claims: Option<ClaimsSource>,
    /// The MCP method; left out, the one that runs the capability.
    #[serde(default)]
    pub method: Option<String>,
    /// What is called: `tool:NAME`, `prompt:NAME`, `resource:NAME`, or the URI of a resource.
    #[serde(default)]
    pub capability: Option<String>,
    /// The arguments of the call.
    #[serde(default)]
    pub arguments: Option<serde_json::Value>,
    /// What is to become of it: `allow`, or one of `refuse: REASON`, `would_refuse: REASON`, `visible: [LABEL]`,
    /// `hidden: [LABEL]`.
    pub expect: Expect,
}

/// What is to become of a call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    /// It is forwarded, and nothing would have been refused.
    Allow,
    /// It is refused with this reason.
    Refuse(String),
    /// It is forwarded because of shadow mode, which records this reason.
    WouldRefuse(String),
    /// Of a listing: exactly these recorded capabilities are shown.
    Visible(Vec<String>),
    /// Of a listing: none of these is shown.
    Hidden(Vec<String>),
}

/// A file of cases that was read.
#[derive(Debug)]
pub struct Cases {
    /// The file.
    pub file: PathBuf,
    /// What it says.
    pub source: CasesSource,
    root: Node,
}

impl Cases {
    /// Reads a file of cases.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(file: &Path) -> Result<Self, Vec<Located>> {
        let text = text(file).map_err(|message| vec![located(file, Place { line: 1, column: 1 }, "", &message)])?;
        let placed = |faults: Vec<PlacedFault>| -> Vec<Located> {
            faults.into_iter().map(|fault| located(file, fault.place, &fault.path, &fault.message)).collect()
        };
        let (root, mut faults) = Node::parse(&text);
        let Some(mut root) = root else { return Err(placed(faults)) };
        let (source, more) = deserialize::load::<CasesSource>(&mut root);
        faults.extend(more);
        let Some(source) = source.filter(|_| faults.is_empty()) else { return Err(placed(faults)) };
        let cases = Self { file: file.to_owned(), source, root };
        let faults = cases.faults();
        if faults.is_empty() { Ok(cases) } else { Err(faults) }
    }

    /// What is wrong with each case by itself.
    fn faults(&self) -> Vec<Located> {
        let mut faults = Vec::new();
        if self.source.cases.is_empty() {
            let place = self.root.get("cases").unwrap_or(&self.root).place;
            faults.push(located(&self.file, place, "cases", "expected at least one case, found none; add one"));
        }
        for (index, case) in self.source.cases.iter().enumerate() {
            if case.principal.is_some() && case.claims.is_some() {
                faults.push(self.at(
                    index,
                    "claims",
                    "expected a principal or claims, found both; remove one of the two",
                ));
            }
            if let Some(name) = case.principal.as_ref().filter(|name| !self.source.principals.contains_key(*name)) {
                let known: Vec<&str> = self.source.principals.keys().map(String::as_str).collect();
                let message =
                    format!("expected a name of `principals`, found `{name}`; there are `{}`", known.join("`, `"));
                faults.push(self.at(index, "principal", &message));
            }
        }
        faults
    }

    /// Something that is wrong with the value under `key` of a case, or with the case where it has none.
    #[must_use]
    pub fn at(&self, case: usize, key: &str, message: &str) -> Located {
        let node = self.root.locate(&["cases".into(), case.into(), key.into()]);
        located(&self.file, node.place, &node.path, message)
    }
}

fn text(file: &Path) -> Result<String, String> {
    let read = std::fs::metadata(file).and_then(|found| match found.len() {
        0..=MAX_BYTES => std::fs::read_to_string(file),
        length => Err(std::io::Error::other(format!("it has {length} bytes, more than {MAX_BYTES}"))),
    });
    read.map_err(|error| {
        format!("expected a file that can be read as UTF-8, but {error}; check that it exists and may be read")
    })
}

fn located(file: &Path, place: Place, path: &str, message: &str) -> Located {
    let message = if path.is_empty() { message.to_owned() } else { format!("{path}: {message}") };
    Located { file: file.to_owned(), line: place.line, column: place.column, message }
}

#[cfg(test)]
mod tests;
