//! The HTTP connection manager: whom it believes, what it answers itself, what it writes down.

use serde_json::Value;

use super::check::Check;
use super::envoy::{Manager, Part, speaks_http3};
use super::finding::Findings;
use super::guarded::Guarded;
use super::value::{any_within, at, is_set, is_true, items, member, shown, text, word};

/// Looks at a manager that asks Portcullis. `only_guarded`: nothing but guarded servers lies behind it.
pub(super) fn examine(manager: &Manager<'_>, guarded: Option<&Guarded>, only_guarded: bool, out: &mut Findings) {
    let part = &manager.part;
    callers(part, out);
    forms(part, only_guarded, out);
    if speaks_http3(manager) {
        out.add(Check::Http3, &*part.place, "HTTP/3");
    }
    if guarded.is_some_and(|guarded| guarded.servers.iter().any(|server| server.peer)) {
        certificates(manager, out);
    }
    local_replies(&part.part("local_reply_config"), out);
    access_log(part, out);
}

fn callers(part: &Part<'_>, out: &mut Findings) {
    let internal = part.part("internal_address_config");
    let ranges = items(internal.get("cidr_ranges"));
    if !ranges.is_empty() || is_true(internal.get("unix_sockets")) {
        out.add(Check::InternalAddresses, &*internal.place, shown(internal.value));
    }
    let detects = is_set(part.get("original_ip_detection_extensions"));
    if !is_true(part.get("use_remote_address")) && !detects {
        out.add(Check::RemoteAddress, part.below("use_remote_address"), "not true: x-forwarded-for is believed");
    }
    let modes = ["SANITIZE", "FORWARD_ONLY", "APPEND_FORWARD", "SANITIZE_SET", "ALWAYS_FORWARD_ONLY"];
    let details = word(part.get("forward_client_cert_details"), &modes);
    if !details.starts_with("SANITIZE") {
        out.add(Check::ClientCert, part.below("forward_client_cert_details"), details);
    }
}

/// Spellings that two readers may read differently.
fn forms(part: &Part<'_>, only_guarded: bool, out: &mut Findings) {
    for key in ["normalize_path", "merge_slashes"] {
        if is_true(part.get(key)) {
            out.add(Check::Paths, part.below(key), format!("`{key}: true`"));
        }
    }
    let actions = [
        "IMPLEMENTATION_SPECIFIC_DEFAULT",
        "KEEP_UNCHANGED",
        "REJECT_REQUEST",
        "UNESCAPE_AND_REDIRECT",
        "UNESCAPE_AND_FORWARD",
    ];
    let slashes = word(part.get("path_with_escaped_slashes_action"), &actions);
    if slashes.starts_with("UNESCAPE") {
        out.add(Check::Paths, part.below("path_with_escaped_slashes_action"), slashes);
    }
    let key = "common_http_protocol_options.headers_with_underscores_action";
    let underscores = word(part.get(key), &["ALLOW", "REJECT_REQUEST", "DROP_HEADER"]);
    // Other traffic may need them.
    if underscores == "ALLOW" && only_guarded {
        out.add(Check::Underscores, part.below(key), "ALLOW: some servers read `mcp_name` as `mcp-name`");
    }
    if is_true(part.get("http_protocol_options.allow_chunked_length")) {
        let place = part.below("http_protocol_options.allow_chunked_length");
        out.add(Check::ChunkedLength, place, "`allow_chunked_length: true`");
    }
}

/// The certificate is who the caller is: it must be asked for and verified.
fn certificates(manager: &Manager<'_>, out: &mut Findings) {
    let place = format!("{} (transport_socket)", manager.part.place);
    let tls = member(manager.transport, "typed_config");
    let tls = if is_set(at(tls, "downstream_tls_context")) { at(tls, "downstream_tls_context") } else { tls };
    let context = member(tls, "common_tls_context");
    let combined = at(context, "combined_validation_context.default_validation_context");
    let validation = [member(context, "validation_context"), combined];
    let by_sds = is_set(member(context, "validation_context_sds_secret_config"))
        || is_set(at(context, "combined_validation_context.validation_context_sds_secret_config"));
    let trusts = [
        "trusted_ca",
        "verify_certificate_spki",
        "verify_certificate_hash",
        "custom_validator_config",
        "ca_certificate_provider_instance",
    ];
    let verified = by_sds || validation.iter().any(|own| trusts.iter().any(|key| is_set(member(own, key))));
    let any = |own: &&Value| {
        word(member(own, "trust_chain_verification"), &["VERIFY_TRUST_CHAIN", "ACCEPT_UNTRUSTED"]) == "ACCEPT_UNTRUSTED"
    };
    let found = if validation.iter().any(any) {
        "`trust_chain_verification: ACCEPT_UNTRUSTED`"
    } else if !is_true(member(tls, "require_client_certificate")) {
        "client certificates that are not required"
    } else if !verified {
        "no `trusted_ca`: any certificate is taken"
    } else {
        return;
    };
    out.add(Check::ClientsUnverified, place, found);
}

/// Portcullis's answers are local replies too: they must stay as they are.
fn local_replies(config: &Part<'_>, out: &mut Findings) {
    if !is_set(config.value) {
        out.add(Check::LocalReplyMissing, &*config.place, "none: a client reads `Forbidden` where it expects JSON-RPC");
        return;
    }
    if is_set(config.get("body_format")) {
        out.add(Check::LocalReply, config.below("body_format"), "a format for the body of every local reply");
    }
    let mappers = config.list("mappers");
    for mapper in &mappers {
        if !holds_only(mapper.get("filter"), &|matcher| undecided(matcher) || allowed(matcher)) {
            out.add(Check::LocalReply, &*mapper.place, "a mapper that takes decided answers too");
        }
    }
    if !mappers.iter().any(|mapper| holds_only(mapper.get("filter"), &allowed)) {
        let found =
            "none for calls that were allowed: when their server or Portcullis is gone, a client reads plain text";
        out.add(Check::LocalReplyMissing, config.below("mappers"), found);
    }
}

/// Whether an access log filter holds only where one of its metadata matchers is such a one.
fn holds_only(filter: &Value, such: &impl Fn(&Value) -> bool) -> bool {
    let all = items(at(filter, "and_filter.filters"));
    let one = items(at(filter, "or_filter.filters"));
    such(at(filter, "metadata_filter"))
        || all.iter().any(|filter| holds_only(filter, such))
        || (!one.is_empty() && one.iter().all(|filter| holds_only(filter, such)))
}

/// Portcullis did not decide, or was not asked.
fn undecided(filter: &Value) -> bool {
    asks(filter, "decided") && at(filter, "matcher.value.bool_match") == &Value::Bool(false)
}

/// Portcullis allowed the call: a local reply to it is never Portcullis's, which says `refuse` with each of its own.
fn allowed(filter: &Value) -> bool {
    asks(filter, "decision") && text(at(filter, "matcher.value.string_match.exact")) == "allow"
}

fn asks(filter: &Value, key: &str) -> bool {
    let matcher = member(filter, "matcher");
    let path = items(member(matcher, "path"));
    text(member(matcher, "filter")) == "portcullis"
        && path.len() == 1
        && path.iter().all(|segment| text(member(segment, "key")) == key)
        && !is_true(member(matcher, "invert"))
}

fn access_log(part: &Part<'_>, out: &mut Findings) {
    let logs = part.list("access_log");
    let text = part.get("access_log").to_string().to_ascii_uppercase();
    if !text.contains("DYNAMIC_METADATA(PORTCULLIS") {
        let found = if logs.is_empty() { "none" } else { "none of Portcullis's metadata" };
        out.add(Check::AccessLog, part.below("access_log"), found);
    }
    for log in logs {
        for secret in ["AUTHORIZATION", "COOKIE", "PROXY-AUTHORIZATION"] {
            let prints = |map: &serde_json::Map<String, Value>| {
                map.values().filter_map(Value::as_str).any(|format| logs_header(format, secret))
            };
            if any_within(log.value, &prints) {
                out.add(
                    Check::AccessLogSecret,
                    &*log.place,
                    format!("the request header {}", secret.to_ascii_lowercase()),
                );
            }
        }
    }
}

/// Whether an access log format prints a request header: `%REQ(NAME)%`, `%REQ(OTHER?NAME):10%`.
fn logs_header(format: &str, header: &str) -> bool {
    let upper = format.to_ascii_uppercase();
    upper
        .split("REQ(")
        .skip(1)
        .any(|rest| rest.split(')').next().unwrap_or_default().split('?').any(|name| name.trim() == header))
}
