//! A cloud behind real Cluster API: control planes and machines that a management cluster asks for are nodes of the lab.
//!
//! [`ClusterApi::install`] starts the core controllers of Cluster API in a cluster of the lab, and beside them the lab's own
//! infrastructure, control plane and bootstrap provider, which looks at its objects all the time. A `LabControlPlane`
//! becomes a further cluster of the lab, a `LabMachine` a node of it with a kubelet and containerd of its own.

mod class;
mod grounds;
mod kinds;
mod manager;
mod pass;

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::Result;
use tokio::sync::oneshot;

use crate::cluster::Cluster;
use crate::lab::Lab;
use crate::parts::ClusterApiParts;
use crate::state::MachineSize;
use grounds::Grounds;
use pass::Provider;

pub use class::cluster_class;

/// Cluster API in a cluster of a lab. It works until this is dropped; what it has made goes with the lab at the latest.
pub struct ClusterApi<'lab> {
    management: Cluster,
    made: Arc<Mutex<Vec<Cluster>>>,
    /// Dropped, it has the provider end.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// It makes clusters in a lab that must still be there.
    lab: PhantomData<&'lab Lab>,
}

impl<'lab> ClusterApi<'lab> {
    /// Starts Cluster API in a cluster, with machines of these types.
    pub async fn install(
        lab: &'lab Lab,
        management: &Cluster,
        machine_types: BTreeMap<String, MachineSize>,
    ) -> Result<Self> {
        let parts =
            tokio::task::spawn_blocking(|| ClusterApiParts::ensure(&mut |step| eprintln!("lab: {step}")));
        manager::start(management, &parts.await??).await?;
        let made = Arc::<Mutex<Vec<Cluster>>>::default();
        let grounds = Grounds::new(lab.state(), made.clone());
        let version = format!("v{}", lab.state().kubernetes);
        let (stop, stopped) = oneshot::channel::<()>();
        // A runtime of its own, so that dropping this can wait for its end wherever that happens.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let asking = management.clone();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                let provide = async move {
                    match asking.client().await {
                        Ok(client) => {
                            let provider = Provider::new(client, grounds, machine_types, version);
                            Box::pin(provider.run()).await;
                        }
                        Err(error) => eprintln!("lab: the provider of clusters cannot work: {error:#}"),
                    }
                };
                tokio::select! {
                    () = provide => {}
                    _ = stopped => {}
                }
            });
        });
        let (stop, thread) = (Some(stop), Some(thread));
        Ok(Self { management: management.clone(), made, stop, thread, lab: PhantomData })
    }

    /// The clusters that exist now, each with a control plane and the nodes that were asked for.
    pub fn clusters(&self) -> Vec<Cluster> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The end of the log of Cluster API's controllers.
    pub fn log_tail(&self, lines: usize) -> String {
        manager::log(&self.management, lines)
    }
}

impl Drop for ClusterApi<'_> {
    fn drop(&mut self) {
        // The lab may be cleared away next: nothing must be made in it any more.
        drop(self.stop.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            eprintln!("lab: the provider of clusters has panicked");
        }
    }
}
