//! The parts of a cluster of real Kubernetes: built from Go modules and Debian packages, cached by version.
//!
//! [`Parts::ensure`] gives them, making those that are not in the cache. Everything lies below
//! `${XDG_CACHE_HOME:-$HOME/.cache}/portolan/parts`, each part in a directory whose name ends in a hash of all that it was
//! made from, so that a changed pin makes a new part and never touches one in use.

mod cache;
mod debootstrap;
mod definitions;
mod error;
mod go_mod;
mod go_module;
mod go_toolchain;
mod images;
mod kubernetes;
mod modules;
mod node_root;
mod on_demand;
mod pin;
mod preconditions;
mod process;
mod programs;
mod step;
mod version;

pub use error::{Missing, PartsError};
pub use kubernetes::pinned;
pub use node_root::packages;
pub use on_demand::{ClusterApiParts, custom_metrics_adapter, helm, metrics_server};
pub use pin::pin;
pub use preconditions::preconditions;
pub use step::Step;
pub use version::KubernetesVersion;

use std::path::PathBuf;

use cache::Cache;
pub(crate) use cache::user_cache;
use images::Images;
use modules::Modules;
use node_root::NodeRoot;
use programs::Programs;

/// The Kubernetes version of a lab for which none is asked.
pub const DEFAULT_KUBERNETES: &str = "1.36.3";

/// Where the parts lie.
#[derive(Debug, Clone)]
pub struct Parts {
    /// Directory of static programs: kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kube-proxy, kubectl,
    /// containerd, containerd-shim-runc-v2, ctr, coredns and kwok.
    pub bin: PathBuf,
    /// Debian root with runc, CRIU, etcd and the network tools: the lower directory of each node's overlay. Never written to.
    pub root: PathBuf,
    /// Directory of images to import into containerd, as OCI layouts: `pause.tar`, `busybox.tar` and `coredns.tar`, named
    /// [`PAUSE_IMAGE`], [`BUSYBOX_IMAGE`] and [`COREDNS_IMAGE`].
    pub images: PathBuf,
    /// Directory of kwok's configuration: each `.yaml` in it is one `--config` of kwok.
    pub kwok: PathBuf,
    /// The version of Kubernetes, `major.minor.patch`.
    pub kubernetes: String,
}

/// Name of the image in `pause.tar`, the sandbox container of every pod.
pub const PAUSE_IMAGE: &str = "portolan.test/pause:1";
/// Name of the image in `busybox.tar`.
pub const BUSYBOX_IMAGE: &str = "portolan.test/busybox:1";
/// Name of the image in `coredns.tar`.
pub const COREDNS_IMAGE: &str = "portolan.test/coredns:1";

impl Parts {
    /// Gives the parts for this version of Kubernetes, making what is not in the cache. Only one process makes parts at a
    /// time; others wait for it.
    pub fn ensure(kubernetes: &str, report: &mut dyn FnMut(Step)) -> Result<Parts, PartsError> {
        let modules = Modules::read(kubernetes.parse()?)?;
        let cache = Cache::of_user();
        let missing = preconditions::to_make(&cache, &modules);
        if !missing.is_empty() {
            return Err(PartsError::Missing { missing });
        }

        let root = cache.ensure(&NodeRoot::from_environment(), report)?;
        let programs = modules.all().into_iter().map(|module| cache.ensure(module, report));
        let programs = programs.collect::<Result<Vec<PathBuf>, PartsError>>()?;
        let bin = cache.ensure(&Programs::new(modules.kubernetes.version(), programs), report)?;
        let images = cache.ensure(&Images::new(&root, &cache.path(&modules.coredns)), report)?;
        Ok(Parts {
            bin,
            root,
            images,
            kwok: go_module::directory().join("kwok/stages"),
            kubernetes: modules.kubernetes.version().to_owned(),
        })
    }
}
