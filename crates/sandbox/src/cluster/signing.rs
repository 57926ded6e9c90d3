//! Approves what nodes ask for themselves, and signs what was approved.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::queue::{Item, Queue};
use super::view::View;
use super::{Controller, Seen, text};
use crate::api::Api;
use crate::auth::{Attributes, User};
use crate::error::ApiError;
use crate::kinds::{condition_is_true, request_of, strings};
use crate::pki::{CertificateRequest, CertificateTerms};
use crate::store::{EventKind, at};
use crate::verbs::Part;

const TABLE: &str = "certificates.k8s.io/certificatesigningrequests";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const NODE_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const NODE_SERVING: &str = "kubernetes.io/kubelet-serving";

/// How long certificates last at most.
const LONGEST: SignedDuration = SignedDuration::from_hours(365 * 24);
/// Certificates hold from a little before they were signed, for those whose clocks are behind.
const BEFORE: SignedDuration = SignedDuration::from_mins(5);
/// Certificates that last less are not shortened by that.
const SHORT: SignedDuration = SignedDuration::from_hours(8);

/// How soon a request is looked at again while no signer runs.
const SIGNERS_LOOK: Duration = Duration::from_secs(1);

pub(super) struct Signing;

impl Controller for Signing {
    fn name(&self) -> &'static str {
        "kube-controller-manager"
    }

    fn observe(&mut self, seen: &Seen, _: &View, queue: &mut Queue) {
        if &*seen.table == TABLE && seen.kind != EventKind::Deleted {
            queue.add(Item::new(TABLE, &seen.key));
        }
    }

    fn reconcile(&mut self, item: &Item, api: &mut Api, _: &View) -> Result<Option<Duration>, ApiError> {
        let Some(found) = api.store.get(TABLE, &item.key) else { return Ok(None) };
        let object = found.value();
        let signed = !text(&object, "/status/certificate").is_empty();
        if signed || ["Denied", "Failed"].iter().any(|kind| condition_is_true(&object, kind)) {
            return Ok(None);
        }
        // What cannot be read was refused at the door.
        let request = request_of(&object).map_err(ApiError::internal)?;
        let row = api.row("certificates.k8s.io", "certificatesigningrequests")?;
        if !condition_is_true(&object, "Approved") {
            if let Some(message) = approved_by_itself(api, &object, &request) {
                let approved = json!({"type": "Approved", "status": "True", "reason": "AutoApproved", "message": message});
                api.modify(&row, &item.key, Part::Approval, self.name(), |object| add(object, approved))?;
            }
            return Ok(None);
        }
        if api.signers_stopped {
            return Ok(Some(SIGNERS_LOOK));
        }
        match check(&object, &request) {
            None => {}
            Some(Err(why)) => {
                let failed = json!({
                    "type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": why,
                });
                api.modify(&row, &item.key, Part::Status, self.name(), |object| add(object, failed))?;
            }
            Some(Ok(())) => {
                let certificate = sign(api, &object, request)?;
                api.modify(&row, &item.key, Part::Status, self.name(), |object| {
                    object["status"]["certificate"] = json!(BASE64.encode(certificate));
                })?;
            }
        }
        Ok(None)
    }
}

fn add(object: &mut Value, condition: Value) {
    let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.push(condition);
    object["status"]["conditions"] = Value::Array(conditions);
}

/// Why a request needs nobody's approval, if it needs none.
fn approved_by_itself(api: &Api, object: &Value, request: &CertificateRequest) -> Option<&'static str> {
    if text(object, "/spec/signerName") != NODE_CLIENT || node_client(object, request).is_err() {
        return None;
    }
    let groups = strings(object, "/spec/groups").into_iter().map(str::to_owned).collect();
    let user = User { groups, ..User::named(text(object, "/spec/username")) };
    let may = |subresource: &str| {
        let wanted = Attributes {
            verb: "create".to_owned(),
            group: "certificates.k8s.io".to_owned(),
            resource: "certificatesigningrequests".to_owned(),
            subresource: subresource.to_owned(),
            ..Attributes::default()
        };
        api.may(&user, &wanted)
    };
    if user.name == request.common_name && may("selfnodeclient") {
        Some("Auto approving self kubelet client certificate after SubjectAccessReview.")
    } else if may("nodeclient") {
        Some("Auto approving kubelet client certificate after SubjectAccessReview.")
    } else {
        None
    }
}

/// Whether the signer that is asked signs this; nothing for signers that are somebody else's.
fn check(object: &Value, request: &CertificateRequest) -> Option<Result<(), String>> {
    match text(object, "/spec/signerName") {
        CLIENT => Some(client(&strings(object, "/spec/usages"))),
        NODE_CLIENT => Some(node_client(object, request).map_err(str::to_owned)),
        NODE_SERVING => Some(node_serving(object, request).map_err(str::to_owned)),
        _ => None,
    }
}

fn client(usages: &[&str]) -> Result<(), String> {
    let allowed = ["digital signature", "key encipherment", "client auth"];
    if let Some(usage) = usages.iter().find(|usage| !allowed.contains(usage)) {
        return Err(format!("invalid usage for client certificate: {usage}"));
    }
    if !usages.contains(&"client auth") {
        return Err("missing required usage for client certificate: client auth".to_owned());
    }
    Ok(())
}

fn node_client(object: &Value, request: &CertificateRequest) -> Result<(), &'static str> {
    if request.organizations != ["system:nodes"] {
        return Err("subject organization is not system:nodes");
    }
    if !request.dns.is_empty() {
        return Err("DNS subjectAltNames are not allowed");
    }
    if !request.emails.is_empty() {
        return Err("Email subjectAltNames are not allowed");
    }
    if !request.addresses.is_empty() {
        return Err("IP subjectAltNames are not allowed");
    }
    if !request.uris.is_empty() {
        return Err("URI subjectAltNames are not allowed");
    }
    if !request.common_name.starts_with("system:node:") {
        return Err("subject common name does not begin with system:node:");
    }
    if !usages_are(object, "client auth") {
        return Err("usages did not match [client auth digital signature key encipherment]");
    }
    Ok(())
}

fn node_serving(object: &Value, request: &CertificateRequest) -> Result<(), &'static str> {
    if request.organizations != ["system:nodes"] {
        return Err("subject organization is not system:nodes");
    }
    if request.dns.is_empty() && request.addresses.is_empty() {
        return Err("DNS or IP subjectAltName is required");
    }
    if !request.emails.is_empty() {
        return Err("Email subjectAltNames are not allowed");
    }
    if !request.uris.is_empty() {
        return Err("URI subjectAltNames are not allowed");
    }
    if !usages_are(object, "server auth") {
        return Err("usages did not match [digital signature key encipherment server auth]");
    }
    if !request.common_name.starts_with("system:node:") {
        return Err("subject common name does not begin with system:node:");
    }
    Ok(())
}

/// Digital signature and the purpose, with or without key encipherment.
fn usages_are(object: &Value, purpose: &str) -> bool {
    let mut usages = strings(object, "/spec/usages");
    usages.sort_unstable();
    usages.dedup();
    usages.retain(|usage| *usage != "key encipherment");
    let mut wanted = ["digital signature", purpose];
    wanted.sort_unstable();
    usages == wanted
}

fn sign(api: &mut Api, object: &Value, request: CertificateRequest) -> Result<String, ApiError> {
    let asked = at(object, "/spec/expirationSeconds").and_then(Value::as_i64);
    let life = asked.map_or(LONGEST, SignedDuration::from_secs).min(LONGEST);
    let now = api.now();
    let end = if life < SHORT { life } else { life - BEFORE };
    let serial = api.new_serial();
    let terms = CertificateTerms {
        usages: &strings(object, "/spec/usages"),
        from: now.saturating_add(-BEFORE).map_err(ApiError::internal)?,
        until: now.saturating_add(end).map_err(ApiError::internal)?,
        serial,
    };
    Ok(api.authority()?.sign_pem(&request.into(), &terms)?)
}
