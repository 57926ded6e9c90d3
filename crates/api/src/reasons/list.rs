//! The list of all reasons.

use super::Place::{self, Event, Pending, Placement, Provisioner, Review, Staying};
use crate::condition_type::ConditionType::{
    self, AbleToScale, Accepted, Authenticated, Available, Complete, DependenciesReady, Drifted, Failed,
    IncomingPeering, Leaving, OfferAccepted, Orphaned, OutgoingPeering, Placed, Progressing, Provisioned,
    Reachable, Ready, ScalingActive, ScalingLimited, Sharing, SilenceDoubted, Suspended, ToCloud,
    Unreachable,
};

const fn on(type_: ConditionType) -> Place {
    Place::Condition(type_)
}

/// One row a reason: its name, where it is seen, what it means and what helps.
macro_rules! reasons {
    ($($name:ident, $places:expr, $meaning:literal, $help:literal;)+) => {
        /// Why a condition, a placement, a refusal, an event or a review is as it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $(#[doc = $meaning] #[doc = ""] #[doc = $help] $name,)+
        }

        impl Reason {
            pub(super) const ALL: &[Self] = &[$(Self::$name,)+];

            /// The name as it stands in a status.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }

            /// Where the reason is seen.
            pub const fn places(self) -> &'static [Place] {
                match self { $(Self::$name => const { &$places },)+ }
            }

            /// What the reason means: a sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)+ }
            }

            /// What helps: a sentence, or nothing where there is nothing to mend.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$name => $help,)+ }
            }
        }
    };
}

reasons! {
    Active, [on(Ready)],
        "The rescheduler looks at workloads that are away from the clusters they prefer.",
        "";
    Adopted, [Event],
        "Copies that ran already were taken over with their pods.",
        "";
    AllAtHome, [on(Progressing)],
        "No workload that the rescheduler selects is away from the clusters it prefers.",
        "";
    AllClustersReachable, [on(Unreachable)],
        "Every cluster that holds a part of the workload is reachable.",
        "";
    AmbiguousTarget, [on(Ready), on(ScalingActive), Event],
        "Several autoscalers name the same workload: none of them scales it.",
        "Delete all but one; the message has their names.";
    Answered, [on(Ready)],
        "The PlacementReview has its answer.",
        "";
    Applying, [Placement],
        "The copy is being written in the cluster.",
        "";
    AwaitingAcceptance, [on(Ready)],
        "A cluster has used the invitation, and waits to be accepted.",
        "`portolan accept` accepts it; the message names the cluster.";
    AwaitingConsumer, [on(Ready), on(IncomingPeering)],
        "The consumer has not fetched its credential, or has not used it yet.",
        "Give the line that `portolan invite` printed to `portolan peer` in the other cluster.";
    AwaitingMember, [on(Ready)],
        "A deletion waits for a cluster that cannot be reached.",
        "Reconnect the cluster, or delete its ForeignCluster.";
    AwaitingMembers, [on(Ready), on(Placed), Review],
        "Copies may run in clusters that cannot be asked: nothing is placed until they answer.",
        "Reconnect the clusters, or give one up: `kubectl annotate foreigncluster NAME portolan.dev/confirmed-lost=true`.";
    BudgetsUnknown, [Staying],
        "The PodDisruptionBudgets of the cluster cannot be listed, so nothing is taken away there.",
        "Run `portolan peer` again, which grants the right.";
    CacheNotSynced, [on(Ready), on(DependenciesReady), Pending],
        "The objects of the hub or of the cluster are not all listed yet.",
        "Try a review again after a moment.";
    CertificateIssued, [on(Authenticated), Event],
        "The provider has signed the certificate that this cluster is known by there.",
        "";
    CertificateRenewalFailed, [on(Ready), on(Authenticated), on(OutgoingPeering), Event],
        "The certificate that this cluster is known by at the provider is not renewed.",
        "The message says why. When the certificate has ended, a new invitation is needed.";
    ClassNotFound, [on(Sharing), Event],
        "The SharingClass that the ForeignCluster names does not exist: the last offer stands.",
        "Create the SharingClass, or name another one: `portolan share CLUSTER --class NAME`.";
    CloudClusterNameTaken, [on(Ready)],
        "Another ForeignCluster or CloudProvisioner has the name of the cloud cluster; none is requested.",
        "Choose another `spec.cloudClusterName`, or remove the other one.";
    CloudClusterNotOwned, [on(Ready)],
        "The Cluster of Cluster API does not carry the labels of the CloudProvisioner any more; nothing is deleted or created.",
        "Set its labels again that the message names, or delete the Cluster.";
    CloudRequestFailed, [on(Ready), Event],
        "A request to Cluster API, or to the cloud cluster that is to join, failed.",
        "The message has the request and the answer; it is tried again.";
    ClusterApiNotFound, [on(Ready)],
        "The hub does not serve the version of Cluster API that CloudProvisioners need.",
        "Install or update Cluster API in the hub.";
    ClusterDeleted, [Event],
        "A cloud cluster is gone.",
        "";
    ClusterIdentityMismatch, [on(Ready), on(Reachable), Event],
        "Another cluster answers at this address.",
        "Correct the credential, or delete the ForeignCluster and run `portolan peer` for the other cluster.";
    ClusterJoined, [Event],
        "A cloud cluster has become a member.",
        "";
    ClusterNotFound, [Pending, Review],
        "No cluster has the name that is in `locations`.",
        "Correct the name: `portolan get clusters`.";
    ClusterReachable, [on(Ready), on(Reachable), on(SilenceDoubted)],
        "The API server of the cluster answers.",
        "";
    ClusterRequested, [Event],
        "A cloud cluster was requested of Cluster API.",
        "";
    Complete, [on(Ready), on(Complete), on(Failed), Event],
        "All completions of the job have succeeded.",
        "";
    ConnectionFailed, [on(Ready), on(Reachable), Event],
        "The controller cannot connect to the cluster.",
        "The condition `Ready` of its ForeignCluster has the error; `portolan peer` creates a new credential.";
    ConsumerLeft, [on(Ready), Event],
        "The consumer has ended the peering: its rights and its namespace are removed.",
        "";
    ConsumerNotSeen, [on(Ready), on(IncomingPeering)],
        "The Lease by which the consumer says that it is there does not exist any more.",
        "Nothing, for five minutes: a consumer that has not left creates it again. If it does not, `portolan status` there says why.";
    CostLimitReached, [Provisioner],
        "A further node would cost more than the CloudProvisioner may spend.",
        "Raise `spec.maxCostPerHour`.";
    CredentialNotFound, [on(Ready), on(Authenticated), on(OutgoingPeering)],
        "The Secret with the certificate by which this cluster is known at the provider does not exist.",
        "`portolan unpeer` here and in the provider, then peer with a new invitation.";
    CredentialRefused, [on(Ready), on(Reachable), Event],
        "The API server of the cluster answers and refuses the credential of the hub: what runs there goes on.",
        "Run `portolan peer` again, which grants a new credential.";
    DeadlineExceeded, [on(Failed)],
        "The job ran longer than `activeDeadlineSeconds`.",
        "A longer deadline, in a new MultiClusterJob.";
    DeletedElsewhere, [Provisioner],
        "The cluster is removed since its Cluster was deleted in Cluster API.",
        "";
    DeletionFailed, [on(Ready)],
        "A deletion waits for a cluster that does not delete its copy.",
        "The message has the error of the cluster.";
    DependenciesPropagated, [on(DependenciesReady)],
        "Every ConfigMap and Secret that the workload refers to is in its clusters, or is none that follows it.",
        "";
    DependenciesUnknown, [Placement],
        "Whether the ConfigMaps and Secrets of the workload exist in the cluster is not known.",
        "The message has the error.";
    DependencyNotFound, [on(DependenciesReady), Review, Event],
        "A ConfigMap or Secret that the workload refers to does not exist in the hub.",
        "Create it in the hub.";
    DependencyRefused, [Placement],
        "The cluster refuses a ConfigMap or Secret of the workload.",
        "The message has the error of the cluster.";
    Deprovisioning, [on(Ready), on(Provisioned), on(Progressing), Event],
        "The cloud cluster is being removed.",
        "";
    DeprovisioningCalledOff, [Event],
        "A cloud cluster that was to be removed is needed again.",
        "";
    DesiredWithinRange, [on(ScalingLimited)],
        "The replicas that the metrics ask for are within the bounds.",
        "";
    DisruptionBudget, [Staying],
        "A PodDisruptionBudget lets no pod of the workload go.",
        "A budget that allows a disruption, or more ready pods.";
    DriftCorrected, [Event],
        "A change of a copy in a cluster was undone.",
        "`driftPolicy: Report` keeps such changes.";
    Drifted, [on(Drifted), Placement, Event],
        "A copy differs from what was placed, and `driftPolicy: Report` leaves it so.",
        "Undo the change in the cluster, or set `driftPolicy: Correct`.";
    DryRun, [on(Progressing), Staying],
        "`spec.dryRun` is true: the workload would come home, and is not moved.",
        "`spec.dryRun: false`.";
    Evicted, [Pending, Placement],
        "A `NoExecute` taint of the cluster is not tolerated.",
        "`clusterTolerations`, or remove the taint.";
    Failed, [on(Ready), on(Progressing), on(Complete), on(Failed), Event],
        "A cluster refuses its copy, or the job has failed.",
        "The message has the cluster and its error.";
    FailedGetContainerResourceMetric, [on(Ready), on(ScalingActive), Event],
        "The use of a resource by a container is not known: replicas do not become fewer.",
        "The message has the error.";
    FailedGetExternalMetric, [on(Ready), on(ScalingActive), Event],
        "The external metric is not known: replicas do not become fewer.",
        "The message has the error.";
    FailedGetObjectMetric, [on(Ready), on(ScalingActive), Event],
        "The metric of the object is not known: replicas do not become fewer.",
        "The message has the error.";
    FailedGetPodsMetric, [on(Ready), on(ScalingActive), Event],
        "The custom metric of the pods is not known: replicas do not become fewer.",
        "The message has the error.";
    FailedGetResourceMetric, [on(Ready), on(ScalingActive), Event],
        "The use of a resource by the pods is not known: replicas do not become fewer.",
        "The message has the error.";
    FailedGetScale, [on(Ready), on(AbleToScale), Event],
        "The workload of the autoscaler cannot be read.",
        "Correct `scaleTargetRef`; the message has the error.";
    FailedInAllClusters, [on(Failed)],
        "The Job failed in every cluster that may run it.",
        "The messages of the placements have the errors.";
    FailedUpdateScale, [on(Ready), on(AbleToScale), Event],
        "The replicas of the workload could not be changed.",
        "The message has the error.";
    Finished, [Placement],
        "The Job is no longer in the cluster; its completions stay counted.",
        "";
    Forbidden, [Review],
        "The hub or a cluster does not permit the request.",
        "The message names the missing right.";
    ForeignClusterNotOwned, [on(Ready)],
        "The ForeignCluster of the cloud cluster does not belong to the CloudProvisioner any more; nothing is deleted.",
        "Set its label `portolan.dev/cloud-provisioner` to the uid of the CloudProvisioner again, or delete it.";
    HomeBusy, [Staying],
        "Another workload is about to use the room in the preferred clusters.",
        "";
    HubRequestFailed, [on(Ready)],
        "The review was not answered: a request to the hub failed.",
        "Try again; the message has the error.";
    IdentityTaken, [Event],
        "The annotation `portolan.dev/workload-id` names the identity of another object, or none: it was removed.",
        "";
    Immutable, [Placement, Review],
        "A field of the copy cannot be changed as asked.",
        "Delete the copy in the cluster: it is created again.";
    InForce, [on(Ready)],
        "The SharingClass holds for the clusters that name it, or that name none.",
        "";
    InSync, [on(Drifted)],
        "Every copy is as it was placed.",
        "";
    Incomplete, [on(Placed)],
        "Not every cluster that runs the pods has the Service.",
        "The message names the clusters.";
    IndexesAssigned, [Pending],
        "The cluster already runs other indexes of the job.",
        "";
    IndexesFailed, [on(Failed)],
        "Indexes of the job have failed for good.",
        "The message names the indexes.";
    IndexesLost, [on(Failed)],
        "It is not known which indexes of the job have succeeded.",
        "Create the job again.";
    Invalid, [Review, Event],
        "The manifest or the object is not valid; nothing is done about it.",
        "The message names the field.";
    InvalidAdoption, [on(Ready), on(Placed), Review],
        "The annotation `portolan.dev/adopt` cannot be read.",
        "Write `hub/ID` or `unmanaged`: `portolan adopt --help`.";
    InvalidSchedule, [on(Ready), Event],
        "A schedule of the autoscaler cannot be read and does not hold.",
        "Correct its `start`, `end` or `timeZone`.";
    InvalidSharing, [on(Sharing), Event],
        "What is shared with the cluster cannot be read, or names what no quota bounds: the last offer stands.",
        "The message names the field.";
    InvalidSpec, [on(Ready)],
        "A field of the spec cannot be read.",
        "Mend the field that the message names.";
    InvalidTemplate, [on(Ready), on(Placed), Review, Event],
        "The pod template is refused.",
        "The message names the field.";
    InvitationExpired, [on(Ready)],
        "The invitation was not used in time.",
        "Make another one by `portolan invite`.";
    InvitationPending, [on(Ready)],
        "No cluster has used the invitation yet.",
        "Give the line that `portolan invite` printed to `portolan peer` in the other cluster.";
    InvitationRefused, [on(Ready), Event],
        "What was asked for by the invitation is refused.",
        "The message names the rule that was broken. Make another invitation by `portolan invite`.";
    InvitationUsed, [on(Ready)],
        "A cluster has peered by the invitation, which is of no use any more.",
        "";
    JobFailed, [on(Failed), Pending, Placement],
        "The Job failed in the cluster.",
        "The message has the error of the Job.";
    JobRunsToEnd, [Staying],
        "A job runs to its end in the cluster where it was placed: it is not moved.",
        "";
    Joined, [Event],
        "The cluster answered for the first time.",
        "";
    LatencyExceeded, [Pending],
        "The cluster is farther than `maxLatency`.",
        "A larger `maxLatency`, or `spec.latencies` of its ForeignCluster.";
    LatencyUnknown, [Pending],
        "The round-trip time between the cluster and `maxLatency.from` is not known.",
        "`spec.latencies` of its ForeignCluster.";
    ListFailed, [on(Ready), Pending, Event],
        "The cluster answers, but its objects cannot be listed.",
        "The condition `Ready` of its ForeignCluster names the resource and the error.";
    ManyMembersSilent, [on(SilenceDoubted)],
        "So many members are silent at the same time that the hub is probably cut off itself.",
        "Mend the network of the hub, or confirm a loss: `kubectl annotate foreigncluster NAME portolan.dev/confirmed-lost=true`.";
    MaxConcurrentMoves, [Staying],
        "As many workloads are being moved as `spec.maxConcurrentMoves` allows.",
        "A larger `maxConcurrentMoves`.";
    Measuring, [on(Ready)],
        "The cluster measures the round-trip time to the other members, and reports it to the hub.",
        "";
    MemberError, [Placement],
        "The cluster failed several requests in a row; it is tried again.",
        "The message has the error.";
    MinimumReplicasAvailable, [on(Available)],
        "The required minimum of replicas is available.",
        "";
    MinimumReplicasUnavailable, [on(Available)],
        "Fewer replicas than the required minimum are available.",
        "`portolan status` shows the replicas per cluster.";
    MinimumStay, [Staying],
        "The workload has not been away for as long as `spec.minimumStay`.",
        "A smaller `minimumStay`.";
    MoveDone, [Event],
        "Replicas have come home.",
        "";
    MoveFailed, [Staying, Event],
        "The last move was given up; the replicas stay where they were.",
        "`portolan explain` of the workload; it is tried again after `spec.minimumStay`.";
    MoveStarted, [Event],
        "Replicas start in the clusters that they come home to; those that they replace still run.",
        "";
    Moving, [on(Progressing)],
        "Workloads are being moved to the clusters that they prefer.",
        "";
    NameTaken, [Pending, Placement, Review],
        "An object of that name exists in the cluster and is not Portolan's; it is left alone.",
        "Rename one of the two, or delete the object in the cluster.";
    NamespaceClosed, [Pending, Placement],
        "The namespace of the cluster is not open to the hub.",
        "`portolan peer --remote-context CONTEXT --namespace NAME`.";
    NamespaceMismatch, [Review],
        "The manifest names another namespace than the review.",
        "Create the review in the namespace of the manifest.";
    NamespaceNotFound, [Pending, Placement, Review],
        "The cluster has no such namespace.",
        "`portolan peer --remote-context CONTEXT --namespace NAME`.";
    NamespaceTaken, [on(Sharing)],
        "A namespace that is to be open to the tenant belongs to another tenant.",
        "Take it out of `spec.incoming.namespaces` of one of the two ForeignClusters, which the message names.";
    NoAlternative, [Placement],
        "The workload no longer asks for this cluster; its replicas stay because no other cluster takes them.",
        "Room in a cluster that the workload asks for.";
    NoEndpoints, [on(Ready), Placement],
        "No pod that the Service selects is ready.",
        "`portolan status` of the workload that runs the pods.";
    NoMachineType, [Provisioner],
        "No machine type holds such a pod.",
        "Add a larger machine type to `spec.machineTypes`.";
    NoMatchingWorkload, [on(Ready), on(Placed), Placement],
        "No workload has the labels of the selector.",
        "The labels of `spec.selector`.";
    NoOrphans, [on(Orphaned)],
        "Every copy in the cluster has its object in the hub.",
        "";
    NoRoom, [Pending, Placement, Staying],
        "No node has enough free CPU, memory or another resource for one more pod.",
        "Smaller requests, more nodes, `enableSubstitution` or `enableBursting`.";
    NoRoomAnywhere, [on(ToCloud)],
        "A cloud cluster is needed: no cluster has room.",
        "Smaller requests or more nodes.";
    NodeLimitReached, [Provisioner],
        "The cloud cluster has as many nodes as it may have.",
        "Raise `spec.maxNodes`.";
    NodesDidNotHelp, [Provisioner],
        "A node is ready that should hold such a pod by `spec.machineTypes`, and the pod waits all the same.",
        "Compare the allocatable resources, taints and labels of the nodes with what is declared.";
    NodesFailed, [Event],
        "Nodes of a machine type could not be made.",
        "The message has the reason of Cluster API or of its provider.";
    NodesNotReady, [on(Ready)],
        "Nodes of the cloud cluster have not been ready for longer than `spec.provisionTimeout`; they are left alone.",
        "The message names their Machines; delete those that do not come back.";
    NotAdopted, [on(Ready), on(Placed), Review, Event],
        "Deployments that were to be taken over are not as they must be.",
        "The message says what differs, per cluster.";
    NotChosen, [Pending],
        "Enough other clusters came first in the order of the policy.",
        "`numberOfLocations`.";
    NotConnected, [Pending],
        "The controller has no connection to the cluster.",
        "The condition `Ready` of its ForeignCluster has the error; `portolan peer` creates a new credential.";
    NotFailed, [on(Failed)],
        "The last cloud cluster was provisioned.",
        "";
    NotFound, [Review],
        "The object does not exist.",
        "`portolan get` lists the objects.";
    NotNeeded, [on(ToCloud), on(Ready), on(Provisioned), on(Progressing)],
        "No cloud cluster is needed.",
        "";
    NotPropagated, [Placement],
        "A ConfigMap or Secret of the workload never leaves the hub.",
        "The message has the rule; refer to another object.";
    NotSelected, [Pending],
        "The labels of the cluster do not match `clusterSelector`.",
        "`kubectl label foreigncluster`.";
    NotSuspended, [on(Suspended)],
        "The job may run.",
        "";
    NothingShared, [on(Sharing)],
        "The ForeignCluster says nothing about sharing, and no SharingClass is the default: nothing is offered.",
        "`portolan share CLUSTER 50%`.";
    ObjectsNotFound, [on(Orphaned)],
        "Objects in the cluster were placed by this hub and have no object in it: they stay as they are.",
        "Create their objects again, or delete them in the member: `portolan adopt --list`.";
    OfferAccepted, [on(OfferAccepted), on(Accepted), Event],
        "The offer is accepted, and placement may use what it has.",
        "";
    OfferAwaitsAcceptance, [on(OfferAccepted), on(Accepted)],
        "An offer waits for a user to accept it: `spec.outgoing.acceptance` of the ForeignCluster is Manual.",
        "`portolan accept-offer CLUSTER`.";
    OfferBelowMinimum, [on(OfferAccepted), on(Accepted), Event],
        "The offer has less than `spec.outgoing.minimum` of the ForeignCluster: nothing new is placed on the cluster.",
        "A smaller minimum, or ask the provider for more.";
    OfferChanged, [Event],
        "The offer to a cluster has other quantities than before.",
        "";
    OfferExpired, [on(OfferAccepted), on(Accepted), Event],
        "The provider has not renewed its offer in time: nothing new is placed on the cluster.",
        "See whether Portolan runs in the provider.";
    OfferNotFound, [on(OfferAccepted)],
        "The provider has made no offer yet: nothing is placed on the cluster.",
        "On the provider: `portolan share CLUSTER 50%`.";
    OfferUnreadable, [on(OfferAccepted)],
        "The offer of the provider cannot be read: the last one that was read counts.",
        "The message has the error.";
    Orphaned, [Event],
        "Objects in the cluster were placed by this hub and have no object in it.",
        "See `portolan adopt --list`.";
    Paused, [on(Ready), on(Progressing), Staying],
        "`spec.paused` is true: nothing is placed, moved or rolled out.",
        "`spec.paused: false`.";
    PeeringEstablished, [on(Ready), on(IncomingPeering), on(OutgoingPeering), Event],
        "The two clusters have peered: the consumer has its identity, its namespace and its rights.",
        "";
    PeeringRevoked, [on(Ready), on(IncomingPeering), on(OutgoingPeering), Event],
        "The rights of the consumer are removed, and its certificate is worth nothing.",
        "On the consumer: `portolan unpeer`, then peer with a new invitation.";
    Pending, [on(Ready), on(Placed), on(Available), on(Progressing), Event],
        "Replicas or completions have no cluster.",
        "`portolan explain` has the reason of every cluster.";
    Placed, [on(Placed), Event],
        "Every replica, completion or Service has its clusters.",
        "";
    PodsNotCreated, [on(Ready), Placement],
        "The cluster has the copy and does not create its pods: a quota, Pod Security or a webhook denies them.",
        "The message has the error of the cluster.";
    PolicyFallback, [on(Placed)],
        "No cluster reports traffic, so that clusters were chosen as `worst-fit` does.",
        "See the page on traffic: the clusters need a Prometheus.";
    PolicyUnavailable, [on(Ready), on(Placed), Review, Event],
        "The policy has no numbers to decide by.",
        "The message names the numbers that are missing.";
    ProbePending, [on(Ready), on(Reachable)],
        "The cluster has not answered yet.",
        "";
    Progressing, [on(Ready), Staying],
        "Pods are starting, or a copy is being written.",
        "";
    ProvisionFailed, [on(Ready), on(Provisioned), on(Progressing), on(Failed), Provisioner, Event],
        "A cloud cluster could not be made.",
        "The message has the reason of Cluster API or of its provider; the workloads go to another CloudProvisioner meanwhile.";
    ProvisionerDeleted, [Provisioner],
        "The cluster is removed since its CloudProvisioner is being deleted.",
        "";
    Provisioning, [on(Ready), on(Provisioned), on(Progressing)],
        "The cloud cluster is being made.",
        "";
    QuotasEnforced, [on(Sharing), on(Ready)],
        "The offer stands, and quotas enforce it in every namespace of the tenant.",
        "";
    QuotasPending, [on(Sharing), on(Ready), Event],
        "The quota of a namespace of the tenant is not in force yet.",
        "The message names the namespace and the error.";
    Reachable, [Event],
        "The cluster answers again.",
        "";
    Ready, [on(Ready), Placement, on(Provisioned), on(Progressing)],
        "All replicas are ready, the Service has endpoints that are ready, or the cloud cluster has joined.",
        "";
    ReadyForNewScale, [on(AbleToScale)],
        "Nothing holds a change of the replicas back.",
        "";
    Refused, [Pending, Placement, Review, Event],
        "The cluster refuses the copy.",
        "The message has the error of the cluster.";
    Removing, [Placement],
        "The copy is being deleted.",
        "";
    Replaced, [on(Unreachable), Placement, Event],
        "The cluster was silent for too long: its part was placed in other clusters.",
        "Reconnect the cluster.";
    ReplicasKept, [on(Ready), on(Placed), Event],
        "Replicas stay where they run, because what is asked for now can be placed nowhere.",
        "`portolan explain` has the reason of every cluster.";
    Rescheduled, [Event],
        "Unfinished completions of a job were given to another cluster.",
        "";
    ReschedulerPaused, [on(Progressing), Staying],
        "`spec.paused` of the rescheduler is true: no further move is begun.",
        "`spec.paused: false`.";
    Retried, [Event],
        "A Job failed, and its completions are retried in another cluster.",
        "";
    RetryLimitReached, [on(Failed)],
        "The Job failed in as many clusters as `retryLimit` allows.",
        "The messages of the placements have the errors.";
    RightsMissing, [on(Ready), Event],
        "The hub holds copies in namespaces of the cluster and lost rights on them: the copies stay as they are.",
        "Run `portolan peer` again, which grants the rights.";
    RollingOut, [on(Progressing)],
        "Replicas are being started, moved or replaced.",
        "";
    RolloutComplete, [on(Progressing)],
        "Every cluster runs the present template with all its replicas.",
        "";
    RoomNotStable, [Staying],
        "There is room in the preferred clusters, not yet for as long as `spec.roomStableFor`.",
        "";
    Running, [on(Ready), on(Complete), on(Failed)],
        "The job runs.",
        "";
    ScaleDownDeferred, [Placement],
        "Replicas are kept until their replacements are ready in other clusters.",
        "";
    ScaleDownLimit, [on(ScalingLimited)],
        "Replicas become fewer at the rate of `behavior.scaleDown`.",
        "";
    ScaleDownStabilized, [on(AbleToScale)],
        "More replicas were recommended a short while ago: the largest recent number counts.",
        "";
    ScaleInCalledOff, [Event],
        "Nodes that were to be removed are needed again.",
        "";
    ScaleUpLimit, [on(ScalingLimited)],
        "Replicas become more at the rate of `behavior.scaleUp`.",
        "";
    ScaleUpStabilized, [on(AbleToScale)],
        "Fewer replicas were recommended a short while ago: the smallest recent number counts.",
        "";
    ScaledIn, [Event],
        "Nodes that are little used are removed.",
        "";
    ScaledOut, [Event],
        "More nodes were requested.",
        "";
    Scaling, [on(Ready), on(Provisioned), on(Progressing)],
        "Nodes of the cloud cluster are being added or removed.",
        "";
    ScalingDisabled, [on(Ready), on(ScalingActive)],
        "The workload has 0 replicas, so the autoscaler leaves it alone.",
        "Scale the workload to 1 or more to have it scaled again.";
    SignerMissing, [on(Ready), Event],
        "The cluster does not sign certificates for clients, although the request is approved, and no token can take the place of the certificate.",
        "The message says why there is no token. `portolan peer --remote-context` peers without an invitation.";
    SilenceBelieved, [on(SilenceDoubted)],
        "The silence of the cluster is believed: `replaceAfter` counts from now on.",
        "";
    SilenceDoubted, [on(Unreachable), Event],
        "The silence of a cluster is not believed, since many are silent at once: nothing of it is replaced.",
        "Mend the network of the hub, or confirm a loss: `kubectl annotate foreigncluster NAME portolan.dev/confirmed-lost=true`.";
    StatusRefused, [Event],
        "The hub refused to store a status.",
        "The message has the error of the hub.";
    SucceededGetScale, [on(AbleToScale)],
        "The workload of the autoscaler was read.",
        "";
    SucceededRescale, [on(AbleToScale)],
        "The replicas of the workload were changed.",
        "";
    SuccessfulRescale, [Event],
        "The autoscaler has changed the replicas of its workload.",
        "";
    Superseded, [Placement],
        "An older Job of the same part is being deleted.",
        "";
    Suspended, [on(Ready), on(Placed), on(Suspended)],
        "`spec.suspend` is true: no pod of the job runs.",
        "`spec.suspend: false`.";
    TaintNotTolerated, [Pending],
        "A taint of the cluster is not tolerated.",
        "`clusterTolerations`, or remove the taint.";
    TenantNotFound, [on(Sharing)],
        "The namespace of the tenant does not exist: there is nowhere to put the offer.",
        "Peer the clusters again by `portolan invite`.";
    Terminating, [Pending],
        "The ForeignCluster is being deleted.",
        "";
    TokenIssued, [on(Authenticated)],
        "The provider does not sign certificates, and has given a token of the service account that this cluster is known by there.",
        "";
    TokenRenewalFailed, [on(Ready), on(Authenticated), on(OutgoingPeering), Event],
        "The token of a cluster could not be renewed.",
        "`portolan peer` creates a new one; for a token of an invitation, a new invitation is needed when it has ended.";
    TooFewReplicas, [on(ScalingLimited)],
        "The metrics ask for fewer replicas than the minimum that holds.",
        "";
    TooManyReplicas, [on(ScalingLimited)],
        "The metrics ask for more replicas than `maxReplicas`.",
        "A larger `maxReplicas`, if there is room.";
    Unknown, [Placement],
        "The state of the copy is not known.",
        "";
    UnknownField, [Review],
        "The manifest has a field that the kind does not have.",
        "Correct the name of the field.";
    UnknownKind, [Review],
        "The kind of the manifest is not one that Portolan plans.",
        "The message lists the kinds.";
    Unpeered, [Provisioner],
        "The cluster is removed since its ForeignCluster was deleted.",
        "";
    Unreachable, [on(Ready), on(Reachable), on(Available), on(Unreachable), Pending, Placement, Staying, Event],
        "The cluster does not answer; its part is kept on record, with the last known numbers.",
        "The condition `Reachable` of its ForeignCluster has the error.";
    Unschedulable, [Pending],
        "The cluster is cordoned.",
        "`portolan uncordon NAME`.";
    Unused, [Provisioner],
        "The cluster is removed since no workload needs it.",
        "";
    ValidMetricFound, [on(ScalingActive)],
        "A number of replicas was computed from the metrics.",
        "";
    Waiting, [on(Ready)],
        "Nothing of the job runs, though it has clusters.",
        "The message has the clusters and their reasons.";
    WorkloadsAway, [on(Progressing)],
        "Workloads are away from the clusters they prefer, and none is being moved.",
        "`status.staying` has the reason of each.";
    WorkloadsRemain, [on(Leaving), on(Ready), Event],
        "The ForeignCluster, or the cloud cluster, is not deleted while workloads remain in the cluster.",
        "Delete or move these workloads, or see `portolan unpeer --help`.";
}
