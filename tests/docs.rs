//! The pages say what the code does: the README's first configuration loads, links lead somewhere, every reason and every audit
//! field is explained, examples are what the code writes, and the tests that docs/security.md and docs/attacks.md name exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use portcullis::refusal::{Class, Reason};
use portcullis::telemetry::counters::Counters;
use portcullis::telemetry::metrics::CATALOG;
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("expected the page {name}: {error}"))
}

/// Every page of ours, relative to the repository's root.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![PathBuf::from("README.md"), PathBuf::from("CONTRIBUTING.md")];
    for folder in ["docs", "deploy/envoy"] {
        let entries = fs::read_dir(root().join(folder)).expect("a folder of pages");
        pages.extend(entries.map(|entry| Path::new(folder).join(entry.expect("an entry").file_name())));
    }
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages
}

/// Fenced blocks of a page: the text line in front, the language, the content.
fn blocks(page: &str) -> Vec<(String, String, String)> {
    let (mut blocks, mut before, mut open) = (Vec::new(), String::new(), None::<(String, String)>);
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some((language.to_owned(), String::new())),
            (Some(_), Some(_)) => {
                let (language, content) = open.take().unwrap_or_default();
                blocks.push((std::mem::take(&mut before), language, content));
            }
            (None, Some((_, content))) => {
                content.push_str(line);
                content.push('\n');
            }
            (None, None) if !line.trim().is_empty() => line.clone_into(&mut before),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "expected every fence to be closed");
    blocks
}

/// The page without its fenced blocks.
fn prose(page: &str) -> String {
    page.split("```").step_by(2).collect()
}

/// What stands in backticks in `text`.
fn code_spans(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Rows of every table of a page that has `columns` columns, without heads and rules.
fn rows(page: &str, columns: usize) -> Vec<Vec<String>> {
    let row = |line: &str| -> Vec<String> {
        line.trim_matches('|').split(" | ").map(|cell| cell.trim_matches(['|', ' ']).to_owned()).collect()
    };
    let lines = page.lines().filter(|line| line.starts_with('|'));
    lines.map(row).filter(|row| row.len() == columns && !row[0].starts_with("---")).collect()
}

#[test]
fn the_readmes_first_configuration_loads() {
    let readme = page("README.md");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut written = BTreeSet::new();
    for (before, language, content) in blocks(&readme) {
        let name = code_spans(&before).first().map(|name| (*name).to_owned()).unwrap_or_default();
        if !(language == "yaml" || language == "json" && name.starts_with("records/")) {
            continue;
        }
        let file = dir.path().join(&name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("the folder");
        fs::write(&file, content).expect("the file");
        written.insert(name);
    }
    let expected = ["policy.yaml", "portcullis.yaml", "records/cases.json", "records/cases.yaml"];
    assert_eq!(written, expected.map(str::to_owned).into());
    let check = Command::new(env!("CARGO_BIN_EXE_portcullis"))
        .args(["check", "--config", "portcullis.yaml"])
        .current_dir(dir.path())
        .output()
        .expect("portcullis runs");
    let printed = String::from_utf8_lossy(&check.stdout);
    assert!(check.status.success(), "{printed}{}", String::from_utf8_lossy(&check.stderr));
    let command = "$ portcullis check --config portcullis.yaml\n";
    let shown =
        blocks(&readme).into_iter().find_map(|(_, _, content)| content.strip_prefix(command).map(str::to_owned));
    assert_eq!(
        shown.as_deref().map(str::trim_end),
        Some(printed.trim_end()),
        "what the README shows, what check prints"
    );
}

#[test]
fn the_readme_offers_both_commands() {
    let makefile = page("Makefile");
    let commands: Vec<_> = blocks(&page("README.md")).into_iter().map(|(_, _, content)| content).collect();
    for target in ["demo", "test"] {
        assert!(commands.contains(&format!("make {target}\n")), "expected a block with `make {target}` alone");
        assert!(makefile.lines().any(|line| line.starts_with(&format!("{target}:"))), "no target {target}");
    }
}

/// The name under which a heading is linked to, as the usual renderers make it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut followed = 0;
    for name in pages() {
        let text = prose(&page(&name.to_string_lossy()));
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
            let folder = root().join(&name).parent().expect("a folder").to_owned();
            let target = if path.is_empty() { root().join(&name) } else { folder.join(path) };
            assert!(target.exists(), "{}: the link {link} leads to {}", name.display(), target.display());
            if !fragment.is_empty() {
                let linked = prose(&fs::read_to_string(&target).expect("a page"));
                let headings =
                    linked.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_matches(['#', ' ']));
                assert!(headings.map(anchor).any(|name| name == fragment), "{}: no heading for {link}", name.display());
            }
            followed += 1;
        }
    }
    assert!(followed > 20, "expected to find the links, found {followed}");
}

fn class(reason: Reason) -> &'static str {
    match reason.class() {
        Class::Policy => "policy",
        Class::Challenge => "challenge",
        Class::Protocol => "protocol",
        Class::Upstream => "upstream",
        Class::Unavailable => "unavailable",
    }
}

#[test]
fn every_reason_is_explained_as_it_is() {
    let page = page("docs/refusals.md");
    let rows: Vec<_> = rows(&page, 6).into_iter().filter(|row| row[0].starts_with('`')).collect();
    let explained: Vec<_> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    let existing: Vec<_> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(explained, existing, "the reasons of docs/refusals.md, the reasons that exist, both in order");
    for (row, reason) in rows.iter().zip(Reason::ALL) {
        let code = reason.rpc_code().unwrap_or(-32000).to_string();
        let expected = [class(*reason).to_owned(), reason.status().to_string(), code];
        let row_code = row[3].split(',').next().unwrap_or_default().to_owned();
        assert_eq!([row[1].clone(), row[2].clone(), row_code], expected, "class, HTTP, code of {}", row[0]);
        assert!(row[4].len() > 10, "{} has no meaning", row[0]);
        assert!(row[5].len() > 5 || row[4].starts_with("Not in this version."), "{}: what to do?", row[0]);
    }
}

/// Whatever a page shows as an answer has the code that belongs to its reason, and as many bytes as it says.
#[test]
fn answers_that_are_shown_are_answers_of_ours() {
    let mut shown = 0;
    for (_, _, content) in blocks(&page("docs/refusals.md")).into_iter().filter(|block| block.1 == "http") {
        let (head, body) = content.split_once("\n\n").expect("a head and a body");
        let body = body.trim_end();
        if let Some(length) = head.lines().find_map(|line| line.strip_prefix("content-length: ")) {
            assert_eq!(length.parse(), Ok(body.len()), "{content}");
        }
        for line in body.lines().filter(|line| !line.is_empty()) {
            let json: Value = serde_json::from_str(line.trim_start_matches("data: ")).expect("JSON");
            let Some(reason) = json["error"]["data"]["error"].as_str() else { continue };
            let reason = Reason::ALL.iter().find(|known| known.as_str() == reason).expect("a reason that exists");
            assert_eq!(json["error"]["code"], reason.rpc_code().unwrap_or(-32000), "{line}");
            shown += 1;
        }
    }
    assert!(shown >= 5, "expected the wire forms, found {shown}");
}

#[test]
fn every_audit_field_is_explained() {
    let proto = page("proto/portcullis/audit/v1/audit.proto");
    let fields = proto.lines().filter_map(|line| line.strip_suffix(';')?.split_once(" = ")?.0.rsplit(' ').next());
    let fields: BTreeSet<_> = fields.filter(|field| *field != "syntax").collect();
    let page = page("docs/operating.md");
    let rows = rows(&page, 2);
    let explained: BTreeSet<_> = rows.iter().flat_map(|row| code_spans(&row[0])).collect();
    let missing: Vec<_> = fields.difference(&explained).collect();
    assert!(fields.len() > 10 && missing.is_empty(), "docs/operating.md does not explain {missing:?}");
    let line = blocks(&page).into_iter().find(|block| block.1 == "json").expect("an audit line").2;
    let line: Value = serde_json::from_str(&line).expect("JSON");
    assert!(line.as_object().expect("an object").keys().all(|key| fields.contains(key.as_str())), "{line}");
}

#[test]
fn every_metric_is_explained() {
    let page = page("docs/telemetry.md");
    let rows = rows(&page, 4);
    let explained: BTreeSet<_> = rows.iter().flat_map(|row| code_spans(&row[0])).collect();
    let names: BTreeSet<_> = CATALOG.iter().map(|metric| metric.name).collect();
    assert_eq!(explained, names, "the metrics of docs/telemetry.md, the metrics there are");
    let counted: BTreeSet<_> = Counters::NAMES.into_iter().collect();
    assert!(counted.is_subset(&names), "{counted:?}");
}

fn source(folder: &Path, out: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            source(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push_str(&fs::read_to_string(&path).expect("a source"));
        }
    }
}

#[test]
fn the_tests_that_prove_a_defence_exist() {
    let mut sources = String::new();
    for folder in ["src", "tests"] {
        source(&root().join(folder), &mut sources);
    }
    let page = page("docs/security.md");
    let (_, attacks) = page.split_once("## Attacks and defences").expect("the attacks");
    let rows: Vec<_> = rows(attacks, 3).into_iter().filter(|row| row[0] != "attack").collect();
    assert!(rows.len() > 30, "expected the attacks, found {}", rows.len());
    for row in &rows {
        assert!(!code_spans(&row[2]).is_empty(), "nothing proves the defence against: {}", row[0]);
    }
    let names = rows.iter().flat_map(|row| code_spans(&row[2]));
    for name in names {
        assert!(is_test(&sources, name), "no test {name}");
    }
}

/// Whether the sources hold a test of this name.
fn is_test(sources: &str, name: &str) -> bool {
    let before = sources.split(&format!("fn {name}(")).next().filter(|before| before.len() < sources.len());
    let attributes = before.and_then(|before| before.rsplit("\n\n").next());
    attributes.is_some_and(|above| above.contains("#[test") || above.contains("::test"))
}

/// Each entry of the manual of attacks says where its defence stands, and which tests prove it.
#[test]
fn every_known_attack_has_its_defence_and_its_tests() {
    let mut sources = String::new();
    for folder in ["src", "tests"] {
        source(&root().join(folder), &mut sources);
    }
    let page = page("docs/attacks.md");
    let attacks: Vec<&str> = page.split("\n### ").skip(1).collect();
    assert!(attacks.len() > 25, "expected the attacks, found {}", attacks.len());
    for attack in attacks {
        let name = attack.lines().next().unwrap_or_default();
        let (what, rest) = attack.split_once("\n- Defence: ").unwrap_or_else(|| panic!("{name}: which defence?"));
        assert!(what.len() > name.len() + 60, "{name}: what is it?");
        let (defence, tests) = rest.split_once("\n- Tests: ").unwrap_or_else(|| panic!("{name}: which tests?"));
        let places: Vec<_> = code_spans(defence).into_iter().filter(|code| code.contains('/')).collect();
        for place in places.iter().filter(|place| place.starts_with("src/") || place.starts_with("deploy/")) {
            assert!(root().join(place).exists(), "{name}: no {place}");
        }
        assert!(!places.is_empty() || defence.contains("](performance.md)"), "{name}: where does the defence stand?");
        let tests = code_spans(tests.split("\n\n").next().unwrap_or_default());
        assert!(!tests.is_empty(), "{name}: nothing proves the defence");
        for test in tests {
            assert!(is_test(&sources, test), "{name}: no test {test}");
        }
    }
}

#[test]
fn every_finding_of_doctor_is_explained() {
    let explained: BTreeSet<(String, String, String)> = rows(&page("docs/doctor.md"), 4)
        .into_iter()
        .filter(|row| row[0].starts_with('`'))
        .map(|row| (row[0].trim_matches('`').to_owned(), row[1].clone(), row[3].to_lowercase()))
        .collect();
    let checks = portcullis::doctor::Check::ALL.iter();
    let known = checks.map(|own| (own.id().to_owned(), own.severity().as_str().to_owned(), own.fix().to_lowercase()));
    assert_eq!(explained, known.collect());
}
