//! A server's rules and scopes.

use std::path::PathBuf;
use std::sync::Arc;

use super::Check;
use crate::config::load::documents::compile_policy;
use crate::config::load::report::Report;
use crate::config::model::{FileOr, Kind};
use crate::config::tree::Node;
use crate::policy::{Part, Policy, PolicySource, Scopes, Segment};

/// Where a policy document stands: its file and its root.
pub(super) struct Home<'a> {
    pub(super) path: PathBuf,
    pub(super) root: &'a Node,
}

/// The server's policy, from its file or from the entry itself, and where it stands; an empty one for plain HTTP, `None`
/// when it is faulty, which was told.
pub(super) fn policy<'a>(check: &Check<'a>, report: &mut Report) -> (Option<Arc<Policy>>, Home<'a>) {
    let context = check.context;
    let inline = Home { path: context.path.to_owned(), root: check.at(&["policy".into()]) };
    match (&check.server.policy, check.server.kind) {
        (Some(FileOr::File(reference)), Kind::Mcp) => {
            let path: PathBuf = context.base.join(&reference.file);
            let Some(document) = context.documents.policy(&path) else { return (None, inline) };
            report.uses(&path);
            (Some(Arc::clone(&document.policy)), Home { path, root: &document.root })
        }
        (Some(FileOr::Inline(source)), Kind::Mcp) => {
            let policy = compile_policy(source, &inline.path, inline.root, report);
            (policy.map(Arc::new), inline)
        }
        (None, Kind::Mcp) => {
            check.missing(&[], "policy", report);
            (None, inline)
        }
        (_, Kind::Http) => (Policy::compile(&PolicySource::default()).ok().map(Arc::new), inline),
    }
}

/// The server's scopes: what every call needs, what single capabilities need, what implies what.
pub(super) fn scopes(check: &Check<'_>, report: &mut Report) -> Option<Scopes> {
    let identity = check.server.identity.as_ref().filter(|_| check.is_whole("identity"))?;
    let implies = identity.scopes().map(|scopes| scopes.implies.clone()).unwrap_or_default();
    match Scopes::compile(identity.required_scopes(), &capability_scopes(check), &implies) {
        Ok(scopes) => Some(scopes),
        Err(faults) => {
            for fault in faults {
                check.fault(&place(check, fault.part, &fault.path), &fault.message, report);
            }
            None
        }
    }
}

/// `capability_scopes` as label and scopes.
pub(super) fn capability_scopes(check: &Check<'_>) -> Vec<(String, Vec<String>)> {
    check.server.capability_scopes.iter().map(|(label, scopes)| (label.clone(), scopes.0.clone())).collect()
}

/// The path within the server's entry of a part that stands there.
pub(super) fn place(check: &Check<'_>, part: Part, path: &[Segment]) -> Vec<Segment> {
    let source = check.at(&["identity".into()]).entries().first().map_or("", |entry| entry.key.as_str());
    let identity = |keys: &[&str]| ["identity", source].iter().chain(keys).map(|key| Segment::from(*key)).collect();
    let mut place: Vec<Segment> = match part {
        Part::Policy => vec!["policy".into()],
        Part::Capabilities => vec!["record".into()],
        Part::CapabilityScopes => vec!["capability_scopes".into()],
        Part::RequiredScopes if check.server.identity.as_ref().is_some_and(|identity| identity.issuer().is_some()) => {
            identity(&["required_scopes"])
        }
        Part::RequiredScopes => identity(&["scopes"]),
        Part::Implies => identity(&["scopes", "implies"]),
    };
    place.extend(path.iter().cloned());
    place
}
