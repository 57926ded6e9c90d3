//! Protobuf at the door: bodies in it are read, answers in it are not to be had.

use super::Request;
use super::path::ResourcePath;
use crate::error::ApiError;
use crate::protobuf::{Unreadable, decode, knows};
use crate::registry::Resource;
use http::{Method, header};
use serde_json::Value;

pub(super) use crate::protobuf::MEDIA_TYPE;

/// How much of a body a refusal shows.
const SHOWN: usize = 30;

/// Refuses a client that cannot read JSON. Who reads YAML can.
pub(super) fn check_accept(request: &Request) -> Result<(), ApiError> {
    let accept =
        request.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut ranges = accept.split(',').map(|range| range.split(';').next().unwrap_or_default().trim());
    if accept.trim().is_empty()
        || ranges
            .any(|range| matches!(range, "application/json" | "application/yaml" | "application/*" | "*/*"))
    {
        return Ok(());
    }
    Err(ApiError {
        code: 406,
        reason: "NotAcceptable",
        message: "only the following media types are accepted: application/json, application/yaml".to_owned(),
        details: None,
    })
}

/// Reads the body of a request.
pub(super) fn read(request: &Request, row: &Resource, target: &ResourcePath) -> Result<Value, ApiError> {
    let (api_version, kind) = expected(request, row, target);
    if !knows(&api_version, &kind) {
        return Err(ApiError::unsupported_media_type(MEDIA_TYPE, &["application/json"]));
    }
    decode(&request.body, &api_version, &kind).map_err(|error| refusal(&error, &kind, &request.body))
}

/// The version and kind of the object that belongs in a request.
fn expected(request: &Request, row: &Resource, target: &ResourcePath) -> (String, String) {
    let (version, kind) = match (&request.method, target.subresource.as_deref()) {
        (&Method::DELETE, _) => ("v1", "DeleteOptions"),
        (_, Some("eviction")) => ("policy/v1", "Eviction"),
        (_, Some("binding")) => ("v1", "Binding"),
        (_, Some("token")) => ("authentication.k8s.io/v1", "TokenRequest"),
        (_, Some("scale")) => ("autoscaling/v1", "Scale"),
        _ => return (row.api_version(), row.kind.clone()),
    };
    (version.to_owned(), kind.to_owned())
}

fn refusal(error: &Unreadable, expected: &str, body: &[u8]) -> ApiError {
    ApiError::bad_request(match error.kind() {
        Some((kind, version)) => {
            format!("{kind} in version {version:?} cannot be handled as a {expected}: {error}")
        }
        None => {
            let shown = summary(body);
            format!("the object provided is unrecognized (must be of type {expected}): {error} ({shown})")
        }
    })
}

fn summary(body: &[u8]) -> String {
    let (start, more) = match body.get(..SHOWN) {
        Some(start) if body.len() > SHOWN => (start, " ..."),
        _ => (body, ""),
    };
    match start.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(start).into_owned() + more,
        Some(_) => start.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + more,
    }
}
