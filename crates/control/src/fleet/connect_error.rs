//! Why there is no connection to a cluster.

use portolan_runtime::CallError;

/// Why a cluster cannot be connected to.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The spec says nowhere how.
    #[error(
        "spec.credentials is not set: name the Secret that holds its kubeconfig, or set spec.type to Local"
    )]
    NoCredentials,
    /// The Secret could not be read.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The Secret has no such key.
    #[error("Secret {secret} has no key {key}: put the cluster's kubeconfig there")]
    NoKey {
        /// Namespace and name.
        secret: String,
        /// The key that is missing.
        key: String,
    },
    /// What the Secret holds is not a usable kubeconfig.
    #[error("Secret {secret}, key {key}: not a usable kubeconfig: {problem}")]
    Kubeconfig {
        /// Namespace and name.
        secret: String,
        /// The key.
        key: String,
        /// What is wrong; never the content itself.
        problem: String,
    },
}
