//! The hands of a source.

use super::asked::AskedPods;
use super::bundles::Bundles;
use super::cgroups::Locks;
use super::error::{Looks, blocking};
use super::source_files::{self, SourceFiles};
use super::source_node::Node;
use super::write::write_checkpoint;
use super::{NodeError, Pods, Route, Settings, SourceTickets};
use crate::session::{HandsError, Pod, SessionInfo, SourceHands, SourceLook};
use crate::transfer::{OutgoingPart, Progress, SendOptions, Sender, Source};
use portolan_node::Name;
use portolan_node::freezer::{CgroupFiles, Kernel};
use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;
use tokio::time::Instant;

/// The hands of an agent at the source.
pub struct SourceNode<P, T, F = Kernel> {
    node: Node<F>,
    pods: Arc<P>,
    asked: AskedPods<P>,
    tickets: T,
    locks: Locks,
    looks: Looks,
}

impl<P: Pods, T: SourceTickets> SourceNode<P, T> {
    /// The hands on the kernel of this node.
    #[must_use]
    pub fn new(settings: Settings, pods: P, tickets: T) -> Self {
        Self::with_files(settings, pods, tickets, Kernel)
    }
}

impl<P: Pods, T: SourceTickets, F: CgroupFiles + Clone + Send + Sync + 'static> SourceNode<P, T, F> {
    /// The same with other files of cgroups beneath.
    #[must_use]
    pub fn with_files(settings: Settings, pods: P, tickets: T, files: F) -> Self {
        let bundles = Arc::new(Bundles::new(&settings.bundles));
        let pods = Arc::new(pods);
        let asked = AskedPods::new(Arc::clone(&pods), settings.fresh);
        let node = Node { settings: Arc::new(settings), bundles, files };
        Self { node, pods, asked, tickets, locks: Locks::default(), looks: Looks::new() }
    }

    /// Changes what stands still of a pod, on a thread that keeps the pod's lock even if nobody waits for it.
    async fn locked(
        &self,
        info: &SessionInfo,
        work: impl FnOnce(&Node<F>, &SessionInfo) -> Result<(), NodeError> + Send + 'static,
    ) -> Result<(), HandsError> {
        let lock = self.locks.lock(&info.pod).await;
        let (node, info) = (self.node.clone(), info.clone());
        Ok(blocking(move || {
            let _lock = lock;
            work(&node, &info)
        })
        .await?)
    }

    async fn send_parts(&self, info: &SessionInfo) -> Result<(), NodeError> {
        let files = SourceFiles::new(&self.node.settings, info)?;
        let pod = info.pod.clone();
        let parts = blocking(move || {
            let complete = files.complete()?;
            let complete =
                complete.ok_or_else(|| NodeError::state(&pod, "there is no complete checkpoint to send"))?;
            let mut parts = Vec::new();
            for part in &complete.parts {
                let name = Name::new("part", part)?;
                let path = files.part(&name);
                let source: Arc<dyn Source> =
                    Arc::new(File::open(&path).map_err(NodeError::io("open", &path))?);
                parts.push(OutgoingPart { name, source });
            }
            Ok(parts)
        })
        .await?;
        let Route { credentials, address, key, ticket } = self.tickets.route(info).await?;
        let options = SendOptions::until(Instant::now() + info.terms.timeout.0);
        let sender = Sender::new(&credentials, address, options)?;
        sender.send(&key, &ticket, parts, &Progress::default()).await?;
        Ok(())
    }
}

impl<P: Pods, T: SourceTickets, F: CgroupFiles + Clone + Send + Sync + 'static> SourceHands
    for SourceNode<P, T, F>
{
    async fn check(&self, session: &SessionInfo) -> Result<(), HandsError> {
        self.pods.check(session).await
    }

    async fn baseline(&self, pod: &Pod) -> Result<String, HandsError> {
        let (node, name) = (self.node.clone(), pod.clone());
        Ok(self.looks.at(pod, move || node.baseline(&name)).await?)
    }

    async fn look(&self, session: &SessionInfo) -> Result<SourceLook, HandsError> {
        let (node, info) = (self.node.clone(), session.clone());
        let look = self.looks.at(&session.pod, move || node.look(&info));
        let (pod, look) = tokio::join!(self.asked.get(session), look);
        let mut look = look?;
        // Another pod of that name, or none: nobody starts containers of this one anew.
        look.terminating = match pod {
            Ok(pod) => pod.is_none_or(|pod| pod.terminating || pod.uid != session.pod.uid()),
            // Not known: what a kubelet that works alone starts afresh has to be frozen all the same.
            Err(_) => false,
        };
        Ok(look)
    }

    async fn freeze(&self, session: &SessionInfo) -> Result<(), HandsError> {
        self.locked(session, |node, info| node.freeze(info)).await
    }

    async fn write_checkpoint(&self, session: &SessionInfo) -> Result<(), HandsError> {
        Ok(write_checkpoint(&self.node.settings, session).await?)
    }

    async fn send(&self, session: &SessionInfo) -> Result<(), HandsError> {
        Ok(self.send_parts(session).await?)
    }

    async fn mark_for_deletion(&self, session: &SessionInfo) -> Result<(), HandsError> {
        let deleted = self.pods.delete(session, session.pod.uid()).await;
        self.asked.forget(session);
        deleted
    }

    async fn kill(&self, session: &SessionInfo) -> Result<(), HandsError> {
        self.locked(session, |node, info| node.kill(info)).await
    }

    async fn thaw(&self, session: &SessionInfo) -> Result<(), HandsError> {
        self.locked(session, |node, info| node.thaw(info)).await
    }

    async fn remove_files(&self, session: &SessionInfo) -> Result<(), HandsError> {
        let files = SourceFiles::new(&self.node.settings, session)?;
        Ok(blocking(move || files.end()).await?)
    }

    async fn remove_ended(&self, kept: &BTreeSet<String>) -> Result<(), HandsError> {
        let (settings, kept) = (Arc::clone(&self.node.settings), kept.clone());
        Ok(blocking(move || source_files::remove_ended(&settings, &kept)).await?)
    }
}
