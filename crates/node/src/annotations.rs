//! Annotations of containers, as they stand in their bundles.

/// Names the migration whose checkpoint the containers of a pod are restored from.
pub const RESTORE: &str = "portolan.dev/restore";

/// The name of the container in its pod.
pub const CONTAINER_NAME: &str = "io.kubernetes.cri.container-name";

/// Whether it is a container or the sandbox of its pod.
pub const CONTAINER_TYPE: &str = "io.kubernetes.cri.container-type";

/// The UID of the pod.
pub const SANDBOX_UID: &str = "io.kubernetes.cri.sandbox-uid";
