//! The controller of a provider: one invitation, one request, one tenant.

use super::TenancyError;
use super::certificate::{Answer, CLUSTER_NAME, answer, asked, decide};
use super::objects::asking;
use super::tenant::{Claimed, gone};
use crate::names::{FIELD_MANAGER, REQUEST_LABEL, TENANCY_FINALIZER, TENANT_LABEL};
use crate::peering::{NAMESPACE, apply_by, identity};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ListParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_api::conditions::{self, ConditionStatus, ConditionType, Finding};
use portolan_api::foreigncluster::ClusterIdentity;
use portolan_api::invitation::{Acceptance, InvitationPhase};
use portolan_api::{ForeignCluster, Invitation, InvitationStatus, Reason};
use portolan_core::tenancy::names::{self, Tenant, is_label};
use portolan_core::tenancy::{Asked, Invited, Refusal, judge, judge_renewal};
use portolan_runtime::{
    Action, CallError, Clock, EventType, Index, Key, Queue, Recorder, Seed, Term, call, feed, foreign_text,
    supervise, work,
};
use std::time::Duration;
use tokio::task::JoinSet;

/// How long a consumer that was accepted in time has to fetch its credential.
const GRACE: Duration = Duration::from_secs(300);

/// How long a signer has.
const SIGNED_WITHIN: Duration = Duration::from_secs(20);

/// How long a new tenant waits for the quotas that bound it.
const BOUNDED_WITHIN: Duration = Duration::from_secs(10);

/// How soon to look again whether they are there.
const BOUNDED_SOON: Duration = Duration::from_millis(200);

/// How soon to look again at what is on its way.
const SOON: Duration = Duration::from_secs(1);

/// The longest name that a consumer can wish for: names of its objects are made of it.
const LONGEST_NAME: usize = 40;

/// What is looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Invitation(String),
    Renewal(String),
    Tenant(String),
}

/// The controller of a provider.
pub(super) struct Provider {
    pub(super) client: Client,
    pub(super) term: Term,
    pub(super) clock: Clock,
    pub(super) recorder: Recorder,
}

/// Serves invitations and tenants for the length of a term. Dropped, it stops at once.
pub async fn run(cluster: Client, clock: Clock, seed: Seed, term: Term) {
    let queue = Queue::<Item>::new(seed.child("tenancy"));
    let mut tasks = JoinSet::new();
    let changed = queue.clone();
    tasks.spawn(feed(
        Api::<Invitation>::namespaced(cluster.clone(), NAMESPACE),
        watcher::Config::default(),
        |_| (),
        Index::default(),
        move |key: &Key| changed.add(Item::Invitation(key.name.clone())),
        seed.child("invitations"),
    ));
    let changed = queue.clone();
    tasks.spawn(feed(
        Api::<CertificateSigningRequest>::all(cluster.clone()),
        watcher::Config::default().labels(REQUEST_LABEL),
        |_| (),
        Index::default(),
        move |key: &Key| changed.add(item_of_request(&key.name)),
        seed.child("requests"),
    ));
    let (changed, holders) = (queue.clone(), Index::<String>::default());
    let known = holders.clone();
    tasks.spawn(feed(
        Api::<Lease>::all(cluster.clone()),
        watcher::Config::default().labels(TENANT_LABEL),
        |lease| lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default(),
        holders,
        move |key: &Key| {
            if let Some(name) = key.namespace.strip_prefix(&names::tenant_namespace("")) {
                changed.add(Item::Tenant(name.to_owned()));
            }
            // The invitation that it came by waits for it.
            if let Some(tenant) = known.get(key).and_then(|holder| Tenant::of_user(&holder)) {
                changed.add(Item::Invitation(tenant.invitation));
            }
        },
        seed.child("leases"),
    ));
    let (changed, clusters) = (queue.clone(), Index::<bool>::default());
    let known = clusters.clone();
    tasks.spawn(feed(
        Api::<ForeignCluster>::all(cluster.clone()),
        watcher::Config::default(),
        has_tenant,
        clusters,
        move |key: &Key| {
            if known.get(key).is_some_and(|has_tenant| *has_tenant) {
                changed.add(Item::Tenant(key.name.clone()));
            }
        },
        seed.child("foreignclusters"),
    ));
    let recorder = Recorder::new(cluster.clone(), clock.clone(), "portolan.dev/tenancy");
    let provider = Provider { client: cluster, term, clock: clock.clone(), recorder };
    let orphans = provider.burn_orphans();
    let serve = async {
        // Rights that an invitation left behind that was deleted meanwhile.
        if let Err(error) = orphans.await {
            tracing::warn!(error = %portolan_runtime::chain(&error), "rights of invitations that are gone are not looked for");
        }
        work(&queue, 1, &clock, |item| provider.reconcile(item)).await;
    };
    Box::pin(supervise(tasks, serve)).await;
}

/// Ends what is left of a tenancy whose ForeignCluster is deleted, as an administrator: also where no controller runs.
///
/// # Errors
/// The cluster refused, or does not answer.
pub async fn revoke(cluster: &Client, name: &str, clock: &Clock) -> Result<(), TenancyError> {
    let recorder = Recorder::new(cluster.clone(), clock.clone(), "portolan.dev/tenancy");
    let term = Term::alone(FIELD_MANAGER);
    let provider = Provider { client: cluster.clone(), term, clock: clock.clone(), recorder };
    provider.tenant(name).await.map(|_| ())
}

/// Whether a ForeignCluster has a tenant, or what is left of one.
fn has_tenant(cluster: ForeignCluster) -> bool {
    let kept = cluster.metadata.finalizers.iter().flatten().any(|each| each == TENANCY_FINALIZER);
    kept || cluster.spec.incoming.is_some_and(|incoming| incoming.user.is_some())
}

fn item_of_request(name: &str) -> Item {
    match name.strip_prefix(&names::request("")) {
        Some(id) => Item::Invitation(id.to_owned()),
        None => Item::Renewal(name.to_owned()),
    }
}

impl Provider {
    async fn reconcile(&self, item: Item) -> Result<Action, TenancyError> {
        match item {
            Item::Invitation(id) => Box::pin(self.invitation(&id)).await,
            Item::Renewal(name) => Box::pin(self.renewal(&name)).await,
            Item::Tenant(name) => Box::pin(self.tenant(&name)).await,
        }
    }

    async fn invitation(&self, id: &str) -> Result<Action, TenancyError> {
        let api: Api<Invitation> = Api::namespaced(self.client.clone(), NAMESPACE);
        let found = call(format!("read Invitation {NAMESPACE}/{id}"), api.get_opt(id)).await?;
        let Some(invitation) = found.filter(|found| found.metadata.deletion_timestamp.is_none()) else {
            self.burn(id).await?;
            return Ok(Action::AwaitChange);
        };
        match invitation.status.clone().unwrap_or_default().phase {
            InvitationPhase::Pending | InvitationPhase::AwaitingAcceptance => {
                Box::pin(self.judge(id, &invitation)).await
            }
            InvitationPhase::Accepted => Box::pin(self.admit(id, &invitation)).await,
            InvitationPhase::Issued => Box::pin(self.hand_over(id, &invitation)).await,
            InvitationPhase::Used | InvitationPhase::Expired | InvitationPhase::Refused => {
                Box::pin(self.wind_up(id, &invitation)).await
            }
        }
    }

    /// Waits for the request, and judges it.
    async fn judge(&self, id: &str, invitation: &Invitation) -> Result<Action, TenancyError> {
        let (now, expires) = (self.clock.now(), invitation.spec.expires_at.0);
        let Some(request) = self.request(&names::request(id)).await? else {
            if now >= expires {
                let message = format!("no cluster has used it until {expires}");
                return self
                    .end(invitation, InvitationPhase::Expired, Reason::InvitationExpired, message)
                    .await;
            }
            let message = format!("waits for a cluster that uses it, until {expires}");
            let record = invitation.status.clone().unwrap_or_default();
            self.say(invitation, record, InvitationPhase::Pending, Reason::InvitationPending, message)
                .await?;
            return Ok(Action::RequeueAfter(until(expires, now)));
        };
        let provider = identity(&self.client, "the provider").await?;
        let mut record = invitation.status.clone().unwrap_or_default();
        let invited = Invited {
            invitation: id,
            namespace: NAMESPACE,
            expires,
            key_digest: record.key_digest.as_deref(),
            provider: &provider,
        };
        let judged = self.read(&request).and_then(|asked| {
            let tenant = judge(&invited, &asked, now).map_err(|refusal| {
                let is_late = matches!(refusal, Refusal::Expired(_));
                (is_late, refusal.to_string())
            })?;
            Ok((asked, tenant))
        });
        let (asked, tenant) = match judged {
            Ok(judged) => judged,
            Err((is_late, why)) => {
                self.deny(&request, &why).await?;
                let (phase, reason) = if is_late {
                    (InvitationPhase::Expired, Reason::InvitationExpired)
                } else {
                    (InvitationPhase::Refused, Reason::InvitationRefused)
                };
                return self.end(invitation, phase, reason, why).await;
            }
        };
        let consumer = ClusterIdentity {
            cluster_id: tenant.cluster.clone(),
            cluster_name: wished_name(invitation, &request, &tenant),
        };
        record.consumer = Some(consumer.clone());
        record.key_digest = Some(asked.request.key_digest);
        record.user = Some(tenant.user());
        if invitation.spec.acceptance == Acceptance::Manual && !invitation.spec.accepted {
            if now >= expires {
                let message = format!("cluster {} was not accepted until {expires}", consumer.cluster_name);
                self.deny(&request, &message).await?;
                return self
                    .end(invitation, InvitationPhase::Expired, Reason::InvitationExpired, message)
                    .await;
            }
            let message = format!(
                "cluster {} (identity {}) waits: `portolan accept {id}` accepts it",
                consumer.cluster_name, consumer.cluster_id
            );
            let (phase, reason) = (InvitationPhase::AwaitingAcceptance, Reason::AwaitingAcceptance);
            self.say(invitation, record, phase, reason, message).await?;
            return Ok(Action::RequeueAfter(until(expires, now)));
        }
        record.accepted_at = Some(self.clock.time());
        let message = format!("cluster {} is accepted; its tenant is being made", consumer.cluster_name);
        // From here on no other key is accepted, whoever leads.
        self.say(invitation, record, InvitationPhase::Accepted, Reason::AwaitingConsumer, message).await?;
        Ok(Action::RequeueAfter(Duration::ZERO))
    }

    /// Makes the tenant, and has the certificate signed.
    async fn admit(&self, id: &str, invitation: &Invitation) -> Result<Action, TenancyError> {
        let status = invitation.status.clone().unwrap_or_default();
        let (tenant, consumer) = (status.user.as_deref().and_then(Tenant::of_user), status.consumer.clone());
        let (Some(tenant), Some(consumer)) = (tenant, consumer) else {
            let message = "its status was changed by somebody else: make a new one".to_owned();
            return self.end(invitation, InvitationPhase::Refused, Reason::InvitationRefused, message).await;
        };
        // Used is used: nothing more can be asked for by it.
        apply_by(&self.term, &self.client, &asking(id, true), "the provider").await?;
        let Some(request) = self.request(&names::request(id)).await? else {
            let message = "the request for the certificate was deleted: make a new invitation".to_owned();
            return self.end(invitation, InvitationPhase::Refused, Reason::InvitationRefused, message).await;
        };
        let same_key = self
            .read(&request)
            .is_ok_and(|asked| Some(&asked.request.key_digest) == status.key_digest.as_ref());
        if !same_key {
            let why = Refusal::OtherKey.to_string();
            self.deny(&request, &why).await?;
            return self.end(invitation, InvitationPhase::Refused, Reason::InvitationRefused, why).await;
        }
        let namespaces = &invitation.spec.namespaces;
        let cluster = match self.claim(&tenant, &consumer, &invitation.spec).await? {
            Claimed::By(name) => name,
            Claimed::Taken(name) => {
                let why = format!(
                    "the cluster has peered already, as {name}: `portolan unpeer {name}` on the provider ends that"
                );
                self.deny(&request, &why).await?;
                return self.end(invitation, InvitationPhase::Refused, Reason::InvitationRefused, why).await;
            }
            Claimed::Occupied { namespace, holder } => {
                let why = TenancyError::NamespaceTaken { namespace, holder }.to_string();
                self.deny(&request, &why).await?;
                return self.end(invitation, InvitationPhase::Refused, Reason::InvitationRefused, why).await;
            }
            Claimed::Leaving(name) => {
                let message = format!("waits until ForeignCluster {name} is gone, which is being deleted");
                self.say(invitation, status, InvitationPhase::Accepted, Reason::AwaitingConsumer, message)
                    .await?;
                return Ok(Action::RequeueAfter(SOON));
            }
        };
        let waiting = self.make(&cluster, &tenant, namespaces, invitation.spec.sees_cluster).await?;
        match answer(&request) {
            Answer::None => {
                let why = format!("invitation {id} allows it");
                decide(&self.term, &self.client, &request, Ok(&why), self.clock.time()).await?;
                Ok(Action::RequeueAfter(SOON))
            }
            Answer::Approved(since) => {
                let waited = since.map(|since| self.clock.now().duration_since(since)).unwrap_or_default();
                if Duration::try_from(waited).unwrap_or_default() < SIGNED_WITHIN {
                    return Ok(Action::RequeueAfter(SOON));
                }
                let why = format!(
                    "the request is approved, and nobody has signed it within {} s: this cluster does not run the signer \
                     kubernetes.io/kube-apiserver-client",
                    SIGNED_WITHIN.as_secs()
                );
                self.abandon(&cluster).await?;
                self.end(invitation, InvitationPhase::Refused, Reason::SignerMissing, why).await
            }
            Answer::Refused(why) => {
                self.abandon(&cluster).await?;
                let why = format!("the signer refuses: {}", foreign_text(&why));
                self.end(invitation, InvitationPhase::Refused, Reason::InvitationRefused, why).await
            }
            // A consumer that comes at once finds its rights there. Without a quota it gets them later.
            Answer::Issued(_) if !waiting.is_empty() && self.is_recent(status.accepted_at.as_ref()) => {
                Ok(Action::RequeueAfter(BOUNDED_SOON))
            }
            Answer::Issued(_) => {
                let record = InvitationStatus {
                    tenant_namespace: Some(names::tenant_namespace(&cluster)),
                    foreign_cluster: Some(cluster),
                    ..status
                };
                let message = format!("cluster {} can fetch its certificate", consumer.cluster_name);
                self.say(invitation, record, InvitationPhase::Issued, Reason::AwaitingConsumer, message)
                    .await?;
                Ok(Action::RequeueAfter(Duration::ZERO))
            }
        }
    }

    /// Whether a consumer was accepted so lately that its quotas may be on their way.
    fn is_recent(&self, accepted: Option<&Time>) -> bool {
        let now = self.clock.now();
        accepted.is_some_and(|at| now.duration_since(at.0) < signed(BOUNDED_WITHIN))
    }

    /// Waits until the consumer has used its certificate.
    async fn hand_over(&self, id: &str, invitation: &Invitation) -> Result<Action, TenancyError> {
        let status = invitation.status.clone().unwrap_or_default();
        let cluster = status.foreign_cluster.clone().unwrap_or_default();
        let holder = self.lease(&cluster).await?.and_then(|lease| lease.spec?.holder_identity);
        if holder.is_some() && holder == status.user {
            let message = format!("{cluster} has peered by it");
            return self.end(invitation, InvitationPhase::Used, Reason::InvitationUsed, message).await;
        }
        let (now, last) = (self.clock.now(), invitation.spec.expires_at.0.saturating_add(signed(GRACE)));
        let last = last.unwrap_or(invitation.spec.expires_at.0);
        if now < last {
            return Ok(Action::RequeueAfter(until(last, now)));
        }
        self.abandon(&cluster).await?;
        let message =
            format!("the consumer has not fetched its certificate until {last}; invitation {id} ends");
        self.end(invitation, InvitationPhase::Expired, Reason::InvitationExpired, message).await
    }

    /// A tenant renews its certificate.
    async fn renewal(&self, name: &str) -> Result<Action, TenancyError> {
        let Some(request) = self.request(name).await?.filter(|request| answer(request) == Answer::None)
        else {
            return Ok(Action::AwaitChange);
        };
        let judged = match self.read(&request) {
            Err((_, why)) => Err(why),
            Ok(asked) => self.judge_renewal(name, &asked).await?,
        };
        match judged {
            Ok(why) => decide(&self.term, &self.client, &request, Ok(&why), self.clock.time()).await?,
            Err(why) => self.deny(&request, &why).await?,
        }
        Ok(Action::AwaitChange)
    }

    async fn judge_renewal(&self, name: &str, asked: &Asked) -> Result<Result<String, String>, TenancyError> {
        let Some(tenant) = Tenant::of_user(&asked.requester).filter(|tenant| tenant.renewal() == name) else {
            return Ok(Err(format!(
                "{} is no tenant that may ask by this name",
                foreign_text(&asked.requester)
            )));
        };
        let api: Api<ForeignCluster> = Api::all(self.client.clone());
        let all = call("list ForeignClusters", api.list(&ListParams::default())).await?;
        let is_its = |cluster: &&ForeignCluster| {
            let incoming = cluster.spec.incoming.as_ref().and_then(|incoming| incoming.user.as_deref());
            incoming == Some(&asked.requester) && cluster.metadata.deletion_timestamp.is_none()
        };
        let Some(cluster) = all.items.iter().find(is_its) else {
            return Ok(Err(format!("{} has not peered any more", asked.requester)));
        };
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        Ok(judge_renewal(&tenant, asked)
            .map(|()| format!("tenant {name} renews its certificate"))
            .map_err(|no| no.to_string()))
    }

    /// Lets the tenant go that was made for a consumer that never came.
    async fn abandon(&self, cluster: &str) -> Result<(), TenancyError> {
        let api: Api<ForeignCluster> = Api::all(self.client.clone());
        let Some(found) = call(format!("read ForeignCluster {cluster}"), api.get_opt(cluster)).await? else {
            return Ok(());
        };
        self.part(&found).await.map(|_| ())
    }

    /// What a request asks for; whether it is too late, and why it cannot be read.
    fn read(&self, request: &CertificateSigningRequest) -> Result<Asked, (bool, String)> {
        asked(request).map_err(|error| (false, error.to_string()))
    }

    async fn request(&self, name: &str) -> Result<Option<CertificateSigningRequest>, CallError> {
        let api: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        call(format!("read CertificateSigningRequest {name}"), api.get_opt(name)).await
    }

    async fn deny(&self, request: &CertificateSigningRequest, why: &str) -> Result<(), CallError> {
        if answer(request) != Answer::None {
            return Ok(());
        }
        gone(decide(&self.term, &self.client, request, Err(why), self.clock.time()).await)
    }

    /// Writes how far an invitation is, if that is new. `record` is the status with whatever else is new.
    async fn say(
        &self,
        invitation: &Invitation,
        record: InvitationStatus,
        phase: InvitationPhase,
        reason: Reason,
        message: String,
    ) -> Result<(), CallError> {
        let generation = invitation.metadata.generation;
        let mut status = InvitationStatus {
            phase,
            message: Some(message.clone()),
            observed_generation: generation,
            ..record
        };
        // It turns out only at the end, and the time of that counts.
        let holds = match phase {
            InvitationPhase::Used => ConditionStatus::True,
            InvitationPhase::Refused | InvitationPhase::Expired => ConditionStatus::False,
            _ => ConditionStatus::Unknown,
        };
        let finding = Finding::new(ConditionType::Ready, holds, reason, message);
        conditions::set(&mut status.conditions, finding, generation, self.clock.time().0);
        if invitation.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let name = invitation.metadata.name.clone().unwrap_or_default();
        let api: Api<Invitation> = Api::namespaced(self.client.clone(), NAMESPACE);
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let update = Invitation { status: Some(status), ..invitation.clone() };
        let what = format!("write status of Invitation {NAMESPACE}/{name}");
        self.term.call(what, api.replace_status(&name, &params, &update)).await.map(|_| ())
    }

    /// Nothing comes of the invitation any more: its account goes next.
    async fn end(
        &self,
        invitation: &Invitation,
        phase: InvitationPhase,
        reason: Reason,
        message: String,
    ) -> Result<Action, TenancyError> {
        let record = invitation.status.clone().unwrap_or_default();
        self.say(invitation, record, phase, reason, message.clone()).await?;
        if phase == InvitationPhase::Refused {
            self.recorder.record(invitation, EventType::Warning, reason, &message).await;
        }
        Ok(Action::RequeueAfter(Duration::ZERO))
    }
}

/// What the consumer is called: as the invitation says, or as it wishes, or by its identity.
fn wished_name(invitation: &Invitation, request: &CertificateSigningRequest, tenant: &Tenant) -> String {
    let wish = request.metadata.annotations.as_ref().and_then(|all| all.get(CLUSTER_NAME));
    let wish = wish.filter(|name| name.len() <= LONGEST_NAME && is_label(name)).cloned();
    let given = invitation.spec.consumer.clone();
    given.or(wish).unwrap_or_else(|| format!("consumer-{}", &tenant.cluster[..8]))
}

pub(super) fn until(then: jiff::Timestamp, now: jiff::Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or_default().max(Duration::from_millis(100))
}

pub(super) fn signed(duration: Duration) -> jiff::SignedDuration {
    jiff::SignedDuration::try_from(duration).unwrap_or_default()
}
