//! The hands of a destination.

use super::asked::AskedPods;
use super::budget::Budget;
use super::bundles::Bundles;
use super::cgroups::{Locks, PodOnNode, processes};
use super::destination_files::{DestinationFiles, remove_ended, remove_gone};
use super::destination_look::{Look, Running};
use super::error::{Looks, blocking};
use super::gate::{Gate, Unpacked};
use super::parts::Part;
use super::{DestinationTickets, Expected, NodeError, PodState, Pods, Settings, hostname, mark};
use crate::session::{DestinationHands, HandsError, SessionInfo};
use crate::transfer::{ExpectedSession, Session};
use portolan_core::migration::destination::DestinationSeen;
use portolan_node::freezer::{CgroupFiles, Kernel};
use portolan_node::store::Mark;
use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The hands of an agent at the destination.
pub struct DestinationNode<P, T, F = Kernel> {
    settings: Arc<Settings>,
    bundles: Arc<Bundles>,
    files: F,
    pods: Arc<P>,
    asked: AskedPods<P>,
    tickets: T,
    locks: Locks,
    looks: Looks,
    active: Actives,
}

/// By migration, each with its own lock: one that fills volumes or waits for its ticket holds up no other.
#[derive(Default)]
struct Actives(std::sync::Mutex<BTreeMap<String, Arc<Mutex<Active>>>>);

impl Actives {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Mutex<Active>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, migration: &str) -> Arc<Mutex<Active>> {
        Arc::clone(self.all().entry(migration.to_owned()).or_default())
    }

    fn known(&self, migration: &str) -> Option<Arc<Mutex<Active>>> {
        self.all().get(migration).cloned()
    }

    fn remove(&self, migration: &str) -> Option<Arc<Mutex<Active>>> {
        self.all().remove(migration)
    }
}

/// What goes on in the background for one migration. It ends when this is dropped.
#[derive(Default)]
struct Active {
    arrival: Option<(Arc<Session>, JoinHandle<()>)>,
    /// The UID of the pod that it is for, and what serves it.
    gate: Option<(String, JoinHandle<()>)>,
    unpacked: Unpacked,
    budget: Arc<Budget>,
    /// Something has ended that a look shows.
    changed: Arc<Notify>,
}

impl Active {
    fn gate_is_open(&self, uid: &str) -> bool {
        self.gate.as_ref().is_some_and(|(pod, gate)| pod == uid && !gate.is_finished())
    }

    fn close_gate(&mut self) {
        if let Some((_, gate)) = self.gate.take() {
            gate.abort();
        }
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        if let Some((_, task)) = &self.arrival {
            task.abort();
        }
        self.close_gate();
    }
}

impl<P: Pods, T: DestinationTickets> DestinationNode<P, T> {
    /// The hands on the kernel of this node.
    #[must_use]
    pub fn new(settings: Settings, pods: P, tickets: T) -> Self {
        Self::with_files(settings, pods, tickets, Kernel)
    }
}

impl<P: Pods, T: DestinationTickets, F: CgroupFiles + Clone + Send + Sync + 'static>
    DestinationNode<P, T, F>
{
    /// The same with other files of cgroups beneath.
    #[must_use]
    pub fn with_files(settings: Settings, pods: P, tickets: T, files: F) -> Self {
        let bundles = Arc::new(Bundles::new(&settings.bundles));
        let (settings, active) = (Arc::new(settings), Actives::default());
        let (locks, looks) = (Locks::default(), Looks::new());
        let pods = Arc::new(pods);
        let asked = AskedPods::new(Arc::clone(&pods), settings.fresh);
        Self { settings, bundles, files, pods, asked, tickets, locks, looks, active }
    }

    fn kept(&self, info: &SessionInfo) -> Result<DestinationFiles, NodeError> {
        DestinationFiles::new(&self.settings, info)
    }

    fn gate(&self, info: &SessionInfo, pod: &PodState, active: &Active) -> Result<Gate, NodeError> {
        Ok(Gate {
            unpacked: Arc::clone(&active.unpacked),
            budget: Arc::clone(&active.budget),
            pod: info.pod.clone(),
            uid: pod.uid.clone(),
            files: self.kept(info)?,
            settings: Arc::clone(&self.settings),
            bundles: Arc::clone(&self.bundles),
        })
    }

    async fn pod(&self, info: &SessionInfo) -> Result<PodState, NodeError> {
        let pod = self.asked.get(info).await?;
        pod.ok_or_else(|| NodeError::state(&info.pod, "it does not exist at the destination"))
    }

    /// The pod. Once it is being restored, what the node knows is enough to go on while the API server is away: it must not stand
    /// still for that after the commit.
    async fn known_pod(&self, info: &SessionInfo) -> Result<Option<PodState>, NodeError> {
        let error = match self.asked.get(info).await {
            Ok(pod) => return Ok(pod),
            Err(error) => error,
        };
        let files = self.kept(info)?;
        let pod = blocking(move || files.restored_pod()).await?;
        pod.map(Some).ok_or(NodeError::Caller(error))
    }

    async fn let_arrive(&self, info: &SessionInfo) -> Result<(), NodeError> {
        let pod = self.pod(info).await?;
        let active = self.active.of(&info.migration);
        let mut active = active.lock().await;
        if active.arrival.as_ref().is_some_and(|(_, task)| !task.is_finished()) {
            return Ok(());
        }
        // Closes the session that was admitted before.
        active.arrival = None;
        let files = self.kept(info)?;
        let (folder, free) = (files.parts(), self.settings.stays_free);
        let made = folder.clone();
        blocking(move || {
            files.store.check_room(0, free)?;
            mark::folder(&made)
        })
        .await?;
        let parts = Part::all(&pod.containers, &pod.volumes);
        let parts = parts.iter().map(Part::name).collect::<Result<Vec<_>, _>>()?;
        let Expected { receiver, peer, key, ticket, limits } = self.tickets.expected(info).await?;
        let deadline = Instant::now() + info.terms.timeout.0;
        let expected = ExpectedSession { peer, key, ticket, parts, folder, limits, deadline };
        let session = Arc::new(receiver.admit(expected).await?);
        let (gate, whole) = (self.gate(info, &pod, &active)?, Arc::clone(&session));
        let (containers, changed) = (pod.containers, Arc::clone(&active.changed));
        let task = tokio::spawn(async move {
            let pod = gate.pod.clone();
            let arrived = match whole.whole().await {
                Ok(_) => gate.arrived(containers).await,
                Err(error) => Err(error.into()),
            };
            report(&pod, arrived);
            changed.notify_one();
        });
        active.arrival = Some((session, task));
        Ok(())
    }

    async fn let_restore(&self, info: &SessionInfo) -> Result<(), NodeError> {
        let pod = self.pod(info).await?;
        let active = self.active.of(&info.migration);
        let mut active = active.lock().await;
        if active.gate_is_open(&pod.uid) {
            return Ok(());
        }
        active.close_gate();
        let (gate, uid) = (self.gate(info, &pod, &active)?, pod.uid.clone());
        let (begun, containers) = (gate.clone(), pod.containers.clone());
        blocking(move || begun.begin(&pod)).await?;
        let (name, changed) = (info.pod.clone(), Arc::clone(&active.changed));
        let task = tokio::spawn(async move {
            report(&name, gate.serve(containers).await);
            changed.notify_one();
        });
        active.gate = Some((uid, task));
        Ok(())
    }

    /// Ends what goes on in the background.
    async fn stop(&self, info: &SessionInfo, discard: bool) -> Result<(), NodeError> {
        let Some(active) = self.active.remove(&info.migration) else { return Ok(()) };
        let arrival = {
            let mut active = active.lock().await;
            active.close_gate();
            active.arrival.take()
        };
        drop(active);
        if let Some((session, task)) = arrival {
            task.abort();
            if discard {
                session.discard().await?;
            }
        }
        Ok(())
    }

    /// Does something with the containers of the pod that have a cgroup, alone.
    async fn with_containers(
        &self,
        info: &SessionInfo,
        uid: String,
        work: impl FnOnce(PodOnNode<'_>, &Running, &F) -> Result<(), NodeError> + Send + 'static,
    ) -> Result<(), NodeError> {
        let lock = self.locks.lock(&info.pod).await;
        let (settings, bundles, files) =
            (Arc::clone(&self.settings), Arc::clone(&self.bundles), self.files.clone());
        let pod = info.pod.clone();
        blocking(move || {
            let _lock = lock;
            let on_node = PodOnNode { pod: &pod, uid: &uid };
            work(on_node, &Running::of(on_node, &settings, &bundles)?, &files)
        })
        .await
    }

    async fn set_going(&self, info: &SessionInfo) -> Result<(), NodeError> {
        let files = self.kept(info)?;
        // From here on it may run, and never goes back to its checkpoint.
        blocking(move || Ok(files.store.mark(&files.migration, Mark::Live)?)).await?;
        let pod = self.known_pod(info).await?;
        let pod = pod.ok_or_else(|| NodeError::state(&info.pod, "it does not exist at the destination"))?;
        let (proc, hostname) = (self.settings.proc.clone(), pod.hostname);
        self.with_containers(info, pod.uid, move |pod, running, files| {
            let Some(cgroup) = &running.cgroup else { return Ok(()) };
            if let Some(hostname) = &hostname
                && let Err(error) = name_host(cgroup, running, &proc, hostname)
            {
                // It runs as well with the hostname of the pod that it comes from, and must not stand still for that.
                tracing::warn!(pod = %pod.pod, %error, "the restored pod keeps its former hostname");
            }
            let thawed = pod.freezer(cgroup, &running.ids.values().cloned().collect(), files)?.thaw();
            thawed.map_err(|source| NodeError::Freezer { pod: pod.pod.to_string(), what: "thawed", source })
        })
        .await
    }

    /// Fails once the pod may have run.
    fn check_not_live(&self, info: &SessionInfo) -> Result<DestinationFiles, NodeError> {
        let files = self.kept(info)?;
        if files.store.has(&files.migration, Mark::Live) {
            return Err(NodeError::state(
                &info.pod,
                "it may have run here, so neither it nor its checkpoint is removed",
            ));
        }
        Ok(files)
    }

    async fn discard_pod(&self, info: &SessionInfo) -> Result<(), NodeError> {
        let files = self.check_not_live(info)?;
        self.stop(info, false).await?;
        // A waiting container would hold up the deletion.
        blocking(move || Ok(files.store.mark(&files.migration, Mark::Cancel)?)).await?;
        let Some(pod) = self.pods.get(info).await? else { return Ok(()) };
        let (kept, containers) = (self.kept(info)?, pod.containers.clone());
        // A pod that is created later takes no checkpoint before its volumes are filled: a restore puts it back.
        blocking(move || {
            for container in &containers {
                kept.store.take(&kept.migration, container)?;
            }
            Ok(())
        })
        .await?;
        let deleted = self.pods.delete(info, &pod.uid).await;
        self.asked.forget(info);
        deleted?;
        self.with_containers(info, pod.uid, |pod, running, files| match &running.cgroup {
            Some(cgroup) => pod.kill(cgroup, &running.ids.values().cloned().collect(), files),
            None => Ok(()),
        })
        .await
    }
}

/// Gives the containers the hostname of their pod. They share it.
fn name_host(cgroup: &Path, running: &Running, proc: &Path, hostname: &str) -> Result<(), NodeError> {
    let mut found = BTreeSet::new();
    for id in running.ids.values() {
        processes(&cgroup.join(id), &mut found)?;
    }
    let Some(process) = found.first() else { return Ok(()) };
    hostname::set(proc, *process, hostname).map_err(NodeError::io("set the hostname in", proc))
}

fn report(pod: &crate::session::Pod, outcome: Result<(), NodeError>) {
    if let Err(error) = outcome {
        tracing::warn!(%pod, %error, "the checkpoint cannot be used yet");
    }
}

impl<P: Pods, T: DestinationTickets, F: CgroupFiles + Clone + Send + Sync + 'static> DestinationHands
    for DestinationNode<P, T, F>
{
    async fn check(&self, session: &SessionInfo) -> Result<(), HandsError> {
        self.pods.check(session).await
    }

    async fn look(&self, session: &SessionInfo) -> Result<DestinationSeen, HandsError> {
        let pod = self.known_pod(session).await?;
        let gate_open = match (self.active.known(&session.migration), &pod) {
            (Some(active), Some(pod)) => active.lock().await.gate_is_open(&pod.uid),
            _ => false,
        };
        let (settings, bundles, files) =
            (Arc::clone(&self.settings), Arc::clone(&self.bundles), self.files.clone());
        let (kept, name) = (self.kept(session)?, session.pod.clone());
        let seen = self.looks.at(&session.pod, move || {
            let (settings, bundles) = (&*settings, &*bundles);
            Look { pod: &name, files: &kept, settings, bundles, cgroups: &files, gate_open }
                .seen(pod.as_ref())
        });
        Ok(seen.await?)
    }

    async fn changed(&self, session: &SessionInfo) {
        // Without anything that goes on, nothing ends.
        let Some(active) = self.active.known(&session.migration) else { return pending().await };
        let changed = Arc::clone(&active.lock().await.changed);
        changed.notified().await;
    }

    async fn create_pod(&self, session: &SessionInfo) -> Result<(), HandsError> {
        let files = self.kept(session)?;
        // One that was deleted before is created once more.
        blocking(move || {
            files.store.unmark(&files.migration, Mark::Cancel)?;
            // From now on each look says that its containers are to wait.
            Ok(files.store.beat(&files.migration)?)
        })
        .await?;
        let created = self.pods.create(session).await;
        self.asked.forget(session);
        created
    }

    async fn receive(&self, session: &SessionInfo) -> Result<(), HandsError> {
        Ok(self.let_arrive(session).await?)
    }

    async fn remove_checkpoint(&self, session: &SessionInfo) -> Result<(), HandsError> {
        let files = self.check_not_live(session)?;
        self.stop(session, true).await?;
        Ok(blocking(move || files.remove()).await?)
    }

    async fn restore(&self, session: &SessionInfo) -> Result<(), HandsError> {
        Ok(self.let_restore(session).await?)
    }

    async fn thaw(&self, session: &SessionInfo) -> Result<(), HandsError> {
        Ok(self.set_going(session).await?)
    }

    async fn mark_committed(&self, session: &SessionInfo) -> Result<(), HandsError> {
        let pod = self.pod(session).await?;
        let marked = self.pods.mark_committed(session, &pod.uid).await;
        self.asked.forget(session);
        marked
    }

    async fn delete_pod(&self, session: &SessionInfo) -> Result<(), HandsError> {
        Ok(self.discard_pod(session).await?)
    }

    async fn remove_files(&self, session: &SessionInfo) -> Result<(), HandsError> {
        self.stop(session, true).await?;
        let (files, settings) = (self.kept(session)?, Arc::clone(&self.settings));
        let removed = blocking(move || {
            files.remove()?;
            if let Err(error) = remove_gone(&settings) {
                tracing::warn!(%error, "what is left of pods that are gone is removed later");
            }
            Ok(())
        });
        Ok(removed.await?)
    }

    async fn remove_ended(&self, kept: &BTreeSet<String>) -> Result<(), HandsError> {
        let (settings, kept) = (Arc::clone(&self.settings), kept.clone());
        Ok(blocking(move || remove_ended(&settings, &kept)).await?)
    }
}
