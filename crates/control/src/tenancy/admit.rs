//! From an accepted request to a consumer that has its certificate. Every step has an end, and a reason if it fails.

use super::TenancyError;
use super::certificate::{Answer, answer, decide};
use super::context::Provider;
use super::login::Login;
use super::objects::asking;
use super::owners::Obstacle;
use super::provider::{signed, until};
use super::sealed::fresh_until;
use super::tenant::Claimed;
use crate::peering::{NAMESPACE, PeerError, apply_by};
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use portolan_api::foreigncluster::ClusterIdentity;
use portolan_api::invitation::InvitationPhase;
use portolan_api::{Invitation, InvitationStatus, Reason};
use portolan_core::tenancy::names::{self, Tenant};
use portolan_core::tenancy::{NoToken, SIGNED_WITHIN, SIGNER, TOKEN_AFTER, Unsigned, unsigned};
use portolan_runtime::{Action, CallError, chain, foreign_text};
use std::time::Duration;

/// How long a consumer that was accepted in time has to fetch its credential.
const GRACE: Duration = Duration::from_secs(300);

/// How long a new tenant waits for the quotas that bound it.
const BOUNDED_WITHIN: Duration = Duration::from_secs(10);

/// How soon to look again whether they are there.
const BOUNDED_SOON: Duration = Duration::from_millis(200);

/// For how long something is tried that the API server refuses each time.
const MADE_WITHIN: Duration = Duration::from_secs(120);

/// How soon to look again at what is on its way.
const SOON: Duration = Duration::from_secs(1);

/// What an invitation waits for, in [`super::waits::Waits`].
const FOR_SIGNER: &str = "signer";
const FOR_RIGHTS: &str = "rights";

/// Who was accepted.
struct Accepted {
    id: String,
    tenant: Tenant,
    consumer: ClusterIdentity,
    status: InvitationStatus,
    /// When it is too late.
    last: Timestamp,
}

/// What came of a look at an invitation that was accepted.
enum Step {
    /// It is looked at again after this long, or when something changes.
    Wait { again: Duration, why: String },
    /// The ForeignCluster is the tenant's, which is noted before anything else is made.
    Claimed(String),
    /// Nothing comes of it. The request is denied if nobody has answered it.
    Refuse { reason: Reason, why: String, request: Option<Box<CertificateSigningRequest>> },
    /// The credential can be fetched.
    Issued(Login),
}

impl Accepted {
    fn of(invitation: &Invitation) -> Option<Self> {
        let status = invitation.status.clone().unwrap_or_default();
        let expires = invitation.spec.expires_at.0;
        Some(Self {
            id: invitation.metadata.name.clone()?,
            tenant: status.user.as_deref().and_then(Tenant::of_user)?,
            consumer: status.consumer.clone()?,
            last: expires.saturating_add(signed(GRACE)).unwrap_or(expires),
            status,
        })
    }
}

impl Provider {
    /// Makes the tenant, and has the certificate signed.
    pub(super) async fn admit(&self, invitation: &Invitation) -> Result<Action, TenancyError> {
        let Some(accepted) = Accepted::of(invitation) else { return self.end_changed(invitation).await };
        let now = self.clock.now();
        if now >= accepted.last {
            let waited = accepted.status.message.clone().unwrap_or_default();
            let why =
                format!("the consumer has not fetched its certificate until {}: {waited}", accepted.last);
            return self.give_up(invitation, &accepted, Reason::InvitationExpired, why, None).await;
        }
        let step = match Box::pin(self.advance(invitation, &accepted)).await {
            Ok(step) => step,
            Err(error) => return self.hindered(invitation, &accepted, error).await,
        };
        self.waits.end(&accepted.id, FOR_RIGHTS);
        let record = accepted.status.clone();
        match step {
            Step::Wait { again, why } => {
                let (phase, reason) = (InvitationPhase::Accepted, Reason::AwaitingConsumer);
                self.say(invitation, record, phase, reason, why).await?;
                Ok(Action::RequeueAfter(again.min(until(accepted.last, now))))
            }
            Step::Claimed(cluster) => {
                let message = format!("the tenant of ForeignCluster {cluster} is being made");
                let record = InvitationStatus {
                    tenant_namespace: Some(names::tenant_namespace(&cluster)),
                    foreign_cluster: Some(cluster),
                    ..record
                };
                let (phase, reason) = (InvitationPhase::Accepted, Reason::AwaitingConsumer);
                self.say(invitation, record, phase, reason, message).await?;
                Ok(Action::RequeueAfter(Duration::ZERO))
            }
            Step::Refuse { reason, why, request } => {
                self.give_up(invitation, &accepted, reason, why, request.as_deref()).await
            }
            Step::Issued(login) => {
                self.waits.forget(&accepted.id);
                let consumer = &accepted.consumer.cluster_name;
                let message = format!("cluster {consumer} can fetch its {}", login.credential());
                let (phase, reason) = (InvitationPhase::Issued, Reason::AwaitingConsumer);
                self.say(invitation, record, phase, reason, message).await?;
                Ok(Action::RequeueAfter(Duration::ZERO))
            }
        }
    }

    async fn advance(&self, invitation: &Invitation, accepted: &Accepted) -> Result<Step, TenancyError> {
        let Accepted { id, tenant, consumer, status, last } = accepted;
        if let Some(cluster) = &status.foreign_cluster
            && !self.still_stands(cluster, tenant).await?
        {
            let why = ended_here(cluster);
            return Ok(Step::Refuse { reason: Reason::InvitationRefused, why, request: None });
        }
        let Some(request) = self.request(&names::request(id)).await? else {
            // Clusters delete requests some time after they were answered.
            apply_by(&self.term, &self.client, &asking(id, false), "the provider").await?;
            let why = format!(
                "the request for the certificate was deleted before the consumer has fetched it: `portolan peer` with the same \
                 line asks again, with the same key, until {last}"
            );
            return Ok(Step::Wait { again: until(*last, self.clock.now()), why });
        };
        // Used is used: nothing more can be asked for by it.
        apply_by(&self.term, &self.client, &asking(id, true), "the provider").await?;
        let refuse = |why: String| {
            let request = Some(Box::new(request.clone()));
            Step::Refuse { reason: Reason::InvitationRefused, why, request }
        };
        // It may be another one than that which was accepted: each one is judged as a whole.
        match self.judge_first(id, invitation, &request).await? {
            Ok((_, asked)) if asked == *tenant => {}
            Ok((_, asked)) => {
                return Ok(refuse(format!("{} was accepted, and not {}", tenant.user(), asked.user())));
            }
            Err((_, why)) => return Ok(refuse(why)),
        }
        let cluster = match self.claim(tenant, consumer, &invitation.spec).await? {
            Claimed::By(name) => name,
            Claimed::Wait(why) => return Ok(Step::Wait { again: SOON, why }),
            Claimed::Refused(why) => return Ok(refuse(why)),
        };
        if status.foreign_cluster.as_ref() != Some(&cluster) {
            return Ok(Step::Claimed(cluster));
        }
        let namespaces = &invitation.spec.namespaces;
        let sees_cluster = invitation.spec.sees_cluster;
        match self.obstacle(&cluster, tenant, namespaces, sees_cluster).await? {
            None => {}
            Some(Obstacle::Passing(why)) => return Ok(Step::Wait { again: SOON, why }),
            Some(Obstacle::Lasting(why)) => return Ok(refuse(why)),
        }
        let login = self.login(&cluster).await?;
        let unbounded = self.make(&cluster, tenant, login, namespaces, sees_cluster).await?;
        let digest = status.key_digest.as_deref();
        let being_signed = || "the certificate is being signed".to_owned();
        Ok(match answer(&request) {
            Answer::Refused(why) => refuse(format!("the signer refuses: {}", foreign_text(&why))),
            _ if login == Login::Token => match self.hand_token(&cluster, id, &request, digest).await? {
                Ok(()) => Step::Issued(login),
                Err(why) => refuse(why.to_string()),
            },
            Answer::None => {
                let why = format!("invitation {id} allows it");
                decide(&self.term, &self.client, &request, Ok(&why), self.clock.time()).await?;
                self.waits.end(id, FOR_SIGNER);
                Step::Wait { again: SOON, why: being_signed() }
            }
            Answer::Approved => {
                let waited = self.waits.so_far(id, FOR_SIGNER);
                let token = if waited >= TOKEN_AFTER {
                    self.may_have_token(id, &request, digest).await?
                } else {
                    Ok(())
                };
                match unsigned(waited, token) {
                    Unsigned::Wait => Step::Wait { again: SOON, why: being_signed() },
                    Unsigned::WaitAloud => Step::Wait { again: SOON, why: nobody_signed("yet") },
                    Unsigned::Token => {
                        self.sign_in_by_token(&cluster, tenant).await?;
                        let when =
                            format!("within {} s: it gets a token in its place", TOKEN_AFTER.as_secs());
                        Step::Wait { again: Duration::ZERO, why: nobody_signed(&when) }
                    }
                    Unsigned::GiveUp(no) => {
                        Step::Refuse { reason: Reason::SignerMissing, why: no_credential(&no), request: None }
                    }
                }
            }
            // A consumer that comes at once finds its rights there. Without a quota it gets them later.
            Answer::Issued(_) if !unbounded.is_empty() && self.is_recent(status.accepted_at.as_ref()) => {
                let why = format!("waits for the quotas that bound it in {}", unbounded.join(", "));
                Step::Wait { again: BOUNDED_SOON, why }
            }
            Answer::Issued(_) => Step::Issued(login),
        })
    }

    /// Whether a consumer was accepted so lately that its quotas may be on their way.
    fn is_recent(&self, accepted: Option<&Time>) -> bool {
        let now = self.clock.now();
        accepted.is_some_and(|at| now.duration_since(at.0) < signed(BOUNDED_WITHIN))
    }

    /// A step has failed. What the API server would refuse again is not tried for ever.
    async fn hindered(
        &self,
        invitation: &Invitation,
        accepted: &Accepted,
        error: TenancyError,
    ) -> Result<Action, TenancyError> {
        let said = foreign_text(&chain(&error));
        let is_final = refusal(&error).is_some_and(|call| call.is_final() || call.is_not_found());
        let limit = MADE_WITHIN.as_secs();
        if is_final && self.waits.so_far(&accepted.id, FOR_RIGHTS) >= MADE_WITHIN {
            let why = format!("the tenant cannot be made within {limit} s: {said}");
            return self.give_up(invitation, accepted, Reason::InvitationRefused, why, None).await;
        }
        if is_final {
            let why = format!("the tenant is not made yet, which is tried for {limit} s: {said}");
            let (record, phase) = (accepted.status.clone(), InvitationPhase::Accepted);
            self.say(invitation, record, phase, Reason::AwaitingConsumer, why).await?;
        }
        Err(error)
    }

    /// Waits until the consumer has used its certificate.
    pub(super) async fn hand_over(&self, invitation: &Invitation) -> Result<Action, TenancyError> {
        let Some(accepted) = Accepted::of(invitation) else { return self.end_changed(invitation).await };
        let Accepted { id, tenant, status, last, .. } = &accepted;
        let cluster = status.foreign_cluster.clone().unwrap_or_default();
        if !self.still_stands(&cluster, tenant).await? {
            let (phase, reason) = (InvitationPhase::Refused, Reason::InvitationRefused);
            return self.end(invitation, phase, reason, ended_here(&cluster)).await;
        }
        let holder = self.lease(&cluster).await?.and_then(|lease| lease.spec?.holder_identity);
        if holder.as_deref() == Some(tenant.user().as_str()) {
            let message = format!("{cluster} has peered by it");
            return self.end(invitation, InvitationPhase::Used, Reason::InvitationUsed, message).await;
        }
        let now = self.clock.now();
        if now >= *last {
            let why =
                format!("the consumer has not fetched its certificate until {last}; invitation {id} ends");
            return self.give_up(invitation, &accepted, Reason::InvitationExpired, why, None).await;
        }
        let request = self.request(&names::request(id)).await?;
        let by_token = self.login(&cluster).await? == Login::Token;
        let fresh = request.as_ref().and_then(fresh_until).filter(|_| by_token);
        let again = match &request {
            None => Some("the request for the certificate was deleted before the consumer has fetched it"),
            Some(_) if by_token && fresh.is_none_or(|fresh| now >= fresh) => {
                Some("the token has ended before the consumer has fetched it, and another one is made")
            }
            Some(_) => None,
        };
        if let Some(why) = again {
            // It begins again with the request, by the same key.
            let (phase, reason) = (InvitationPhase::Accepted, Reason::AwaitingConsumer);
            self.say(invitation, status.clone(), phase, reason, why.to_owned()).await?;
            return Ok(Action::RequeueAfter(Duration::ZERO));
        }
        Ok(Action::RequeueAfter(until(fresh.map_or(*last, |fresh| fresh.min(*last)), now)))
    }

    /// Whether a ForeignCluster stands for this tenant: not for one that has the name by now.
    async fn still_stands(&self, cluster: &str, tenant: &Tenant) -> Result<bool, CallError> {
        Ok(self.cluster(cluster).await?.is_some_and(|found| found.stands_for(&tenant.user())))
    }

    /// Ends an invitation that was accepted, and the tenant that was made for it: that one, and no other of the same name.
    async fn give_up(
        &self,
        invitation: &Invitation,
        accepted: &Accepted,
        reason: Reason,
        why: String,
        request: Option<&CertificateSigningRequest>,
    ) -> Result<Action, TenancyError> {
        if let Some(request) = request {
            self.deny(request, &why).await?;
        }
        if let Some(cluster) = self.cluster_of(&accepted.tenant.user()).await? {
            let note = format!("invitation {NAMESPACE}/{} has ended before it was used", accepted.id);
            self.part(&cluster, Reason::PeeringRevoked, &note).await?;
        }
        self.waits.forget(&accepted.id);
        let phase = match reason {
            Reason::InvitationExpired => InvitationPhase::Expired,
            _ => InvitationPhase::Refused,
        };
        self.end(invitation, phase, reason, why).await
    }

    async fn end_changed(&self, invitation: &Invitation) -> Result<Action, TenancyError> {
        let message = "its status was changed by somebody else: make a new one".to_owned();
        self.end(invitation, InvitationPhase::Refused, Reason::InvitationRefused, message).await
    }
}

fn ended_here(cluster: &str) -> String {
    format!(
        "the peering with ForeignCluster {cluster} was ended on the provider before the consumer has fetched its certificate: make \
         a new invitation"
    )
}

fn nobody_signed(when: &str) -> String {
    format!(
        "the request is approved, and signer {SIGNER}, a part of kube-controller-manager, has not signed it {when}"
    )
}

fn no_credential(no: &NoToken) -> String {
    let when = format!("within {} s", SIGNED_WITHIN.as_secs());
    let unsigned = nobody_signed(&when);
    format!(
        "{unsigned}; a token cannot take its place: {no}; `portolan peer --remote-context` peers without an invitation"
    )
}

/// What the API server has refused.
fn refusal(error: &TenancyError) -> Option<&CallError> {
    match error {
        TenancyError::Call(call) | TenancyError::Peer(PeerError::Call(call)) => Some(call),
        _ => None,
    }
}
