//! The controller of a provider: one invitation, one request, one tenant.

use super::TenancyError;
use super::certificate::{Answer, CLUSTER_NAME, answer, asked, decide};
use super::context::Provider;
use super::declared::{Declared, declared};
use super::gone::gone;
use super::waits::Waits;
use crate::monitor::Monitor;
use crate::names::{FIELD_MANAGER, REQUEST_LABEL, TENANT_LABEL};
use crate::peering::{NAMESPACE, identity};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_api::conditions::{self, ConditionStatus, ConditionType, Finding};
use portolan_api::foreigncluster::ClusterIdentity;
use portolan_api::invitation::{Acceptance, InvitationPhase};
use portolan_api::{Invitation, InvitationStatus, Reason};
use portolan_core::tenancy::names::{self, LEASE, Tenant, is_label};
use portolan_core::tenancy::{Asked, Invited, Refusal, fingerprint, judge, judge_renewal};
use portolan_runtime::{
    Action, CallError, Clock, EventType, Index, Key, Queue, Recorder, Seed, Term, call, feed, foreign_text,
    supervise, work,
};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// The longest name that a consumer can wish for: names of its objects are made of it.
const LONGEST_NAME: usize = 40;

/// What is looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Invitation(String),
    Renewal(String),
    Tenant(String),
    /// The rights of tenants and of invitations that do not exist any more.
    Orphans,
}

/// Serves invitations and tenants for the length of a term. Dropped, it stops at once.
pub async fn run(cluster: Client, clock: Clock, seed: Seed, term: Term) {
    run_with(cluster, clock, seed, term, &Monitor::default()).await;
}

/// The same, seen by a monitor.
pub async fn run_with(cluster: Client, clock: Clock, seed: Seed, term: Term, monitor: &Monitor) {
    let queue = Queue::<Item>::new(seed.child("tenancy"));
    let _shown = monitor.show_queue("Invitation", &queue);
    let mut tasks = JoinSet::new();
    let of = |id: &str| Key::new(NAMESPACE, id);
    let (changed, invitations) = (queue.clone(), Index::<()>::default());
    let invited = invitations.clone();
    tasks.spawn(feed(
        Api::<Invitation>::namespaced(cluster.clone(), NAMESPACE),
        watcher::Config::default(),
        |_| (),
        invitations,
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
    let (changed, holders) = (queue.clone(), Index::<Option<Tenant>>::default());
    let known = holders.clone();
    tasks.spawn(feed(
        Api::<Lease>::all(cluster.clone()),
        // Others than tenants may write Leases with that label: no more of them is read, kept or looked for than a tenant has.
        watcher::Config::default().labels(TENANT_LABEL).fields(&format!("metadata.name={LEASE}")),
        |lease| lease.spec.and_then(|spec| Tenant::of_user(&spec.holder_identity?)),
        holders,
        move |key: &Key| {
            let Some(name) = key.namespace.strip_prefix(&names::tenant_namespace("")) else { return };
            changed.add(Item::Tenant(name.to_owned()));
            // The invitation that it came by waits for it.
            let holder = known.get(key).and_then(|holder| holder.as_ref().clone());
            if let Some(tenant) = holder.filter(|tenant| invited.get(&of(&tenant.invitation)).is_some()) {
                changed.add(Item::Invitation(tenant.invitation));
            }
        },
        seed.child("leases"),
    ));
    let (changed, clusters) = (queue.clone(), Index::<Option<HasTenant>>::default());
    let (known, had) = (clusters.clone(), Mutex::<BTreeSet<String>>::default());
    tasks.spawn(feed(
        declared(&cluster),
        watcher::Config::default(),
        |object| HasTenant::of(&Declared::of(object)),
        clusters,
        move |key: &Key| {
            let found = known.get(key).and_then(|found| found.as_ref().clone());
            let mut had = had.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(found) = found else {
                // It was torn out, or its finalizer was.
                if had.remove(&key.name) {
                    changed.add(Item::Orphans);
                }
                return;
            };
            had.insert(key.name.clone());
            changed.add(Item::Tenant(key.name.clone()));
            // The invitation that it came by ends with it.
            if let Some(id) = found.leaves {
                changed.add(Item::Invitation(id));
            }
        },
        seed.child("foreignclusters"),
    ));
    let recorder = Recorder::new(cluster.clone(), clock.clone(), "portolan.dev/tenancy");
    let provider =
        Provider { client: cluster, term, clock: clock.clone(), recorder, waits: Waits::default() };
    // What was deleted while nobody looked.
    queue.add(Item::Orphans);
    let serve = work(&queue, 1, &clock, |item| provider.reconcile(item));
    Box::pin(supervise(tasks, serve)).await;
}

/// Ends what is left of a tenancy whose ForeignCluster is deleted, as an administrator: also where no controller runs.
///
/// # Errors
/// The cluster refused, or does not answer.
pub async fn revoke(cluster: &Client, name: &str, clock: &Clock) -> Result<(), TenancyError> {
    let recorder = Recorder::new(cluster.clone(), clock.clone(), "portolan.dev/tenancy");
    let term = Term::alone(FIELD_MANAGER);
    let provider =
        Provider { client: cluster.clone(), term, clock: clock.clone(), recorder, waits: Waits::default() };
    loop {
        match provider.tenant(name).await {
            // A controller that does the same was first.
            Err(TenancyError::Call(error)) if error.is_conflict() => {}
            other => return other.map(|_| ()),
        }
    }
}

/// A ForeignCluster that has a tenant, or what is left of one.
#[derive(Clone)]
struct HasTenant {
    /// The invitation of the tenant, if it is about to end.
    leaves: Option<String>,
}

impl HasTenant {
    fn of(cluster: &Declared) -> Option<Self> {
        let is_over = cluster.is_leaving() || cluster.user().is_none();
        let leaves = cluster.last_tenant().filter(|_| is_over).map(|tenant| tenant.invitation);
        (cluster.has_finalizer() || cluster.user().is_some()).then_some(Self { leaves })
    }
}

fn item_of_request(name: &str) -> Item {
    match name.strip_prefix(&names::request("")).filter(|id| names::is_invitation(id)) {
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
            Item::Orphans => Box::pin(self.sweep()).await,
        }
    }

    async fn invitation(&self, id: &str) -> Result<Action, TenancyError> {
        let api: Api<Invitation> = Api::namespaced(self.client.clone(), NAMESPACE);
        let found = call(format!("read Invitation {NAMESPACE}/{id}"), api.get_opt(id)).await?;
        let Some(invitation) = found.filter(|found| found.metadata.deletion_timestamp.is_none()) else {
            self.waits.forget(id);
            self.burn(id).await?;
            Box::pin(self.forsake(id)).await?;
            return Ok(Action::AwaitChange);
        };
        match invitation.status.clone().unwrap_or_default().phase {
            InvitationPhase::Pending | InvitationPhase::AwaitingAcceptance => {
                Box::pin(self.judge(id, &invitation)).await
            }
            InvitationPhase::Accepted => Box::pin(self.admit(&invitation)).await,
            InvitationPhase::Issued => Box::pin(self.hand_over(&invitation)).await,
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
        let mut record = invitation.status.clone().unwrap_or_default();
        let judged = self.judge_first(id, invitation, &request).await?;
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
        if let Some(shown) = record.user.as_ref().filter(|user| **user != tenant.user()) {
            let why = format!("the request that waits is of user {shown}, and not of {}", tenant.user());
            self.deny(&request, &why).await?;
            return self.end(invitation, InvitationPhase::Refused, Reason::InvitationRefused, why).await;
        }
        // What an administrator was shown is what is accepted.
        let consumer = record.consumer.take().unwrap_or_else(|| ClusterIdentity {
            cluster_id: tenant.cluster.clone(),
            cluster_name: wished_name(invitation, &request, &tenant),
        });
        let key = fingerprint(&asked.request.key_digest);
        record.consumer = Some(consumer.clone());
        record.key_digest = Some(asked.request.key_digest);
        record.user = Some(tenant.user());
        let claimed = self.claimed(&tenant, &invitation.spec).await?;
        let is_asked = invitation.spec.acceptance == Acceptance::Manual || claimed.is_some();
        if is_asked && !invitation.spec.accepted {
            if now >= expires {
                let message = format!("cluster {} was not accepted until {expires}", consumer.cluster_name);
                self.deny(&request, &message).await?;
                return self
                    .end(invitation, InvitationPhase::Expired, Reason::InvitationExpired, message)
                    .await;
            }
            let claims =
                claimed.map(|name| format!(", which is ForeignCluster {name} here,")).unwrap_or_default();
            let message = format!(
                "cluster {} (identity {}{claims}) waits by key {key}: if `portolan peer` shows the same key in that cluster, \
                 `portolan accept {id}` accepts it",
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

    /// Whether the request of an invitation is one that is signed, by the key that was accepted if one was; whether it is too
    /// late, and why it is not signed.
    pub(super) async fn judge_first(
        &self,
        id: &str,
        invitation: &Invitation,
        request: &CertificateSigningRequest,
    ) -> Result<Result<(Asked, Tenant), (bool, String)>, TenancyError> {
        let provider = identity(&self.client, "the provider").await?;
        let invited = Invited {
            invitation: id,
            namespace: NAMESPACE,
            expires: invitation.spec.expires_at.0,
            key_digest: invitation.status.as_ref().and_then(|status| status.key_digest.as_deref()),
            provider: &provider,
        };
        Ok(self.read(request).and_then(|asked| {
            let tenant = judge(&invited, &asked, self.clock.now()).map_err(|refusal| {
                let is_late = matches!(refusal, Refusal::Expired(_));
                (is_late, refusal.to_string())
            })?;
            Ok((asked, tenant))
        }))
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
        let Some(cluster) = self.cluster_of(&asked.requester).await? else {
            return Ok(Err(format!("{} has not peered any more", asked.requester)));
        };
        let name = cluster.name();
        Ok(judge_renewal(&tenant, asked)
            .map(|()| format!("tenant {name} renews its certificate"))
            .map_err(|no| no.to_string()))
    }

    /// What a request asks for; whether it is too late, and why it cannot be read.
    pub(super) fn read(&self, request: &CertificateSigningRequest) -> Result<Asked, (bool, String)> {
        asked(request).map_err(|error| (false, error.to_string()))
    }

    pub(super) async fn request(&self, name: &str) -> Result<Option<CertificateSigningRequest>, CallError> {
        let api: Api<CertificateSigningRequest> = Api::all(self.client.clone());
        call(format!("read CertificateSigningRequest {name}"), api.get_opt(name)).await
    }

    pub(super) async fn deny(&self, request: &CertificateSigningRequest, why: &str) -> Result<(), CallError> {
        if answer(request) != Answer::None {
            return Ok(());
        }
        gone(decide(&self.term, &self.client, request, Err(why), self.clock.time()).await)
    }

    /// Writes how far an invitation is, if that is new. `record` is the status with whatever else is new.
    pub(super) async fn say(
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
    pub(super) async fn end(
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
