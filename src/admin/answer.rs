//! One request of the admin listener to its answer.

use std::net::IpAddr;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;

use super::Admin;
use super::page::{details, document, live};
use super::status::status;

const TEXT: &str = "text/plain; charset=utf-8";

/// The answer to the head of a request that came in on `local`; a body is not read.
pub(super) fn answer<B>(admin: &Admin, request: &Request<B>, local: IpAddr) -> Response<Full<Bytes>> {
    if !called(admin, request, local) {
        let said = "Expected a Host header that names this listener by its address, by localhost or by one of listen.admin.hosts.\n";
        return text(StatusCode::MISDIRECTED_REQUEST, said);
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "Only GET and HEAD are answered here.\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    match request.uri().path() {
        "/healthz" => text(StatusCode::OK, "alive\n"),
        "/readyz" => ready(admin),
        "/metrics" => respond(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", (admin.metrics)()),
        "/status" => respond(StatusCode::OK, "application/json", format!("{:#}\n", status(admin))),
        "/" | "/page.json" => page(admin, request),
        _ => text(StatusCode::NOT_FOUND, "There are /healthz, /readyz, /metrics and /status.\n"),
    }
}

/// Whether the request calls this listener by a name it has: exactly one `Host`, and the target's own authority if it has one.
fn called<B>(admin: &Admin, request: &Request<B>, local: IpAddr) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let named = |host: &str| admin.hosts.admit(host, local);
    host.to_str().is_ok_and(named) && request.uri().authority().is_none_or(|authority| named(authority.as_str()))
}

/// The page and what it asks for, where it is on.
fn page<B>(admin: &Admin, request: &Request<B>) -> Response<Full<Bytes>> {
    let Some(page) = &admin.page else {
        let said =
            "There is no page here: listen.admin.page is off. There are /healthz, /readyz, /metrics and /status.\n";
        return text(StatusCode::NOT_FOUND, said);
    };
    let data = match (request.uri().path(), request.uri().query()) {
        ("/", _) => return document(),
        (_, Some("details")) => details(admin),
        _ => live(admin, page),
    };
    respond(StatusCode::OK, "application/json", data.to_string())
}

fn ready(admin: &Admin) -> Response<Full<Bytes>> {
    let missing = admin.readiness.missing();
    if missing.is_empty() {
        return text(StatusCode::OK, "ready\n");
    }
    respond(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("not ready:\n{}\n", missing.join("\n")))
}

fn text(status: StatusCode, body: &'static str) -> Response<Full<Bytes>> {
    respond(status, TEXT, body)
}

pub(super) fn respond(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff"));
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin"));
    response
}
