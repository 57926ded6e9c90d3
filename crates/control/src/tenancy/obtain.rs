//! Asking the provider for the first certificate, and waiting for it.

use super::TenancyError;
use super::certificate::{Answer, answer, is_same_key, request, send};
use super::held::Handed;
use super::hop::why_unreachable;
use super::redeeming::Redeeming;
use super::sealed::{opened, opening_key, state};
use crate::peering::NAMESPACE;
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::{Api, Client};
use portolan_api::Invitation;
use portolan_api::invitation::InvitationPhase;
use portolan_core::tenancy::names::Tenant;
use portolan_core::tenancy::{CertificateRequest, ClockSkew, OpeningKey, clock_skew, fingerprint};
use portolan_runtime::{CallError, call, foreign_text};
use rcgen::KeyPair;
use std::time::Duration;
use tokio::time::Instant;

/// How often the provider is asked.
const POLL: Duration = Duration::from_millis(250);

/// What the provider has made.
pub(super) struct Issued {
    pub(super) handed: Handed,
    pub(super) tenant_namespace: String,
    pub(super) placement: bool,
    pub(super) sees_cluster: bool,
    pub(super) skew: Option<ClockSkew>,
}

/// A provider that is asked for a certificate.
pub(super) struct Obtaining<'a> {
    with: &'a Redeeming<'a>,
    invitations: Api<Invitation>,
    requests: Api<CertificateSigningRequest>,
    bootstrap: &'a Client,
    wanted: CertificateSigningRequest,
    /// By which a token is opened, if one is sent.
    opening: OpeningKey,
    name: String,
    /// A digest of the key, as people compare it.
    fingerprint: String,
}

/// How far the provider is.
enum Progress {
    Issued(Issued),
    /// The request is there no more: clusters delete requests some time after they were answered.
    Lost(String),
    Waiting(String),
}

impl<'a> Obtaining<'a> {
    pub(super) fn new(
        with: &'a Redeeming<'a>,
        bootstrap: &'a Client,
        tenant: &Tenant,
        key: &KeyPair,
    ) -> Result<Self, TenancyError> {
        let name = portolan_core::tenancy::names::request(&tenant.invitation);
        let mut wanted = request(&name, tenant, key, with.lifetime, &with.own_name)?;
        state(&mut wanted, key, &tenant.invitation)?;
        let read = CertificateRequest::read(&wanted.spec.request.0).map_err(|error| TenancyError::Key {
            what: "request for a certificate",
            why: error.to_string(),
        })?;
        Ok(Self {
            with,
            invitations: Api::namespaced(bootstrap.clone(), NAMESPACE),
            requests: Api::all(bootstrap.clone()),
            bootstrap,
            wanted,
            opening: opening_key(key),
            name,
            fingerprint: fingerprint(&read.key_digest),
        })
    }

    /// Asks, and waits until the certificate is there. A request that is gone is made again, as soon as the provider allows it.
    pub(super) async fn certificate(
        &self,
        clock: &(dyn Fn() -> Timestamp + Sync),
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<Issued, TenancyError> {
        let (started, mut asked, mut skew) = (Instant::now(), false, None);
        loop {
            if !asked && let Some(found) = self.ask(clock).await? {
                asked = true;
                skew = skew.or(self.skew(&found, clock()));
            }
            let waiting = match self.look(skew).await? {
                Progress::Issued(issued) => return Ok(issued),
                Progress::Waiting(waiting) => waiting,
                Progress::Lost(waiting) => {
                    asked = false;
                    waiting
                }
            };
            tell(&waiting);
            if started.elapsed() >= self.with.timeout {
                let (invitation, seconds) = (self.id().to_owned(), self.with.timeout.as_secs());
                return Err(TenancyError::TimedOut { invitation, seconds, waiting });
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// A digest of the key, as people compare it.
    pub(super) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn id(&self) -> &str {
        &self.with.line.invitation
    }

    /// Asks for the certificate. That there is a request already is well, if it is by the same key. Answers nothing if there is
    /// none, and none may be made yet.
    async fn ask(
        &self,
        clock: &(dyn Fn() -> Timestamp + Sync),
    ) -> Result<Option<CertificateSigningRequest>, TenancyError> {
        let found = match send(self.bootstrap, &self.wanted).await {
            // It was accepted already: then only looking is allowed.
            Err(error) if error.code() == Some(403) => self.found().await,
            other => other.map(Some),
        };
        let found = found.map_err(|error| self.failed(error, clock()))?;
        if found.as_ref().is_some_and(|found| !is_same_key(found, &self.wanted)) {
            return Err(TenancyError::OtherKey { invitation: self.id().to_owned() });
        }
        Ok(found)
    }

    async fn found(&self) -> Result<Option<CertificateSigningRequest>, CallError> {
        let what = format!("read CertificateSigningRequest {} in the provider", self.name);
        call(what, self.requests.get_opt(&self.name)).await
    }

    /// Only a request that was made this moment tells the time of the provider.
    fn skew(&self, found: &CertificateSigningRequest, now: Timestamp) -> Option<ClockSkew> {
        let made = found.metadata.creation_timestamp.as_ref().map(|time| time.0);
        made.filter(|_| answer(found) == Answer::None).and_then(|made| clock_skew(now, made))
    }

    async fn look(&self, skew: Option<ClockSkew>) -> Result<Progress, TenancyError> {
        let id = self.id();
        let what = format!("read Invitation {NAMESPACE}/{id} in the provider");
        let found = call(what, self.invitations.get(id)).await;
        let found = found.map_err(|error| self.failed_after(error, skew))?;
        let status = found.status.unwrap_or_default();
        let message = status.message.as_deref().map(foreign_text).unwrap_or_default();
        let invitation = id.to_owned();
        let waiting = match status.phase {
            InvitationPhase::Refused => return Err(TenancyError::Refused { invitation, message }),
            InvitationPhase::Expired => return Err(TenancyError::Expired { invitation, message, skew }),
            InvitationPhase::Issued | InvitationPhase::Used => "waiting for the credential".to_owned(),
            InvitationPhase::Pending => {
                "waiting for the provider's controller, which has not seen the request yet: `portolan controller` must run \
                 there"
                    .to_owned()
            }
            InvitationPhase::AwaitingAcceptance => {
                format!("waiting until the provider accepts key {}, the one of this cluster: {message}", self.fingerprint)
            }
            InvitationPhase::Accepted => format!("waiting for the provider: {message}"),
        };
        let is_issued = matches!(status.phase, InvitationPhase::Issued | InvitationPhase::Used);
        if !is_issued && status.phase != InvitationPhase::Accepted {
            return Ok(Progress::Waiting(waiting));
        }
        let request = self.found().await.map_err(|error| self.failed_after(error, skew))?;
        let Some(request) = request else { return Ok(Progress::Lost(waiting)) };
        let tenant_namespace = status.tenant_namespace.unwrap_or_default();
        Ok(match self.handed(&request, &tenant_namespace).filter(|_| is_issued) {
            Some(handed) => Progress::Issued(Issued {
                handed,
                tenant_namespace,
                placement: !found.spec.namespaces.is_empty(),
                sees_cluster: found.spec.sees_cluster,
                skew,
            }),
            None => Progress::Waiting(waiting),
        })
    }

    /// What is to be had from the request. A token comes first: the rights are its account's then, and not those of a
    /// certificate that somebody has signed late.
    fn handed(&self, request: &CertificateSigningRequest, tenant_namespace: &str) -> Option<Handed> {
        match (opened(request, &self.opening, self.id(), tenant_namespace), answer(request)) {
            (Some(token), _) => Some(Handed::Token(token)),
            (None, Answer::Issued(certificate)) => Some(Handed::Certificate(certificate)),
            (None, _) => None,
        }
    }

    /// What a failed first request means.
    fn failed(&self, error: CallError, now: Timestamp) -> TenancyError {
        let line = self.with.line;
        match error.code() {
            Some(401 | 403) => {
                let invitation = line.invitation.clone();
                let late = now.duration_since(line.expires);
                if late.is_positive() {
                    let message = format!(
                        "it was for use until {}, {} minutes ago by the clock here",
                        line.expires,
                        late.as_mins()
                    );
                    return TenancyError::Expired { invitation, message, skew: None };
                }
                TenancyError::NotAccepted { server: line.server.clone(), invitation, skew: None }
            }
            Some(_) => error.into(),
            None => {
                let why = why_unreachable(&error);
                TenancyError::Unreachable { server: line.server.clone(), why }
            }
        }
    }

    /// What a failed later request means.
    fn failed_after(&self, error: CallError, skew: Option<ClockSkew>) -> TenancyError {
        match error.code() {
            Some(401 | 403 | 404) => TenancyError::NotAccepted {
                server: self.with.line.server.clone(),
                invitation: self.id().to_owned(),
                skew,
            },
            _ => error.into(),
        }
    }
}
