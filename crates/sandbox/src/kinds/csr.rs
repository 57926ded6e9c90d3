//! Requests for certificates: who asks, what may be asked, who may say yes.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use serde_json::{Value, json};

use super::names;
use crate::api::{Api, Writer};
use crate::auth::{Attributes, User};
use crate::error::{ApiError, Cause};
use crate::pki::{CertificateRequest, check_certificates};
use crate::registry::Resource;
use crate::store::at;
use crate::verbs::Part;

const GROUP: &str = "certificates.k8s.io";
const PLURAL: &str = "certificatesigningrequests";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const LEGACY: &str = "kubernetes.io/legacy-unknown";
/// Conditions that, once there, are true and stay.
const FINAL: &[&str] = &["Approved", "Denied", "Failed"];
const SHORTEST: i64 = 600;
/// All usages that may be asked for, in the order in which they are told.
const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

pub(crate) fn is_csr(row: &Resource) -> bool {
    row.is(GROUP, PLURAL)
}

/// Writes into a new request who makes it; what it says of that itself does not count.
pub(crate) fn set_requester(object: &mut Value, user: Option<&User>) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for field in ["username", "uid", "groups", "extra"] {
        spec.remove(field);
    }
    let Some(user) = user else { return };
    spec.insert("username".to_owned(), json!(user.name));
    spec.insert("groups".to_owned(), json!(user.groups));
    if !user.uid.is_empty() {
        spec.insert("uid".to_owned(), json!(user.uid));
    }
    if !user.extra.is_empty() {
        spec.insert("extra".to_owned(), json!(user.extra));
    }
}

/// The request inside the object, read.
pub(crate) fn request_of(object: &Value) -> Result<CertificateRequest, String> {
    CertificateRequest::read(&bytes(object, "/spec/request"))
}

/// The texts of a list.
pub(crate) fn strings<'a>(object: &'a Value, pointer: &str) -> Vec<&'a str> {
    let items = at(object, pointer).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn bytes(object: &Value, pointer: &str) -> Vec<u8> {
    let encoded = at(object, pointer).and_then(Value::as_str).unwrap_or_default();
    BASE64.decode(encoded).unwrap_or_default()
}

fn conditions(object: &Value) -> Vec<Value> {
    at(object, "/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default()
}

fn of_type<'a>(conditions: &'a [Value], kind: &str) -> Vec<&'a Value> {
    conditions.iter().filter(|found| found.get("type").and_then(Value::as_str) == Some(kind)).collect()
}

/// What is wrong with a request.
pub(super) fn validate(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if let Err(why) = request_of(object) {
        let shown = at(object, "/spec/request").cloned().unwrap_or_default();
        causes.push(Cause::invalid("spec.request", &shown, &why));
    }
    let usages = strings(object, "/spec/usages");
    if usages.is_empty() {
        causes.push(Cause::required("spec.usages", ""));
    }
    for (index, usage) in usages.iter().enumerate() {
        let field = format!("spec.usages[{index}]");
        if !USAGES.contains(usage) {
            causes.push(Cause::unsupported(&field, &json!(usage), USAGES));
        }
        if usages.iter().take(index).any(|before| before == usage) {
            causes.push(Cause::duplicate(&field, &json!(usage)));
        }
    }
    let signer = at(object, "/spec/signerName").and_then(Value::as_str).unwrap_or_default();
    causes.extend(validate_signer(signer));
    let seconds = at(object, "/spec/expirationSeconds").and_then(Value::as_i64);
    if let Some(seconds) = seconds.filter(|seconds| *seconds < SHORTEST) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        causes.push(Cause::invalid("spec.expirationSeconds", &json!(seconds), detail));
    }
    causes.extend(validate_conditions(&conditions(object)));
    let certificate = bytes(object, "/status/certificate");
    if at(object, "/status/certificate").is_some_and(|text| text != "")
        && let Err(why) = check_certificates(&certificate)
    {
        causes.push(Cause::invalid("status.certificate", &json!("<certificate data>"), &why));
    }
    causes
}

fn validate_signer(signer: &str) -> Vec<Cause> {
    let field = "spec.signerName";
    let bad = |shown: &str, detail: &str| Cause::invalid(field, &json!(shown), detail);
    if signer == LEGACY {
        return vec![bad(signer, "the legacy signerName is not allowed via this API version")];
    }
    if signer.is_empty() {
        return vec![Cause::required(field, "")];
    }
    let Some((domain, path)) = signer.split_once('/').filter(|(_, path)| !path.contains('/')) else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return vec![bad(signer, detail)];
    };
    let mut causes = Vec::new();
    let first = |text: &str, rule: fn(&str) -> Vec<String>| {
        text.split('.')
            .find_map(|part| rule(part).first().map(|told| format!("validating label {part:?}: {told}")))
    };
    causes.extend(first(domain, names::label).map(|told| bad(domain, &told)));
    if !domain.contains('.') {
        causes.push(bad(domain, "should be a domain with at least two segments separated by dots"));
    }
    causes.extend(first(path, names::subdomain).map(|told| bad(path, &told)));
    causes
}

fn validate_conditions(conditions: &[Value]) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        let text = |key: &str| condition.get(key).and_then(Value::as_str).unwrap_or_default();
        let at = format!("status.conditions[{index}]");
        let (kind, status) = (text("type"), text("status"));
        if kind.is_empty() {
            causes.push(Cause::required(format!("{at}.type"), ""));
        }
        let allowed: &[&str] = if FINAL.contains(&kind) { &["True"] } else { &["False", "True", "Unknown"] };
        if status.is_empty() {
            causes.push(Cause::required(format!("{at}.status"), ""));
        } else if !allowed.contains(&status) {
            causes.push(Cause::unsupported(format!("{at}.status"), &json!(status), allowed));
        }
        let other = match kind {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !other.is_empty() && seen.contains(&other) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            causes.push(Cause::invalid("status.conditions", &json!(kind), detail));
        }
        if seen.contains(&kind) {
            causes.push(Cause::duplicate(format!("{at}.type"), &json!(kind)));
        }
        seen.push(kind);
    }
    causes
}

/// Lets `approval` write conditions only and `status` all but approval, and dates what is new.
pub(crate) fn prepare_csr_update(part: Part, old: &Value, new: &mut Value, time: &Value) {
    if part == Part::Main {
        return;
    }
    let before = conditions(old);
    let mut after = conditions(new);
    if part == Part::Status {
        for kind in ["Approved", "Denied"] {
            let kept = of_type(&before, kind);
            let is_kind = |found: &&mut Value| found.get("type").and_then(Value::as_str) == Some(kind);
            let places: Vec<&mut Value> = after.iter_mut().filter(is_kind).collect();
            if places.len() == kept.len() {
                places.into_iter().zip(kept).for_each(|(place, kept)| *place = kept.clone());
            }
        }
    }
    for condition in after.iter_mut().filter(|condition| condition.is_object()) {
        let unset = |condition: &Value, key: &str| condition.get(key).is_none_or(Value::is_null);
        if unset(condition, "lastUpdateTime") {
            condition["lastUpdateTime"] = time.clone();
        }
        if unset(condition, "lastTransitionTime") {
            let same =
                |found: &&Value| ["type", "status"].iter().all(|key| found.get(*key) == condition.get(*key));
            let since = before.iter().find(same).and_then(|found| found.get("lastTransitionTime"));
            let since = since.unwrap_or(time).clone();
            condition["lastTransitionTime"] = since;
        }
    }
    if part == Part::Approval {
        new["status"] = old.get("status").cloned().unwrap_or_else(|| json!({}));
    }
    if after.is_empty() {
        new["status"].as_object_mut().map(|status| status.remove("conditions"));
    } else {
        new["status"]["conditions"] = json!(after);
    }
}

/// What is wrong with a change through `approval` or `status`.
pub(crate) fn validate_csr_update(part: Part, old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = validate(new);
    let (before, after) = (conditions(old), conditions(new));
    let forbidden = |field: &str, detail: &str| Cause::forbidden(field, detail);
    for kind in FINAL {
        if of_type(&after, kind).len() < of_type(&before, kind).len() {
            let detail = format!("updates may not remove a condition of type {kind:?}");
            causes.push(forbidden("status.conditions", &detail));
        }
    }
    if part != Part::Approval {
        for kind in ["Approved", "Denied"] {
            if of_type(&after, kind).len() > of_type(&before, kind).len() {
                let detail = format!("updates may not add a condition of type {kind:?}");
                causes.push(forbidden("status.conditions", &detail));
            }
        }
    }
    let certificate = |object: &Value| at(object, "/status/certificate").cloned();
    if certificate(old) != certificate(new) {
        if part != Part::Status {
            causes.push(forbidden("status.certificate", "updates may not set certificate content"));
        } else if certificate(old).is_some() {
            causes
                .push(forbidden("status.certificate", "updates may not modify existing certificate content"));
        }
    }
    causes
}

impl Api {
    /// Nobody becomes a master by a certificate, and who says yes or signs must be allowed to for that signer.
    pub(crate) fn check_signer(
        &self,
        row: &Resource,
        part: Part,
        old: Option<&Value>,
        new: &Value,
        writer: &Writer,
    ) -> Result<(), ApiError> {
        let Some(user) = writer.user.as_deref().filter(|_| is_csr(row)) else { return Ok(()) };
        let text = |pointer: &str| at(new, pointer).and_then(Value::as_str).unwrap_or_default();
        let (name, signer) = (text("/metadata/name"), text("/spec/signerName"));
        let refuse = |why: &str| Err(ApiError::forbidden(row.about(name), why));
        let Some(old) = old else {
            let masters = || {
                request_of(new)
                    .is_ok_and(|asked| asked.organizations.iter().any(|each| each == "system:masters"))
            };
            if signer == CLIENT && masters() {
                return refuse(&format!("use of {CLIENT} signer with system:masters group is not allowed"));
            }
            return Ok(());
        };
        let verb = match part {
            Part::Approval => "approve",
            Part::Status if old.get("status") != new.get("status") => "sign",
            _ => return Ok(()),
        };
        let domain = signer.split('/').next().unwrap_or_default();
        let may = |name: String| {
            let (verb, group) = (verb.to_owned(), GROUP.to_owned());
            let resource = "signers".to_owned();
            self.may(user, &Attributes { verb, group, resource, name, ..Attributes::default() })
        };
        if may(signer.to_owned()) || may(format!("{domain}/*")) {
            return Ok(());
        }
        refuse(&format!("user not permitted to {verb} requests with signerName {signer:?}"))
    }
}
