//! A request on a resource, carried out.

use std::sync::Arc;

use http::{Method, header};
use serde_json::{Value, json};

use super::path::ResourcePath;
use super::query::Query;
use super::{Form, Reply, ReplyBody, Request, Server, body, computed, options, protobuf};
use crate::api::{Answer, UnknownFields, Writer};
use crate::auth::{Attributes, User};
use crate::error::{ApiError, Cause};
use crate::registry::{Nature, Resource};
use crate::schema;
use crate::store::{ObjectKey, at};
use crate::verbs::{DeleteOptions, ListRequest, Part, Patch, PatchRequest, WatchBody, WatchRequest};

const PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// One request, with what it is about.
pub(super) struct Call<'a> {
    pub(super) server: &'a Server,
    pub(super) request: &'a Request,
    pub(super) row: Arc<Resource>,
    pub(super) target: ResourcePath,
    pub(super) query: Query,
    pub(super) user: User,
}

impl Call<'_> {
    fn namespace(&self) -> &str {
        self.target.namespace.as_deref().unwrap_or_default()
    }

    /// Carries the request out.
    pub(super) fn run(&self) -> Result<Reply, ApiError> {
        if self.row.nature == Nature::Metrics {
            if self.request.method != Method::GET {
                return Err(ApiError::method_not_allowed());
            }
            return computed::metrics(self.server, &self.row, &self.target, &self.query);
        }
        if self.row.nature == Nature::Review {
            let body = self.posted()?;
            let answer = self.server.api().review(&self.row, self.namespace(), &self.user, body)?;
            return Ok(Reply::value(201, &answer));
        }
        match self.target.subresource.as_deref() {
            None => self.main(),
            Some("status") if self.row.status => self.part(Part::Status),
            Some("finalize") if self.row.is("", "namespaces") => self.part(Part::Finalize),
            Some("approval") if self.row.is("certificates.k8s.io", "certificatesigningrequests") => {
                self.part(Part::Approval)
            }
            Some("scale") if self.row.scale.is_some() => self.scale(),
            Some("binding") if self.row.is("", "pods") => self.bind(),
            Some("log") if self.row.is("", "pods") => match self.request.method {
                Method::GET => computed::logs(self.server, &self.key(), &self.query),
                _ => Err(ApiError::method_not_allowed()),
            },
            Some("eviction") if self.row.is("", "pods") => self.evict(),
            Some("token") if self.row.is("", "serviceaccounts") => {
                let (body, key, writer) = (self.posted()?, self.key(), self.writer()?);
                Ok(Reply::value(201, &self.server.api().request_token(&key, body, &writer)?))
            }
            Some(_) => Err(ApiError::no_such_path()),
        }
    }

    fn main(&self) -> Result<Reply, ApiError> {
        match (self.request.method.as_str(), self.target.name.as_deref()) {
            ("GET", None) if self.query.flag("watch")? => self.watch(),
            ("GET", None) => self.list(),
            ("GET", Some(name)) => self.get(name),
            ("POST", None) => {
                if self.row.namespaced && self.target.namespace.is_none() {
                    return Err(ApiError::method_not_allowed());
                }
                let body = self.body()?;
                let writer = self.writer()?;
                self.guard(&body)?;
                let answer = self.server.api().create(&self.row, self.namespace(), body, &writer)?;
                Ok(self.answer(201, &answer))
            }
            ("PUT", Some(_)) | ("PATCH", Some(_)) => self.part(Part::Main),
            ("DELETE", Some(name)) => {
                let options = self.delete_options()?;
                let writer = self.delete_writer(&options)?;
                let answer =
                    self.server.api().delete(&self.row, self.namespace(), name, &options, &writer)?;
                Ok(self.answer(200, &answer))
            }
            ("DELETE", None)
                if !self.row.is("", "namespaces")
                    && self.row.namespaced == self.target.namespace.is_some() =>
            {
                self.delete_collection()
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    fn get(&self, name: &str) -> Result<Reply, ApiError> {
        let api = self.server.api();
        let found = api.live(&self.row, self.namespace(), name)?;
        Ok(Reply::json(200, self.form().one(&self.row, &found, true, api.now())))
    }

    fn list(&self) -> Result<Reply, ApiError> {
        self.query.check_list(false)?;
        let list = ListRequest {
            namespace: self.target.namespace.clone(),
            selector: self.query.selector(&self.row)?,
            limit: self.query.number("limit")?.and_then(|limit| usize::try_from(limit).ok()),
            from: self.query.text("continue").map(str::to_owned),
            resource_version: self.query.number("resourceVersion")?,
            exact: self.query.text("resourceVersionMatch") == Some("Exact"),
        };
        let api = self.server.api();
        let page = api.list(&self.row, &list)?;
        Ok(Reply::json(200, self.form().page(&self.row, &page, api.now())))
    }

    fn watch(&self) -> Result<Reply, ApiError> {
        self.query.check_list(true)?;
        let watch = WatchRequest {
            namespace: self.target.namespace.clone(),
            selector: self.query.selector(&self.row)?,
            resource_version: self.query.number("resourceVersion")?,
            bookmarks: self.query.flag("allowWatchBookmarks")?,
            send_initial_events: self.query.flag("sendInitialEvents")?,
            timeout: self.query.watch_time()?,
            form: self.form(),
        };
        let body = WatchBody::open(&self.server.api, &self.row, watch)?;
        Ok(Reply {
            code: 200,
            content_type: "application/json",
            body: ReplyBody::Watch(body),
            warnings: Vec::new(),
        })
    }

    fn delete_collection(&self) -> Result<Reply, ApiError> {
        let options = self.delete_options()?;
        let writer = self.delete_writer(&options)?;
        let selector = self.query.selector(&self.row)?;
        let mut api = self.server.api();
        let namespace = self.target.namespace.as_deref();
        let deleted = api.delete_collection(&self.row, namespace, &selector, &options, &writer)?;
        let mut list = json!({
            "kind": format!("{}List", self.row.kind),
            "apiVersion": self.row.api_version(),
            "metadata": {"resourceVersion": api.store.revision().to_string()},
            "items": deleted,
        });
        if self.row.custom {
            list["metadata"]["continue"] = json!("");
        }
        Ok(Reply::value(200, &list))
    }

    /// Get, update or patch of an object or of a part of it.
    fn part(&self, part: Part) -> Result<Reply, ApiError> {
        let Some(name) = self.target.name.as_deref() else { return Err(ApiError::method_not_allowed()) };
        match self.request.method.as_str() {
            "GET" => self.get(name),
            "PUT" => {
                let (body, writer) = (self.body()?, self.writer()?);
                self.guard(&body)?;
                let answer =
                    self.server.api().update(&self.row, self.namespace(), name, part, body, &writer)?;
                Ok(self.answer(200, &answer))
            }
            "PATCH" => {
                let (patch, writer) = (self.read_patch()?, self.writer()?);
                let request = |patch: Patch| PatchRequest {
                    row: &self.row,
                    namespace: self.namespace(),
                    name,
                    part,
                    patch,
                };
                if self.row.group == "rbac.authorization.k8s.io" && !self.user.is_master() {
                    let dry = Writer { dry_run: true, ..writer.clone() };
                    let (outcome, _) = self.server.api().patch(request(patch.clone()), &dry)?;
                    self.guard(&outcome.value())?;
                }
                let request = request(patch);
                let (answer, created) = self.server.api().patch(request, &writer)?;
                Ok(self.answer(if created { 201 } else { 200 }, &answer))
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    fn scale(&self) -> Result<Reply, ApiError> {
        let Some(name) = self.target.name.as_deref() else { return Err(ApiError::method_not_allowed()) };
        let namespace = self.namespace();
        let mut api = self.server.api();
        let scale = match self.request.method.as_str() {
            "GET" => api.get_scale(&self.row, namespace, name)?,
            "PUT" => {
                let (body, writer) = (self.scale_body()?, self.writer()?);
                api.set_scale(
                    &self.row,
                    namespace,
                    name,
                    |scale| {
                        *scale = body;
                        Ok(())
                    },
                    &writer,
                )?
            }
            "PATCH" => {
                let (patch, writer) = (self.read_patch()?, self.writer()?);
                let change = |scale: &mut Value| match patch {
                    Patch::Json(patch) => json_patch::patch(scale, &patch)
                        .map_err(|error| ApiError::bad_request(format!("patch of scale: {error}"))),
                    Patch::Merge(patch) | Patch::Strategic(patch) | Patch::Apply { config: patch, .. } => {
                        json_patch::merge(scale, &patch);
                        Ok(())
                    }
                };
                api.set_scale(&self.row, namespace, name, change, &writer)?
            }
            _ => return Err(ApiError::method_not_allowed()),
        };
        Ok(Reply::value(200, &scale))
    }

    /// Roles and bindings may not give more than their writer has.
    fn guard(&self, object: &Value) -> Result<(), ApiError> {
        if self.row.group != "rbac.authorization.k8s.io" || self.row.custom || self.user.is_master() {
            return Ok(());
        }
        let api = self.server.api();
        let text = |pointer: &str| at(object, pointer).and_then(Value::as_str).unwrap_or_default();
        let name = text("/metadata/name");
        let is_binding = object.get("roleRef").is_some();
        let (verb, resource, about) = match (is_binding, text("/roleRef/kind")) {
            (true, "ClusterRole") => ("bind", "clusterroles", text("/roleRef/name")),
            (true, _) => ("bind", "roles", text("/roleRef/name")),
            (false, _) => ("escalate", self.row.plural.as_str(), name),
        };
        let exempted = Attributes {
            verb: verb.to_owned(),
            group: self.row.group.clone(),
            resource: resource.to_owned(),
            namespace: self.namespace().to_owned(),
            name: about.to_owned(),
            ..Attributes::default()
        };
        if api.may(&self.user, &exempted) {
            return Ok(());
        }
        let rules = if is_binding {
            api.rules_of_role(object, self.namespace())
        } else {
            object.get("rules").and_then(Value::as_array).cloned().unwrap_or_default()
        };
        api.check_escalation(&self.user, &rules, self.namespace())
            .map_err(|why| ApiError::forbidden(self.row.about(name), &why))
    }

    fn bind(&self) -> Result<Reply, ApiError> {
        let (body, key) = (self.posted()?, self.key());
        let node = at(&body, "/target/name").and_then(Value::as_str).unwrap_or_default();
        if node.is_empty() {
            return Err(ApiError::plain(500, "target.name: Required value"));
        }
        self.query.check_write("CreateOptions", Vec::new())?;
        if !self.query.dry_run() {
            self.server.api().bind(&key, node, &self.manager())?;
        }
        Ok(success())
    }

    fn evict(&self) -> Result<Reply, ApiError> {
        let (body, key) = (self.posted()?, self.key());
        let named = at(&body, "/metadata/name").and_then(Value::as_str).unwrap_or_default();
        if !named.is_empty() && *named != *key.name {
            return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
        }
        let options = body.get("deleteOptions").cloned().unwrap_or_else(|| json!({}));
        options::check_delete(&options)?;
        let options: DeleteOptions = serde_json::from_value(options)
            .map_err(|error| ApiError::bad_request(format!("deleteOptions cannot be read: {error}")))?;
        let writer = self.delete_writer(&options)?;
        self.server.api().evict(&key, &options, &writer)?;
        Ok(success())
    }

    /// The body of a request that can only be a POST of one object.
    fn posted(&self) -> Result<Value, ApiError> {
        if self.request.method != Method::POST {
            return Err(ApiError::method_not_allowed());
        }
        let mut body = self.body()?;
        let Some(fields) = body.as_object_mut() else {
            return Err(ApiError::bad_request("the body must be one object"));
        };
        fields.retain(|_, value| !value.is_null());
        if let Some((name, _)) = fields.iter().find(|(name, value)| {
            matches!(name.as_str(), "metadata" | "spec" | "deleteOptions" | "target") && !value.is_object()
        }) {
            return Err(ApiError::bad_request(format!("{name} must be an object")));
        }
        Ok(body)
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace(), self.target.name.as_deref().unwrap_or_default())
    }

    fn answer(&self, code: u16, answer: &Answer) -> Reply {
        match answer {
            Answer::Stored(stored) => {
                let now = self.server.api().now();
                Reply::json(code, self.form().one(&self.row, stored, true, now))
            }
            Answer::Value(value) => Reply::value(code, value),
        }
    }

    fn body(&self) -> Result<Value, ApiError> {
        let given = self.header(header::CONTENT_TYPE);
        let kind = given.split(';').next().unwrap_or_default().trim();
        if kind == protobuf::MEDIA_TYPE {
            return protobuf::read(self.request, &self.row, &self.target);
        }
        let bad =
            |error: String| ApiError::bad_request(format!("the object provided is unrecognized: {error}"));
        match kind {
            "" | "application/json" => {
                let (value, twice) =
                    body::json(&self.request.body).map_err(|error| bad(error.to_string()))?;
                self.tell_twice(&twice)?;
                Ok(value)
            }
            "application/yaml" => body::yaml(&self.request.body).map_err(bad),
            _ => Err(ApiError::unsupported_media_type(kind, &["application/json", "application/yaml"])),
        }
    }

    /// Says that fields are there twice, as the request asks for.
    fn tell_twice(&self, twice: &[String]) -> Result<(), ApiError> {
        let told: Vec<String> = twice.iter().map(|path| format!("duplicate field \"{path}\"")).collect();
        match self.query.text("fieldValidation") {
            _ if told.is_empty() => {}
            Some("Ignore") => {}
            Some("Strict") => {
                let (kind, version) = (&self.row.kind, &self.row.version);
                return Err(ApiError::bad_request(format!(
                    "{kind} in version \"{version}\" cannot be handled as a {kind}: strict decoding error: {}",
                    told.join(", ")
                )));
            }
            _ => self.server.api().warnings.extend(told),
        }
        Ok(())
    }

    /// A body that must be a Scale.
    fn scale_body(&self) -> Result<Value, ApiError> {
        let body = self.body()?;
        let kind = body.get("kind").and_then(Value::as_str).unwrap_or("Scale");
        if kind != "Scale" {
            return Err(ApiError::bad_request(format!(
                "{kind} in version \"v1\" cannot be handled as a Scale: converting (v1.{kind}) to (autoscaling.Scale): \
                 unknown conversion"
            )));
        }
        if !body.is_object() {
            return Err(ApiError::bad_request("the body must be one Scale object"));
        }
        match schema::type_error(&body, &schema::builtin("autoscaling", "v1", "Scale")) {
            Some(error) => Err(ApiError::bad_request(format!(
                "Scale in version \"v1\" cannot be handled as a Scale: {error}"
            ))),
            None => Ok(body),
        }
    }

    fn read_patch(&self) -> Result<Patch, ApiError> {
        let given = self.header(header::CONTENT_TYPE);
        let kind = given.split(';').next().unwrap_or_default().trim();
        if !PATCHES.contains(&kind) {
            return Err(ApiError::unsupported_media_type(kind, PATCHES));
        }
        let bad = |error: serde_json::Error| ApiError::bad_request(format!("error decoding patch: {error}"));
        if kind == "application/json-patch+json" {
            return serde_json::from_slice(&self.request.body).map(Patch::Json).map_err(bad);
        }
        if kind == "application/apply-patch+yaml" {
            let config = body::yaml(&self.request.body)
                .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))?;
            return Ok(Patch::Apply { config, force: self.query.flag("force")? });
        }
        let value: Value = serde_json::from_slice(&self.request.body).map_err(bad)?;
        Ok(match kind {
            "application/merge-patch+json" => Patch::Merge(value),
            _ => Patch::Strategic(value),
        })
    }

    fn writer(&self) -> Result<Writer, ApiError> {
        let mut causes = Vec::new();
        let kind = match self.request.method {
            Method::PATCH => {
                let apply = self.header(header::CONTENT_TYPE).starts_with("application/apply-patch");
                if apply && self.query.text("fieldManager").is_none() {
                    causes.push(Cause::required("fieldManager", "is required for apply patch"));
                } else if !apply && self.query.text("force").is_some() {
                    causes.push(Cause::forbidden("force", "may not be specified for non-apply patch"));
                }
                "PatchOptions"
            }
            Method::PUT => "UpdateOptions",
            Method::DELETE => "DeleteOptions",
            _ => "CreateOptions",
        };
        self.query.check_write(kind, causes)?;
        let unknown_fields = match self.query.text("fieldValidation") {
            Some("Ignore") => UnknownFields::Ignore,
            Some("Strict") => UnknownFields::Refuse,
            _ => UnknownFields::Warn,
        };
        Ok(Writer {
            manager: self.manager(),
            dry_run: self.query.dry_run(),
            unknown_fields,
            user: Some(Arc::new(self.user.clone())),
        })
    }

    /// The field manager: named, or the program that calls, or the party.
    fn manager(&self) -> String {
        let agent = self.header(header::USER_AGENT).split('/').next().unwrap_or_default();
        let named = self.query.text("fieldManager").or(Some(agent).filter(|agent| !agent.is_empty()));
        named.unwrap_or(&self.request.party).to_owned()
    }

    fn form(&self) -> Form {
        Form::of(self.header(header::ACCEPT), self.query.text("includeObject"))
    }

    fn header(&self, name: header::HeaderName) -> &str {
        self.request.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The options of a deletion: in the body, or else in the query.
    fn delete_options(&self) -> Result<DeleteOptions, ApiError> {
        let given = if self.request.body.is_empty() { self.delete_query()? } else { self.body()? };
        let kind = given.get("kind").and_then(Value::as_str).unwrap_or("DeleteOptions");
        if kind != "DeleteOptions" {
            let version = given.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            return Err(ApiError::bad_request(format!(
                "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
            )));
        }
        options::check_delete(&given)?;
        serde_json::from_value(given)
            .map_err(|error| ApiError::bad_request(format!("DeleteOptions cannot be read: {error}")))
    }

    fn delete_query(&self) -> Result<Value, ApiError> {
        let mut options = json!({});
        if let Some(policy) = self.query.text("propagationPolicy") {
            options["propagationPolicy"] = json!(policy);
        }
        if let Some(grace) = self.query.number("gracePeriodSeconds")? {
            options["gracePeriodSeconds"] = json!(i64::try_from(grace).unwrap_or(i64::MAX));
        }
        Ok(options)
    }

    fn delete_writer(&self, options: &DeleteOptions) -> Result<Writer, ApiError> {
        let mut writer = self.writer()?;
        writer.dry_run |= options.dry_run.iter().any(|value| value == "All");
        Ok(writer)
    }
}

fn success() -> Reply {
    Reply::value(
        201,
        &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    )
}
