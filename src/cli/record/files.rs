//! The record's two files: what is to stand in them, and both replaced at once or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use portcullis::config::recording::{self, Existing, Offered, Plan};
use portcullis::message::json::{Document, Value};
use portcullis::policy::{Kind, Label};
use portcullis::protocol::version;
use portcullis::record::{Approved, Digest, Listing, definitions_file, differences};

use super::Failure;

/// One of the files.
pub(super) struct Content {
    pub(super) path: PathBuf,
    text: String,
    changed: bool,
}

/// Both files after a recording.
pub(super) struct Files {
    pub(super) yaml: Content,
    pub(super) json: Content,
    /// How many capabilities they hold.
    pub(super) capabilities: usize,
    /// How many of them nobody priced yet.
    pub(super) undecided: usize,
}

impl Files {
    pub(super) fn new(
        name: &str,
        url: &str,
        time: &str,
        file: &Path,
        before: Option<&Existing>,
        listing: &Listing,
    ) -> Result<Self, Failure> {
        let nothing = Approved::default();
        let approved = before.map_or(&nothing, |before| &before.approved);
        let now = each_once(listing)?;
        let offered =
            now.iter().map(|(label, definition)| offered(label, definition)).collect::<Result<Vec<_>, _>>()?;
        let unpriced: BTreeSet<Label> = approved
            .definitions
            .iter()
            .filter(|(label, _)| !approved.prices.contains_key(label))
            .map(|(label, _)| label.clone())
            .collect();
        let changed = is_changed(approved, listing, &now);
        let plan =
            Plan { from: url, at: time, protocol: version::CURRENT, offered: &offered, unpriced: &unpriced, changed };
        let (yaml, json_path) = match before {
            None => {
                let json = file.with_extension("json");
                let json_name =
                    json.file_name().and_then(|name| name.to_str()).unwrap_or("definitions.json").to_owned();
                (recording::first(name, &json_name, &plan), json)
            }
            Some(before) => {
                (before.edited(&plan).map_err(|fault| Failure::Located(vec![fault]))?, before.definitions_file.clone())
            }
        };
        let undecided = |label: &&Label| match approved.prices.get(label) {
            Some(price) => price.is_none(),
            None => !unpriced.contains(label),
        };
        Ok(Self {
            capabilities: now.len(),
            undecided: now.iter().map(|(label, _)| *label).filter(undecided).count(),
            yaml: Content {
                path: file.to_owned(),
                changed: before.is_none_or(|before| before.text != yaml),
                text: yaml,
            },
            json: Content {
                changed: changed || !json_path.exists(),
                path: json_path,
                text: definitions(approved, listing, &now),
            },
        })
    }

    /// Whether there is nothing to write.
    pub(super) fn is_unchanged(&self) -> bool {
        !self.yaml.changed && !self.json.changed
    }

    /// Replaces what changed. Both are on disk whole before the first takes its place; the prices go first, because a
    /// record whose definitions are older refuses to load and still shows what changed when it is recorded again.
    pub(super) fn write(&self) -> anyhow::Result<()> {
        let changed = [&self.yaml, &self.json].into_iter().filter(|content| content.changed);
        let ready = changed.map(Beside::write).collect::<anyhow::Result<Vec<_>>>()?;
        ready.into_iter().try_for_each(Beside::replace)
    }
}

/// Each capability once, in the order of the listing.
fn each_once(listing: &Listing) -> Result<Vec<(&Label, &Document)>, Failure> {
    let mut seen: BTreeMap<&Label, &Document> = BTreeMap::new();
    let mut each = Vec::new();
    for listed in &listing.entries {
        match seen.insert(&listed.label, &listed.document) {
            None => each.push((&listed.label, &listed.document)),
            Some(first) if differences(first.root(), listed.document.root()).is_empty() => {}
            Some(first) => {
                return Err(Failure::Plain(format!(
                    "expected each name once, found {} twice: as {} and as {}; one label cannot mean two things: have the \
                     server rename one of them",
                    listed.label,
                    told(&listed.label, first.root()),
                    told(&listed.label, listed.document.root()),
                )));
            }
        }
    }
    Ok(each)
}

/// What a definition is, for someone who has to tell it from another one of the same name.
fn told(label: &Label, definition: Value<'_>) -> String {
    let text = |member: &str| definition.get(member).and_then(|value| value.as_str());
    match (text("uri"), text("uriTemplate"), text("description")) {
        (Some(uri), ..) => format!("the resource {uri:?}"),
        (_, Some(uri), _) => format!("the template {uri:?}"),
        (.., Some(description)) => format!("one with the description {description:?}"),
        _ => format!("a {} without a description", label.kind()),
    }
}

fn offered(label: &Label, definition: &Document) -> Result<Offered, Failure> {
    let root = definition.root();
    let (digest, _) =
        Digest::of(root).map_err(|error| Failure::Plain(format!("{label}: {error}, found a greater one")))?;
    let text = |member: &str| root.get(member).and_then(|value| value.as_str()).map(str::to_owned);
    let uri = if label.kind() == Kind::Resource { text("uri").or_else(|| text("uriTemplate")) } else { None };
    Ok(Offered { label: label.clone(), digest, uri })
}

/// Whether anything in the JSON file is another than before.
fn is_changed(approved: &Approved, listing: &Listing, now: &[(&Label, &Document)]) -> bool {
    let same = |(label, definition): &(&Label, &Document)| {
        approved.definition(label).is_some_and(|old| differences(old.root(), definition.root()).is_empty())
    };
    approved.instructions != listing.instructions || approved.definitions.len() != now.len() || !now.iter().all(same)
}

/// The text of the JSON file: what was there in its old place and, when it is the same, in its old spelling.
fn definitions(approved: &Approved, listing: &Listing, now: &[(&Label, &Document)]) -> String {
    let by_label: BTreeMap<&Label, &Document> = now.iter().copied().collect();
    let kept = approved.definitions.iter().filter_map(|(label, old)| {
        let new = by_label.get(label)?;
        let same = differences(old.root(), new.root()).is_empty();
        Some((label, if same { old.root() } else { new.root() }))
    });
    let known: BTreeSet<&Label> = approved.definitions.iter().map(|(label, _)| label).collect();
    let added = now.iter().filter(|(label, _)| !known.contains(label)).map(|(label, new)| (*label, new.root()));
    definitions_file(listing.instructions.as_deref(), kept.chain(added))
}

/// A file that lies whole beside the one it will replace.
struct Beside {
    own: PathBuf,
    target: PathBuf,
}

impl Beside {
    fn write(content: &Content) -> anyhow::Result<Self> {
        // Through a link: what it points to is replaced, and the link stays.
        let target = fs::canonicalize(&content.path).unwrap_or_else(|_| content.path.clone());
        let folder = folder(&target);
        fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let beside = Self { own: folder.join(format!(".{name}.{}.tmp", std::process::id())), target };
        beside.fill(content).with_context(|| format!("cannot write {}", beside.own.display()))?;
        Ok(beside)
    }

    fn fill(&self, content: &Content) -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&self.own)?;
        if let Ok(old) = fs::metadata(&self.target) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(content.text.as_bytes())?;
        file.sync_all()
    }

    fn replace(self) -> anyhow::Result<()> {
        fs::rename(&self.own, &self.target).with_context(|| format!("cannot replace {}", self.target.display()))?;
        // The rename itself is to last, too.
        let folder = File::open(folder(&self.target)).and_then(|folder| folder.sync_all());
        folder.with_context(|| format!("cannot sync the folder of {}", self.target.display()))
    }
}

impl Drop for Beside {
    /// Nothing is left behind; once it has taken its place there is nothing to remove.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.own);
    }
}

fn folder(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
