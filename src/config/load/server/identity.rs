//! Who may call a server, and the documents that tell clients how.

use std::sync::Arc;

use super::Check;
use crate::config::load::report::Report;
use crate::identity::config::IdentitySource;
use crate::identity::metadata::{Metadata, MetadataSource};
use crate::identity::{Authenticator, Setting};
use crate::policy::{Policy, PolicySource, Scopes, Segment};

/// What verifies the server's callers. Without a policy or scopes (which was told) the block is checked all the same.
pub(super) fn authenticator(
    check: &Check<'_>,
    policy: Option<&Arc<Policy>>,
    scopes: Option<&Arc<Scopes>>,
    report: &mut Report,
) -> Option<Authenticator> {
    let Some(source) = &check.server.identity else {
        check.missing(&[], "identity", report);
        return None;
    };
    if !check.is_whole("identity") {
        return None;
    }
    let nobody = || Policy::compile(&PolicySource::default()).ok().map(Arc::new);
    let setting = Setting {
        resource: check.server.resource.as_deref().unwrap_or_default(),
        base: check.context.base,
        policy: policy.cloned().or_else(nobody)?,
        scopes: scopes.cloned().unwrap_or_default(),
        keys: check.context.keys,
    };
    match Authenticator::build(source, &setting) {
        Ok(authenticator) => Some(authenticator),
        Err(faults) => {
            for fault in faults {
                let path: Vec<Segment> = std::iter::once("identity".into()).chain(fault.path).collect();
                check.fault(&path, &fault.message, report);
            }
            None
        }
    }
}

/// The RFC 9728 and RFC 8414 documents.
pub(super) fn metadata(check: &Check<'_>, scopes: Option<&Scopes>, report: &mut Report) -> Option<Metadata> {
    let Some(resource) = &check.server.resource else {
        check.missing(&[], "resource", report);
        return None;
    };
    let nobody = IdentitySource::default();
    let identity = check.server.identity.as_ref().unwrap_or(&nobody);
    let issuers: Vec<&str> = identity.issuer().into_iter().collect();
    let advertised = identity.scopes().into_iter().flat_map(|scopes| &scopes.advertised).map(String::as_str);
    let asked_for = scopes.into_iter().flat_map(Scopes::asked_for);
    let scopes: Vec<&str> =
        identity.required_scopes().iter().map(String::as_str).chain(advertised).chain(asked_for).collect();
    let authorization_server = check.server.authorization_server.as_ref().map(|document| document.0.clone().into());
    let source = MetadataSource {
        resource,
        authorization_servers: &issuers,
        scopes: &scopes,
        authorization_server: authorization_server.as_ref(),
    };
    match Metadata::new(&source) {
        Ok(metadata) => Some(metadata),
        Err(error) => {
            check.fault(&["resource".into()], &format!("{error}; correct the URL"), report);
            None
        }
    }
}
