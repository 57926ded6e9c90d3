//! Refusals, worded as Kubernetes words them.

use serde_json::{Value, json};

/// A refusal: the Status that is answered.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ApiError {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Option<Value>,
}

/// One field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) reason: &'static str,
    pub(crate) field: String,
    pub(crate) message: String,
}

impl Cause {
    pub(crate) fn required(field: impl Into<String>, detail: &str) -> Self {
        let message =
            if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        Self { reason: "FieldValueRequired", field: field.into(), message }
    }

    pub(crate) fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        let message = format!("Invalid value: {}: {detail}", shown(value));
        Self { reason: "FieldValueInvalid", field: field.into(), message }
    }

    pub(crate) fn unsupported(field: impl Into<String>, value: &Value, known: &[&str]) -> Self {
        let known: Vec<String> = known.iter().map(|name| format!("{name:?}")).collect();
        let message = format!("Unsupported value: {}: supported values: {}", shown(value), known.join(", "));
        Self { reason: "FieldValueNotSupported", field: field.into(), message }
    }

    pub(crate) fn too_long(field: impl Into<String>, limit: usize) -> Self {
        let message = format!("Too long: may not be more than {limit} bytes");
        Self { reason: "FieldValueTooLong", field: field.into(), message }
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        let message = format!("Duplicate value: {}", shown(value));
        Self { reason: "FieldValueDuplicate", field: field.into(), message }
    }

    pub(crate) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self { reason: "FieldValueForbidden", field: field.into(), message: format!("Forbidden: {detail}") }
    }
}

/// A value as validation messages print it: objects and lists are not printed as JSON by Go.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) | Value::Array(_) => serde_json::to_string(value).unwrap_or_default(),
        scalar => scalar.to_string(),
    }
}

/// The resource a refusal is about, as messages name it (`deployments.apps`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) name: &'a str,
}

impl About<'_> {
    fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }

    fn details(&self) -> Value {
        let mut out = json!({ "kind": self.resource });
        if !self.name.is_empty() {
            out["name"] = json!(self.name);
        }
        if !self.group.is_empty() {
            out["group"] = json!(self.group);
        }
        out
    }
}

impl ApiError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None }
    }

    fn about(mut self, about: About<'_>) -> Self {
        self.details = Some(about.details());
        self
    }

    pub(crate) fn not_found(about: About<'_>) -> Self {
        Self::new(404, "NotFound", format!("{} {:?} not found", about.qualified(), about.name)).about(about)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").with_empty_details()
    }

    /// A failure that has a code and no reason.
    pub(crate) fn plain(code: u16, message: impl Into<String>) -> Self {
        Self::new(code, "", message)
    }

    /// A patch whose operations do not go with the object.
    pub(crate) fn unprocessable() -> Self {
        Self::new(422, "Invalid", "the server rejected our request due to an error in our request")
            .with_empty_details()
    }

    fn with_empty_details(mut self) -> Self {
        self.details = Some(json!({}));
        self
    }

    pub(crate) fn already_exists(about: About<'_>) -> Self {
        Self::new(409, "AlreadyExists", format!("{} {:?} already exists", about.qualified(), about.name))
            .about(about)
    }

    pub(crate) fn conflict(about: About<'_>, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {:?}: {why}", about.qualified(), about.name);
        Self::new(409, "Conflict", message).about(about)
    }

    pub(crate) fn modified(about: About<'_>) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(about, why)
    }

    /// A refused server-side apply; `owned` lists (manager, paths).
    pub(crate) fn apply_conflict(message: String, owned: &[(String, Vec<String>)]) -> Self {
        let causes: Vec<Value> = owned
            .iter()
            .flat_map(|(manager, paths)| {
                paths.iter().map(move |path| {
                    json!({"reason": "FieldManagerConflict", "message": format!("conflict with {manager}"), "field": path})
                })
            })
            .collect();
        let mut out = Self::new(409, "Conflict", message);
        out.details = Some(json!({ "causes": causes }));
        out
    }

    pub(crate) fn forbidden(about: About<'_>, why: &str) -> Self {
        let message = format!("{} {:?} is forbidden: {why}", about.qualified(), about.name);
        Self::new(403, "Forbidden", message).about(about)
    }

    /// Nothing new may be made in a namespace that goes away.
    pub(crate) fn terminating(about: About<'_>, namespace: &str) -> Self {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut out = Self::forbidden(about, &why);
        if let Some(details) = out.details.as_mut() {
            details["causes"] = json!([{
                "reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace",
            }]);
        }
        out
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// One or more fields of an object are wrong.
    pub(crate) fn invalid(group: &str, kind: &str, name: &str, causes: &[Cause]) -> Self {
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let mut listed: Vec<String> = Vec::new();
        for cause in causes {
            let text = format!("{}: {}", cause.field, cause.message);
            if !listed.contains(&text) {
                listed.push(text);
            }
        }
        let joined = match listed.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let mut out = Self::new(422, "Invalid", format!("{qualified} {name:?} is invalid: {joined}"));
        let causes: Vec<Value> = causes
            .iter()
            .map(|cause| json!({"reason": cause.reason, "message": cause.message, "field": cause.field}))
            .collect();
        let mut details = json!({ "causes": causes });
        if !kind.is_empty() {
            details["kind"] = json!(kind);
        }
        if !name.is_empty() {
            details["name"] = json!(name);
        }
        if !group.is_empty() {
            details["group"] = json!(group);
        }
        out.details = Some(details);
        out
    }

    pub(crate) fn too_old(asked: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {asked} ({oldest})"))
    }

    pub(crate) fn continue_expired() -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. You can start \
            a new list without the continue parameter.";
        Self::new(410, "Expired", message)
    }

    pub(crate) fn too_new(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut out = Self::new(504, "Timeout", message);
        out.details = Some(json!({
            "retryAfterSeconds": 1,
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        }));
        out
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
            .with_empty_details()
    }

    pub(crate) fn unsupported_media_type(given: &str, known: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            known.join(", ")
        );
        tracing::debug!("a body of type {given:?} is refused");
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {message}"))
    }

    pub(crate) fn unavailable() -> Self {
        Self::new(503, "ServiceUnavailable", "the server is currently unable to handle the request")
            .with_empty_details()
    }

    pub(crate) fn too_many_requests(message: impl Into<String>, retry_after: u64) -> Self {
        let mut out = Self::new(429, "TooManyRequests", message);
        out.details = Some(json!({ "retryAfterSeconds": retry_after }));
        out
    }

    /// True if there is nothing that could carry out such a request.
    pub(crate) fn is_unserved(&self) -> bool {
        self.code == 405 || self.code == 404 && self.details == Some(json!({}))
    }

    /// The Status object.
    pub(crate) fn status(&self) -> Value {
        let mut out = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            out["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            out["details"] = details.clone();
        }
        out
    }
}

impl From<crate::pki::CertificateError> for ApiError {
    fn from(error: crate::pki::CertificateError) -> Self {
        Self::internal(error)
    }
}
