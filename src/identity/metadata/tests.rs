use serde_json::{Value, json};

use super::{Metadata, MetadataSource};

fn source(resource: &str) -> MetadataSource<'_> {
    MetadataSource {
        resource,
        authorization_servers: &["https://auth.acme.com"],
        scopes: &["mcp", "cases:write", "mcp", "offline_access"],
        authorization_server: None,
    }
}

fn document(metadata: &Metadata, path: &str) -> Option<Value> {
    metadata.document(path).map(|bytes| serde_json::from_slice(bytes).unwrap())
}

#[test]
fn the_document_stands_at_the_suffixed_and_the_root_path() {
    let metadata = Metadata::new(&source("https://mcp.acme.com/mcp")).unwrap();
    let expected = json!({
        "resource": "https://mcp.acme.com/mcp",
        "authorization_servers": ["https://auth.acme.com"],
        "scopes_supported": ["mcp", "cases:write"],
        "bearer_methods_supported": ["header"],
    });
    assert_eq!(metadata.url(), "https://mcp.acme.com/.well-known/oauth-protected-resource/mcp");
    assert_eq!(document(&metadata, "/.well-known/oauth-protected-resource/mcp"), Some(expected.clone()));
    assert_eq!(document(&metadata, "/.well-known/oauth-protected-resource"), Some(expected));
    for other in [
        "/.well-known/oauth-protected-resource/",
        "/.well-known/oauth-protected-resource/mcp/",
        "/mcp",
        "/.well-known/oauth-authorization-server",
    ] {
        assert_eq!(document(&metadata, other), None, "{other}");
    }
    assert_eq!(metadata.paths().count(), 2);
}

#[test]
fn an_origin_has_one_form_only() {
    for resource in ["https://mcp.acme.com", "https://mcp.acme.com/"] {
        let metadata = Metadata::new(&source(resource)).unwrap();
        assert_eq!(metadata.url(), "https://mcp.acme.com/.well-known/oauth-protected-resource");
        assert_eq!(metadata.paths().count(), 1);
        assert_eq!(document(&metadata, "/.well-known/oauth-protected-resource").unwrap()["resource"], resource);
    }
}

#[test]
fn a_port_and_the_spelling_of_the_host_stay() {
    let metadata = Metadata::new(&source("https://MCP.acme.com:8443/a/b/")).unwrap();
    assert_eq!(metadata.url(), "https://MCP.acme.com:8443/.well-known/oauth-protected-resource/a/b/");
}

#[test]
fn the_authorization_server_is_served_as_configured() {
    let members = json!({"issuer": "https://auth.acme.com", "token_endpoint": "https://auth.acme.com/token"});
    let metadata =
        Metadata::new(&MetadataSource { authorization_server: Some(&members), ..source("https://mcp.acme.com/mcp") })
            .unwrap();
    assert_eq!(document(&metadata, "/.well-known/oauth-authorization-server"), Some(members));
}

#[test]
fn callers_without_tokens_are_told_of_none() {
    let metadata =
        Metadata::new(&MetadataSource { authorization_servers: &[], ..source("https://mcp.acme.com/mcp") }).unwrap();
    assert_eq!(metadata.paths().count(), 0);
}

#[test]
fn no_scopes_no_member() {
    let metadata =
        Metadata::new(&MetadataSource { scopes: &["offline_access"], ..source("https://mcp.acme.com") }).unwrap();
    assert!(document(&metadata, "/.well-known/oauth-protected-resource").unwrap().get("scopes_supported").is_none());
}

#[test]
fn resources_that_no_client_could_use_refuse() {
    for bad in [
        "",
        "mcp",
        "/mcp",
        "http://mcp.acme.com/mcp",
        "ftp://mcp.acme.com",
        "https://u@mcp.acme.com/",
        "https://u:p@mcp.acme.com/",
        "https://mcp.acme.com/mcp?x",
        "https://mcp.acme.com/mcp#x",
        "https:\\\\mcp.acme.com/mcp",
        "https:mcp.acme.com/mcp",
        "https://mcp.acme.com/m p",
        "https://mcp.acme.com/\"",
        "HTTPS://mcp.acme.com/mcp",
        " https://mcp.acme.com",
        "https://mcp.acme.com\\mcp",
    ] {
        assert!(Metadata::new(&source(bad)).is_err(), "{bad:?}");
    }
    for good in ["http://localhost:8080/mcp", "http://127.0.0.1/mcp", "http://[::1]:3000"] {
        assert!(Metadata::new(&source(good)).is_ok(), "{good:?}");
    }
}
