//! One leader at a time, elected by a Lease.
//!
//! The candidates of an election share a Lease. Whoever holds it renews it; who finds that it has not changed for the
//! time that it holds takes it by compare-and-swap and raises `leaseTransitions`, which is the epoch of the new term.
//! Only times measured on one's own clock are compared, so that clocks that disagree do no harm: the leader counts from
//! before its request was sent, the others from when they saw its effect, and the leader gives up earlier than they
//! take over.
//!
//! That alone does not keep an old leader's request from arriving late, since nobody can tell how long a request is on
//! its way or a process stands still between looking at the clock and sending. What it does ensure is what fencing by
//! epochs needs: **whatever a leader sends after its successor was elected rests on what it read before.** For it
//! looked at [`Term::holds`] just before sending, and that was true only before the successor took the lease. So a
//! successor that writes its epoch into every object by compare-and-swap, before it decides anything, makes every such
//! late write fail, or else finds it there and counts it.
//!
//! The lease is the only witness of an election. What other objects say of epochs is a reason to ask it
//! ([`Term::confirm`]), never a proof: anybody who may change such an object can write any number. A lease that was
//! deleted counts on from the greatest number that a candidate has seen in it, and a candidate that saw somebody else
//! hold it waits until that term has run out, as if it were still there.

use crate::{Backoff, CallError, Clock, LEASE_DURATION, Seed, Standing, Term, call, chain};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use std::time::Duration;
use tokio::time::Instant;

/// How long after its last renewal a leader still acts.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// How often a leader renews and the others look.
const RETRY: Duration = Duration::from_secs(2);
/// A leader that is asked whether it still leads asks the lease no more often than this.
const CONFIRM_INTERVAL: Duration = Duration::from_millis(200);
/// How long one request for the lease may take.
const LEASE_REQUEST_LIMIT: Duration = Duration::from_secs(4);

/// How long the work of a term may take to stop when the term is over.
const WIND_DOWN: Duration = Duration::from_secs(1);

/// An election and one candidate in it.
#[derive(Clone)]
pub struct Election {
    /// A client of the cluster that holds the lease.
    pub client: Client,
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of the lease.
    pub name: String,
    /// The candidate; no two processes may have the same name.
    pub holder: String,
    /// What the times in the lease are read from.
    pub clock: Clock,
    /// What waits are jittered by.
    pub seed: Seed,
    /// How it stands, for those who ask from outside.
    pub standing: Standing,
}

impl Election {
    /// Leads whenever elected, until `stop`: then the lease is given up, so that the next leader need not wait.
    ///
    /// `work` is started with each term. When the term ends, [`Term::until_over`] tells it so, and it is dropped, wherever
    /// it stands. Work that ends by itself has failed: the lease is given up, and there is no further term here.
    pub async fn lead<Work: Future<Output = ()>>(
        &self,
        work: impl Fn(Term) -> Work,
        stop: impl Future<Output = ()>,
    ) {
        let mut stop = std::pin::pin!(stop);
        let mut seen = LeaseSeen::default();
        loop {
            let held = tokio::select! {
                biased;
                () = &mut stop => return,
                held = self.acquire(&mut seen) => held,
            };
            let term = held.term.clone();
            tracing::info!(holder = term.holder(), epoch = term.epoch(), now = %self.clock.now(), "leads");
            self.standing.elected();
            let mut held = held;
            let mut working = Box::pin(work(term.clone()));
            let (stopped, failed) = tokio::select! {
                biased;
                () = &mut stop => (true, false),
                () = self.keep(&mut held) => (false, false),
                () = &mut working => (true, true),
            };
            // The term ends before the lease is given up, and the work has a moment to stop by itself: dropped tasks may
            // be running on another thread.
            term.end();
            self.standing.lost();
            if !failed && tokio::time::timeout(WIND_DOWN, &mut working).await.is_err() {
                tracing::debug!("the work of the term did not stop by itself");
            }
            drop(working);
            if stopped {
                self.release(&held).await;
                return;
            }
            seen.epoch = seen.epoch.max(term.epoch().unwrap_or(0));
            seen.holder.clone_from(&self.holder);
            tracing::warn!(holder = term.holder(), epoch = term.epoch(), now = %self.clock.now(), "leads no more");
        }
    }

    /// Waits until the lease is free, and takes it for a term greater than all that were seen.
    async fn acquire(&self, seen: &mut LeaseSeen) -> Held {
        let mut backoff = Backoff::new(self.seed.child("acquire"));
        loop {
            match self.try_acquire(seen).await {
                Ok(Some(held)) => return held,
                Ok(None) => {
                    backoff.succeeded();
                    tokio::time::sleep(RETRY).await;
                }
                Err(error) => {
                    tracing::warn!(error = %chain(&error), "cannot take part in the election");
                    tokio::time::sleep(backoff.failed()).await;
                }
            }
        }
    }

    async fn try_acquire(&self, seen: &mut LeaseSeen) -> Result<Option<Held>, CallError> {
        let lease = self.request("read", self.api().get_opt(&self.name)).await?;
        let spec = lease.as_ref().and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let since = seen.take(lease.as_ref());
        let promised =
            Duration::from_secs(u64::try_from(spec.lease_duration_seconds.unwrap_or(0)).unwrap_or(0));
        let free = match seen.holder.as_str() {
            "" => true,
            holder => holder == self.holder || since.elapsed() >= promised.max(LEASE_DURATION),
        };
        if !free {
            return Ok(None);
        }
        let epoch = seen.epoch.saturating_add(1);
        let sent = Instant::now();
        let taken = Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(self.namespace.clone()),
                ..lease.as_ref().map(|lease| lease.metadata.clone()).unwrap_or_default()
            },
            spec: Some(LeaseSpec { acquire_time: Some(self.clock.micro_time()), ..self.spec(epoch) }),
        };
        let params = PostParams::default();
        let written = match lease {
            None => self.request("create", self.api().create(&params, &taken)).await,
            Some(_) => self.request("take", self.api().replace(&self.name, &params, &taken)).await,
        };
        match written {
            Ok(lease) => {
                Ok(Some(Held { term: Term::until(&self.holder, epoch, sent + RENEW_DEADLINE), lease }))
            }
            // Somebody was faster.
            Err(error) if error.is_conflict() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Renews the lease until it is lost.
    async fn keep(&self, held: &mut Held) {
        loop {
            let ends = held.term.ends().unwrap_or_else(Instant::now);
            let renewed = async {
                let asked = Instant::now();
                tokio::select! {
                    biased;
                    () = held.term.until_doubted() => tokio::time::sleep_until(asked + CONFIRM_INTERVAL).await,
                    () = tokio::time::sleep(RETRY) => {}
                }
                self.renew(held).await
            };
            match tokio::time::timeout_at(ends, renewed).await {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) | Err(_) => return,
                Ok(Err(error)) => tracing::warn!(error = %chain(&error), "the lease is not renewed yet"),
            }
        }
    }

    /// Renews the lease once; no if somebody else has it.
    async fn renew(&self, held: &mut Held) -> Result<bool, CallError> {
        let sent = Instant::now();
        let request = held.term.begin();
        let epoch = held.term.epoch().unwrap_or(0);
        let mut lease = held.lease.clone();
        let acquired = lease.spec.as_ref().and_then(|spec| spec.acquire_time.clone());
        lease.spec = Some(LeaseSpec { acquire_time: acquired, ..self.spec(epoch) });
        match self.request("renew", self.api().replace(&self.name, &PostParams::default(), &lease)).await {
            Ok(lease) => {
                held.lease = lease;
                held.term.extend(sent + RENEW_DEADLINE);
                held.term.confirmed(request);
                Ok(true)
            }
            // Our own renewal whose answer was lost, somebody's label, or a new leader: look which.
            Err(error) if error.is_conflict() || error.is_not_found() => {
                let Some(lease) = self.request("read", self.api().get_opt(&self.name)).await? else {
                    return Ok(false);
                };
                let spec = lease.spec.clone().unwrap_or_default();
                let ours = spec.holder_identity.as_deref() == Some(&self.holder)
                    && spec.lease_transitions.map(i64::from) == Some(epoch);
                held.lease = lease;
                if ours {
                    held.term.confirmed(request);
                }
                Ok(ours)
            }
            Err(error) => Err(error),
        }
    }

    /// Lets the next leader take over at once. If that does not work, it waits until the lease has run out.
    async fn release(&self, held: &Held) {
        let mut lease = held.lease.clone();
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = Some(String::new());
        }
        let replaced = self.api();
        let released =
            self.request("give up", replaced.replace(&self.name, &PostParams::default(), &lease)).await;
        if let Err(error) = released {
            tracing::warn!(error = %chain(&error), "the lease runs out by itself");
        }
    }

    fn spec(&self, epoch: i64) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.holder.clone()),
            lease_duration_seconds: i32::try_from(LEASE_DURATION.as_secs()).ok(),
            lease_transitions: Some(i32::try_from(epoch).unwrap_or(i32::MAX)),
            renew_time: Some(self.clock.micro_time()),
            ..LeaseSpec::default()
        }
    }

    fn api(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn request<T>(
        &self,
        verb: &str,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, CallError> {
        let what = format!("{verb} Lease {}/{}", self.namespace, self.name);
        let answer = match tokio::time::timeout(LEASE_REQUEST_LIMIT, call(what.clone(), request)).await {
            Ok(answer) => answer,
            Err(_) => Err(CallError::Silent { what, limit: LEASE_REQUEST_LIMIT }),
        };
        // Who was faster has written to a hub that answers.
        if answer.as_ref().map_or_else(CallError::is_conflict, |_| true) {
            self.standing.answered();
        }
        answer
    }
}

/// A lease that is held, as it was last written.
struct Held {
    term: Term,
    lease: Lease,
}

/// What a candidate has seen of the lease so far.
#[derive(Default)]
struct LeaseSeen {
    /// The greatest epoch that the lease had.
    epoch: i64,
    /// Who held it when it was last there; empty if nobody did.
    holder: String,
    /// Its last version, none if it was not there, and since when it has that.
    version: Option<(Option<String>, Instant)>,
}

impl LeaseSeen {
    /// Takes the lease as it is now, and answers since when it is so.
    fn take(&mut self, lease: Option<&Lease>) -> Instant {
        if let Some(lease) = lease {
            let spec = lease.spec.clone().unwrap_or_default();
            self.epoch = self.epoch.max(i64::from(spec.lease_transitions.unwrap_or(0)));
            self.holder = spec.holder_identity.unwrap_or_default();
        }
        let version = lease.and_then(|lease| lease.metadata.resource_version.clone());
        match &self.version {
            Some((last, since)) if *last == version => *since,
            _ => self.version.insert((version, Instant::now())).1,
        }
    }
}
