//! Running the controllers of all kinds.

use super::reconcile::reconcile;
use super::{Controller, Decisions, Declared, Delay, Pending, watch};
use crate::capacity::Owner;
use crate::dependencies::Reference;
use crate::fleet::MemberEvent;
use crate::recovery::Bearer;
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Resource;
use portolan_runtime::{Change, WatchHealth, supervise, work_in_tasks};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How many objects of a kind are decided about at the same time. Most of a look is waiting for the hub. With many more at
/// once, busy API servers get less done and other users of theirs wait: of 1,000 workloads on five real clusters, 24 at
/// once were placed faster than 8, 48 or 128.
pub(crate) const WORKERS: usize = 24;

/// Sources change in bursts; one look after this long serves them all.
const SOURCES_SETTLE: Duration = Duration::from_millis(100);

/// A controller of any kind, as the others see it.
pub(crate) trait AnyController: Send + Sync {
    /// The kind in the hub.
    fn kind(&self) -> &'static str;

    /// How the watch of the kind stands.
    fn health(&self) -> &WatchHealth;

    /// Something has changed in a member.
    fn member_changed(&self, cluster: &str, event: &MemberEvent);

    /// Something has changed for an object that none of its own events tells: room, or what was propagated for it.
    fn owner_changed(&self, owner: &Owner);

    /// Looks again at the objects of a namespace that refer to a ConfigMap or Secret.
    fn source_changed(&self, namespace: &str, reference: &Reference);

    /// Whether an object of a namespace that is in a cluster by its status refers to a ConfigMap or Secret.
    fn uses(&self, cluster: &str, namespace: &str, reference: &Reference) -> bool;

    /// How many objects of the kind there are.
    fn count(&self) -> usize;

    /// What came of the decisions about them.
    fn decisions(&self) -> &Decisions;

    /// Visits what has no cluster of each of them.
    fn for_each_pending(&self, visit: &mut dyn FnMut(Pending<'_>));

    /// Decides about the objects of the kind for ever.
    fn run(self: Arc<Self>) -> BoxFuture<'static, ()>;
}

/// The controllers of all kinds.
pub(crate) type Controllers = Vec<Arc<dyn AnyController>>;

/// Drives the controller of one kind.
pub(crate) struct Driver<C>(Arc<C>);

impl<C: Controller> Driver<C> {
    /// The driver of a controller.
    pub(crate) fn of(controller: &Arc<C>) -> Arc<dyn AnyController> {
        Arc::new(Self(Arc::clone(controller)))
    }

    /// Keeps the objects and what they hold known, for ever.
    fn watch(&self) -> impl Future<Output = ()> + Send + 'static {
        let controller = Arc::clone(&self.0);
        let (base, kind) = (self.0.base(), C::Declared::KIND);
        let first = move |change: &Change<C::Declared>| {
            let base = controller.base();
            base.context.fleet.identities.take(kind, change, |declared| Bearer {
                identity: declared.identity(),
                meta: declared.object().meta(),
                recorded: declared.status().is_some_and(|status| !C::Declared::places(status).is_empty()),
            });
            if C::Declared::HOLDS_ROOM {
                // The ledger first: whoever sees an object sees what it holds.
                base.context.fleet.ledger.transact(|book| {
                    book.cannot_read(kind, base.objects.health().unreadable_uids());
                    book.take(kind, change, C::Declared::reserved);
                });
            }
            base.context.fence.take(kind, change, super::Base::<C::Declared, C::Copy>::claimant);
            let before = match change {
                Change::Set(key, now) => base.objects.get(key).map(|before| (before, now)),
                Change::Gone(_) | Change::Listed(_) => None,
            };
            before.map_or(Delay::NONE, |(before, now)| controller.delay(&before, now))
        };
        let seed = base.context.seed.child(kind);
        let hub = &base.context.hub.client;
        watch(hub, C::Declared::of, &base.objects, &base.queue, first, base.changed(), seed)
    }
}

impl<C: Controller> AnyController for Driver<C> {
    fn kind(&self) -> &'static str {
        C::Declared::KIND
    }

    fn health(&self) -> &WatchHealth {
        self.0.base().objects.health()
    }

    fn member_changed(&self, cluster: &str, event: &MemberEvent) {
        match event {
            MemberEvent::Copy(owner) if owner.kind == self.kind() => self.0.copy_changed(cluster, &owner.key),
            MemberEvent::Copy(_) => {}
            MemberEvent::Dependency(namespace, reference) => self.source_changed(namespace, reference),
            other => self.0.member_changed(cluster, other),
        }
    }

    fn owner_changed(&self, owner: &Owner) {
        if owner.kind == self.kind() {
            self.0.base().queue.add(owner.key.clone());
        }
    }

    fn source_changed(&self, namespace: &str, reference: &Reference) {
        let base = self.0.base();
        base.objects.for_each_in(namespace, |key, object| {
            if object.references().is_some_and(|references| references.contains_key(reference)) {
                base.queue.add_after(key.clone(), SOURCES_SETTLE);
            }
        });
    }

    fn uses(&self, cluster: &str, namespace: &str, reference: &Reference) -> bool {
        let mut used = false;
        self.0.base().objects.for_each_in(namespace, |_, object| {
            let refers = || object.references().is_some_and(|references| references.contains_key(reference));
            used = used || (refers() && object.is_in(cluster));
        });
        used
    }

    fn count(&self) -> usize {
        self.0.base().objects.len()
    }

    fn decisions(&self) -> &Decisions {
        &self.0.base().decisions
    }

    fn for_each_pending(&self, visit: &mut dyn FnMut(Pending<'_>)) {
        self.0.base().objects.for_each(|_, object| {
            if let Some(pending) = object.pending() {
                visit(pending);
            }
        });
    }

    fn run(self: Arc<Self>) -> BoxFuture<'static, ()> {
        async move {
            let mut tasks = JoinSet::new();
            tasks.spawn(self.watch());
            let base = self.0.base();
            let controller = Arc::clone(&self.0);
            let look = move |key| {
                let controller = Arc::clone(&controller);
                async move { reconcile(&controller, key).await }
            };
            supervise(tasks, work_in_tasks(&base.queue, WORKERS, &base.context.clock, look)).await;
        }
        .boxed()
    }
}
