//! Requests for certificates: made by consumers, read and answered by providers.

use super::TenancyError;
use crate::names::{FIELD_MANAGER, REQUEST_LABEL};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use portolan_core::tenancy::names::{GROUP, Tenant};
use portolan_core::tenancy::{Asked, CertificateRequest, RequestError, SIGNER};
use portolan_runtime::{CallError, Term, call};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::json;
use std::sync::Arc;

/// On the request of a consumer: what its cluster calls itself. It is a wish, and no more is made of it.
pub(super) const CLUSTER_NAME: &str = "portolan.dev/cluster-name";

/// Makes a new private key. Randomness is given.
pub type NewKey = Arc<dyn Fn() -> Result<KeyPair, rcgen::Error> + Send + Sync>;

/// A request as an object that is applied: of this name, for this tenant, by this key.
pub(super) fn request(
    name: &str,
    tenant: &Tenant,
    key: &KeyPair,
    seconds: i32,
    cluster_name: &str,
) -> Result<CertificateSigningRequest, TenancyError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, GROUP);
    params.distinguished_name.push(DnType::CommonName, tenant.user());
    let made = params.serialize_request(key).and_then(|request| request.pem());
    let pem = made
        .map_err(|error| TenancyError::Key { what: "request for a certificate", why: error.to_string() })?;
    let object = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {
            "name": name, "labels": { REQUEST_LABEL: tenant.invitation },
            "annotations": { CLUSTER_NAME: cluster_name },
        },
        "spec": {
            "request": ByteString(pem.into_bytes()), "signerName": SIGNER, "expirationSeconds": seconds,
            "usages": ["client auth", "digital signature"],
        },
    });
    serde_json::from_value(object)
        .map_err(|error| TenancyError::Key { what: "request for a certificate", why: error.to_string() })
}

/// Sends a request. If there is one of this name already, that is what is answered: what was asked for does not change.
pub(super) async fn send(
    provider: &Client,
    request: &CertificateSigningRequest,
) -> Result<CertificateSigningRequest, CallError> {
    let api: Api<CertificateSigningRequest> = Api::all(provider.clone());
    let name = request.metadata.name.clone().unwrap_or_default();
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let what = format!("apply CertificateSigningRequest {name} in the provider");
    call(what, api.patch(&name, &params, &Patch::Apply(request))).await
}

/// Whether two requests are by the same key.
pub(super) fn is_same_key(one: &CertificateSigningRequest, other: &CertificateSigningRequest) -> bool {
    let digest = |request: &CertificateSigningRequest| {
        CertificateRequest::read(&request.spec.request.0).map(|read| read.key_digest).ok()
    };
    digest(one).is_some_and(|key| digest(other) == Some(key))
}

/// What a request asks for.
pub(super) fn asked(request: &CertificateSigningRequest) -> Result<Asked, RequestError> {
    let (spec, meta) = (&request.spec, &request.metadata);
    let has_some = |found: Option<bool>| found.is_some_and(|is_empty| !is_empty);
    Ok(Asked {
        is_bound: meta.deletion_timestamp.is_some()
            || has_some(meta.finalizers.as_ref().map(Vec::is_empty))
            || has_some(meta.owner_references.as_ref().map(Vec::is_empty)),
        requester: spec.username.clone().unwrap_or_default(),
        signer: spec.signer_name.clone(),
        usages: spec.usages.clone().unwrap_or_default(),
        seconds: spec.expiration_seconds,
        request: CertificateRequest::read(&spec.request.0)?,
    })
}

/// How far a request is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Nobody has answered it.
    None,
    /// It is approved, and the certificate is not there yet.
    Approved,
    /// It is signed: the certificate, in PEM.
    Issued(String),
    /// It is denied, or the signer cannot sign it.
    Refused(String),
}

/// How far a request is.
pub(super) fn answer(request: &CertificateSigningRequest) -> Answer {
    let status = request.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let find = |kind: &str| conditions.iter().find(|each| each.type_ == kind && each.status == "True");
    if let Some(no) = find("Denied").or_else(|| find("Failed")) {
        return Answer::Refused(no.message.clone().or_else(|| no.reason.clone()).unwrap_or_default());
    }
    let certificate = status.certificate.and_then(|bytes| String::from_utf8(bytes.0).ok());
    match (certificate.filter(|text| !text.is_empty()), find("Approved")) {
        (Some(certificate), _) => Answer::Issued(certificate),
        (None, Some(_)) => Answer::Approved,
        (None, None) => Answer::None,
    }
}

/// Approves or denies a request as it was read: not one that has taken its place.
pub(super) async fn decide(
    term: &Term,
    provider: &Client,
    request: &CertificateSigningRequest,
    verdict: Result<&str, &str>,
    now: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time,
) -> Result<(), CallError> {
    let name = request.metadata.name.clone().unwrap_or_default();
    let (type_, reason, message) = match verdict {
        Ok(why) => ("Approved", "PortolanApproved", why),
        Err(why) => ("Denied", "PortolanDenied", why),
    };
    let condition = CertificateSigningRequestCondition {
        type_: type_.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_update_time: Some(now),
        last_transition_time: None,
    };
    let mut decided = request.clone();
    decided.status.get_or_insert_default().conditions.get_or_insert_default().push(condition);
    let what = format!("write {type_} into CertificateSigningRequest {name}");
    let path = format!(
        "/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}/approval?fieldManager={FIELD_MANAGER}"
    );
    let update = async {
        let body = serde_json::to_vec(&decided).map_err(kube::Error::SerdeError)?;
        let request = http::Request::put(path).body(body).map_err(kube::Error::HttpError)?;
        provider.request::<CertificateSigningRequest>(request).await
    };
    term.call(what, update).await.map(|_| ())
}
