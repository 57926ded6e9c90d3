//! The names by which Portolan knows what is its own.

/// On namespaces of a tenant, on what is made in them, on its rights, and on the Lease of its consumer: the ForeignCluster
/// that stands for it.
pub const TENANT_LABEL: &str = "portolan.dev/tenant";

/// The label of Kubernetes that says what pods of a namespace may do.
pub(crate) const POD_SECURITY_LABEL: &str = "pod-security.kubernetes.io/enforce";

/// On namespaces whose level of Pod Security Portolan chose: that level.
pub(crate) const POD_SECURITY_SET: &str = "portolan.dev/pod-security";

/// On namespaces of a tenant: the PriorityClasses that its pods may have, separated by commas. Written from the SharingClass.
pub const PRIORITY_CLASSES_ANNOTATION: &str = "portolan.dev/tenant-priority-classes";

/// On namespaces of a tenant: the storage classes that its pods may name, separated by commas. Written with the offer.
pub const STORAGE_CLASSES_ANNOTATION: &str = "portolan.dev/tenant-storage-classes";

/// On namespaces of a tenant: the service accounts that its pods may use beside `default`, separated by commas. Written by
/// administrators of the provider.
pub const SERVICE_ACCOUNTS_ANNOTATION: &str = "portolan.dev/tenant-service-accounts";

/// The ConfigMap in Portolan's namespace with the record of `portolan install`.
pub const INSTALL_RECORD: &str = "portolan-install";

/// On what Portolan makes for itself in a cluster.
pub const PART_OF_LABEL: &str = "app.kubernetes.io/part-of";

/// The value of [`PART_OF_LABEL`].
pub const PART_OF: &str = "portolan";

/// The field manager of everything that Portolan writes.
pub const FIELD_MANAGER: &str = "portolan";

/// The field manager of the capacity in a ClusterReport, beside what is measured there.
pub(crate) const CAPACITY_MANAGER: &str = "portolan-capacity";

/// On objects and pods in members: the identity of the workload in the hub that they belong to, which is its uid unless
/// [`WORKLOAD_ID_ANNOTATION`] says otherwise.
pub const WORKLOAD_LABEL: &str = "portolan.dev/workload";

/// On workloads in the hub: the identity that their copies and pods in members know them by, if it is not their uid.
pub const WORKLOAD_ID_ANNOTATION: &str = "portolan.dev/workload-id";

/// On MultiClusterDeployments in the hub: what they take over before the first decision, [`ADOPT_UNMANAGED`] or `hub/ID`.
pub const ADOPT_ANNOTATION: &str = "portolan.dev/adopt";

/// On ForeignClusters: whose Deployments workloads of the hub may take over there, as [`ADOPT_ANNOTATION`] names them,
/// separated by commas. Nobody's without it.
pub const ALLOW_ADOPTION_ANNOTATION: &str = "portolan.dev/allow-adoption";

/// The value of [`ADOPT_ANNOTATION`] for Deployments that no hub placed.
pub const ADOPT_UNMANAGED: &str = "unmanaged";

/// On MultiClusterDeployments in the hub: a digest of the template that they had when they took over Deployments that no hub
/// placed. As long as it is their template, the pods get no labels of ours, so that they are not restarted.
pub const ADOPTED_TEMPLATE_ANNOTATION: &str = "portolan.dev/adopted-template";

/// On objects in members: the identity of the hub that placed them, so that several hubs share a member in peace.
pub const HUB_LABEL: &str = "portolan.dev/hub";

/// On objects in members: namespace and name of the workload in the hub that they belong to.
pub const OWNER_ANNOTATION: &str = "portolan.dev/owner";

/// On objects in members: a digest of what was applied.
pub const DIGEST_ANNOTATION: &str = "portolan.dev/digest";

/// On objects in members: the epoch of the leader that last applied them.
pub const EPOCH_ANNOTATION: &str = "portolan.dev/epoch";

/// On ConfigMaps and Secrets in members: uid and version of what they were carried from.
pub const SOURCE_ANNOTATION: &str = "portolan.dev/source";

/// On ConfigMaps and Secrets in members: the uids of the workloads in the hub that need them there, `*` if they are many.
pub const NEEDED_BY_ANNOTATION: &str = "portolan.dev/needed-by";

/// On ConfigMaps and Secrets in the hub: `"false"` keeps them there, whoever refers to them.
pub const PROPAGATE_ANNOTATION: &str = "portolan.dev/propagate";

/// On Secrets in the hub: the ForeignCluster that the credential belongs to.
pub const CLUSTER_LABEL: &str = "portolan.dev/foreign-cluster";

/// On workloads in the hub: their copies in members are removed before they are.
pub const FINALIZER: &str = "portolan.dev/placement";

/// On namespaces in members: whether workloads may be placed there.
pub const OPT_IN_LABEL: &str = "portolan.dev/placement";

/// The value of [`OPT_IN_LABEL`] that opens a namespace.
pub const OPT_IN: &str = "allowed";

/// The taint of a ForeignCluster that is about to leave the fleet: what it holds is moved away.
pub const LEAVING_TAINT: &str = "portolan.dev/leaving";

/// On Jobs in members: which Job for the same part of the work it is.
pub const ATTEMPT_ANNOTATION: &str = "portolan.dev/attempt";

/// On Jobs in members: how many completions of the part were finished before it was made.
pub const FINISHED_BEFORE_ANNOTATION: &str = "portolan.dev/finished-before";

/// On Jobs in members: a digest of the pod template as it was written in the hub.
pub const TEMPLATE_ANNOTATION: &str = "portolan.dev/template";

/// On Services in members: whoever measures their traffic tells it in the annotations below.
pub const TRAFFIC_LABEL: &str = "portolan.dev/traffic";

/// On Services in members: how many requests a second clients of that cluster send to the service, such as `12.5`.
pub const TRAFFIC_ANNOTATION: &str = "portolan.dev/requests-per-second";

/// On Services in members: when the traffic was measured, as RFC 3339 writes it.
pub const TRAFFIC_TIME_ANNOTATION: &str = "portolan.dev/traffic-measured-at";

/// On the Secret with a member's kubeconfig: `"true"` allows http, and certificates that are not checked.
pub const ALLOW_INSECURE_ANNOTATION: &str = "portolan.dev/allow-insecure";

/// On ForeignClusters: they stay until nothing of the fleet's workloads is left in their members.
pub const MEMBERSHIP_FINALIZER: &str = "portolan.dev/membership";

/// On ForeignClusters: `"true"` says that a cluster which does not answer is lost, however many others are silent too.
pub const CONFIRMED_LOST_ANNOTATION: &str = "portolan.dev/confirmed-lost";

/// On ForeignClusters: what becomes of copies in the member when it is deleted.
pub const ON_DELETE_ANNOTATION: &str = "portolan.dev/on-delete";

/// The value of [`ON_DELETE_ANNOTATION`] that leaves copies running in the member.
pub const ORPHAN: &str = "orphan";

/// On Clusters in Cluster API and on ForeignClusters: the uid of the CloudProvisioner that they were created for.
pub const PROVISIONER_LABEL: &str = "portolan.dev/cloud-provisioner";

/// On Clusters in Cluster API: which cluster of their CloudProvisioner they are, counted from 1.
pub const CLUSTER_NUMBER_LABEL: &str = "portolan.dev/cloud-cluster-number";

/// On Clusters in Cluster API that are made from templates: all parts that they refer to were created.
pub const PARTS_ANNOTATION: &str = "portolan.dev/cloud-cluster-parts";

/// On the MachineDeployments of a Cluster: the machine type of the CloudProvisioner that their nodes are of.
pub const MACHINE_TYPE_ANNOTATION: &str = "portolan.dev/machine-type";

/// On what an invitation is made of: the name of the Invitation.
pub const INVITATION_LABEL: &str = "portolan.dev/invitation";

/// On CertificateSigningRequests: the invitation by which a consumer came.
pub const REQUEST_LABEL: &str = "portolan.dev/request-of";

/// On ForeignClusters that have a tenant, and on what a tenant is made of: the user that it is. The names of both can come back
/// for another one.
pub const TENANT_USER_ANNOTATION: &str = "portolan.dev/tenant-user";

/// On ForeignClusters that have a tenant: `token` if it signs in by the token of a service account, since nobody in this
/// cluster signs certificates for clients.
pub const TENANT_LOGIN_ANNOTATION: &str = "portolan.dev/tenant-login";

/// On ForeignClusters that have a tenant: they stay until its rights are removed.
pub const TENANCY_FINALIZER: &str = "portolan.dev/tenancy";

/// On CloudProvisioners: they stay until their cluster in the cloud is gone.
pub const PROVISIONER_FINALIZER: &str = "portolan.dev/cloud-provisioner";
