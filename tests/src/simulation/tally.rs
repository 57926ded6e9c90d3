//! What is drawn in simulations, and how often each was.

use std::collections::BTreeMap;

macro_rules! drawn {
    ($($variant:ident $name:literal,)*) => {
        /// Something that a simulation may draw.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Drawn {
            $(#[doc = $name] $variant,)*
        }

        impl Drawn {
            /// Everything that can be drawn.
            pub const ALL: &[Drawn] = &[$(Drawn::$variant,)*];

            /// What it is called in the table.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Drawn::$variant => $name,)* }
            }
        }
    };
}

drawn! {
    Standby "a second controller stands by",
    Crash "a crash is planned",
    RequestFaults "requests fail at random",
    SeveralContainers "template: several containers",
    SameImages "template: two containers of one image",
    Sidecar "template: a sidecar",
    InitContainer "template: an init container",
    LimitsOnly "template: limits only",
    Overhead "template: a RuntimeClass with overhead",
    Reference "template: a ConfigMap is referred to",
    RollingUpdate "workload: a rolling update",
    DefaultStrategy "workload: no strategy is given",
    Weights "workload: weights",
    Spread "workload: spread over zones",
    DriftReported "workload: drift is reported",
    PausedAtFirst "workload: paused from the beginning",
    Paused "workload: paused",
    Unpaused "workload: not paused any more",
    WorkloadApplied "workload: made or changed as a whole",
    WorkloadScaled "workload: scaled",
    WorkloadDeleted "workload: deleted",
    ImageChanged "workload: another image",
    PolicyChanged "workload: another policy",
    FieldsRemoved "workload: fields removed",
    CpuMistyped "workload: cpu 50 instead of 50m",
    MemoryBeyond "workload: 32Gi of memory",
    UnknownLocation "workload: a location that does not exist",
    SelectorUnmatched "workload: a selector that matches no cluster",
    ImageBroken "workload: an image that never starts",
    NodeSelectorUnmatched "workload: a nodeSelector that matches no node",
    HugeReplicas "workload: far more replicas than there is room",
    TemplateInvalid "workload: a template that no cluster takes",
    EditRefused "workload: an edit that the hub refuses",
    FinalizerRemoved "workload: its finalizer is removed",
    ConfigChanged "a ConfigMap is made, changed or deleted",
    ServiceChanged "a service is made or deleted",
    JobChanged "a job is made, changed or deleted",
    CopyScaled "member: somebody scales a copy",
    CopyDeleted "member: somebody deletes a copy",
    CopyLabelRemoved "member: somebody removes a copy's label",
    PodDeleted "member: somebody deletes a pod",
    Autoscaler "member: an autoscaler writes replicas",
    CutOff "member: cut off from the controllers",
    HubCutOff "hub: cut off from a controller",
    HistoryForgotten "a cluster: watches end, and the past is forgotten",
    NodeFailed "member: a node fails",
    NamespaceClosed "member: the namespace is closed",
    NamespaceDeleted "member: the namespace is deleted and made anew",
    OldVersion "member: another version",
    RightTaken "member: one right is taken away",
    Resource403 "member: one resource answers 403",
    Resource404 "member: one resource answers 404",
    Resource429 "member: one resource answers 429",
    Resource500 "member: one resource answers 500",
    ResourceSilent "member: one resource never answers",
    ResourceSlow "member: one resource takes long to answer",
    TokenEnded "member: the token ends for a time",
    LimitRange "member: a LimitRange",
    Quota "member: a quota",
    Hook "member: a hook injects a sidecar",
    Policy "member: a policy denies Deployments",
    ForeignDefinition "member: a CRD of its own, named like a kind of Kubernetes",
    OwnDefinitions "member: Portolan's CRDs, as in a hub",
    HostileContent "member: answers that are no objects",
    HostileSize "member: answers without end",
    HostileDelay "member: late answers",
    HostileObjects "member: objects that it invents",
    ClusterTainted "ForeignCluster: tainted",
    ClusterEvicted "ForeignCluster: tainted NoExecute",
    ClusterCordoned "ForeignCluster: unschedulable",
    ClusterLabelled "ForeignCluster: labelled",
    ClusterLatency "ForeignCluster: other latencies",
    ClusterDeleted "ForeignCluster: deleted and made anew",
    ClusterUncounted "ForeignCluster: its room is not counted",
    ClusterGrows "ForeignCluster: nodes that never come",
    ClusterLatencyMistaken "ForeignCluster: a latency to itself and to nobody",
    ClusterInCloud "ForeignCluster: said to be in a cloud",
    ClusterTrafficMistaken "ForeignCluster: traffic from a Prometheus that does not exist",
    ClusterSecretMistaken "ForeignCluster: another Secret",
    ClusterStatusWritten "ForeignCluster: somebody writes its status",
    ClusterEditRefused "ForeignCluster: an edit that the hub refuses",
    LoadChanged "elastic: the load of a cluster changes",
    HomeFilled "elastic: others take or leave room at home",
    AutoscalerChanged "autoscaler: changed",
    AutoscalerDeleted "autoscaler: deleted",
    AutoscalerRefused "autoscaler: an edit that the hub refuses",
    SecondAutoscaler "autoscaler: a second one for the same workload",
    MetricsMissing "metrics: not served",
    MetricsLate "metrics: late or never",
    MetricsAbsurd "metrics: absurd",
    SecondProvisioner "provisioner: a second one",
    FromTemplates "provisioner: clusters from templates",
    CostLimited "provisioner: its cost is limited",
    Headroom "provisioner: room is kept free",
    ProvisionerPaused "provisioner: paused or not",
    ProvisionerLimited "provisioner: another number of nodes is allowed",
    ProvisionerDeleted "provisioner: deleted",
    ProvisionerRefused "provisioner: an edit that the hub refuses",
    MachinesFail "cloud: some machines cannot be made",
    MachinesHang "cloud: some machines never become nodes",
    MachinesSlow "cloud: some machines take long",
    CloudRefusesClusters "cloud: refuses clusters",
    CloudRefusesMachines "cloud: refuses machines",
    CloudQuota "cloud: few machines are allowed",
    CloudClusterDeleted "cloud: somebody deletes a Cluster",
    MachineDeleted "cloud: somebody deletes a Machine",
    CloudMemberDeleted "cloud: somebody deletes its ForeignCluster",
    Budget "cloud: a PodDisruptionBudget allows nothing",
    Rescheduler "rescheduler: made",
    ReschedulerChanged "rescheduler: paused, dry or deleted",
    ClockOff "tenancy: the clock of a cluster is minutes off",
    InvitationMade "invitation: made",
    InvitationOpens "invitation: opens a namespace",
    InvitationShort "invitation: for a minute",
    InvitationByHand "invitation: to be accepted by hand",
    InvitationShares "invitation: shares a part",
    InvitationInterrupted "invitation: the command is interrupted",
    InvitationWithPods "invitation: opens a namespace in which pods run",
    InvitationRefusedForPods "invitation: refused, since pods run in the namespace",
    InvitationTwice "invitation: made twice by one name",
    InvitationAccepted "invitation: a cluster is accepted by hand",
    LineUsed "invitation: used",
    LineUsedAgain "invitation: used again by the same cluster",
    LineUsedByTwo "invitation: used by two clusters at the same time",
    LineStolen "invitation: used with another key",
    LineLate "invitation: used after it has expired",
    LineMisnamed "invitation: used with a name that is taken",
    LineRevoked "invitation: used after it was deleted",
    LineUnserved "invitation: used while the provider's controller is down",
    LineUsedAtHome "invitation: used by the provider itself",
    LineSecond "invitation: a second one is used by a cluster that has peered",
    LineInterrupted "invitation: using it is interrupted",
    PeeredAgain "peering: ended and begun again",
    RenewedEarly "peering: a certificate is renewed early",
    PeeredByContext "peering: refused by a context, since there is one by invitation",
    UnpeeredByConsumer "peering: ended by the consumer",
    UnpeeredByProvider "peering: ended by the provider",
    UnpeeredApart "peering: ended while the other side is cut off",
    UnpeerInterrupted "peering: ending it is interrupted",
    UnpeeredDuringAcceptance "peering: ended while the consumer is being accepted",
    InvitationDeleted "by hand: an Invitation is deleted",
    AccountDeleted "by hand: the account of an invitation is deleted",
    BootstrapDeleted "by hand: the Secret of an invitation is deleted",
    KeyDeleted "by hand: the key of a consumer that asks is deleted",
    CredentialDeleted "by hand: the credential of a consumer is deleted",
    RequestDeleted "by hand: a request for a certificate is deleted",
    LeaseDeleted "by hand: the Lease of a consumer is deleted",
    HomeDeleted "by hand: the namespace of a tenant is deleted",
    ConsumerDeleted "by hand: the ForeignCluster of a consumer is deleted",
    ProviderDeleted "by hand: the ForeignCluster of a provider is deleted",
    BindingDeleted "by hand: a binding of a tenant is deleted",
    RoleDeleted "by hand: the role of a tenant is deleted",
    FinalizersTaken "by hand: the finalizers of a ForeignCluster are removed",
    TornOut "by hand: a ForeignCluster is deleted without its finalizers",
    NamespacesEdited "by hand: other namespaces are opened to a consumer",
    SystemNamespaceAsked "by hand: a namespace of the system is to be opened, which is refused",
    QuotaDeleted "by hand: the quota of a tenant is deleted",
    RangeDeleted "by hand: the LimitRange of a tenant is deleted",
    PolicyDeleted "by hand: the admission policy of tenants, or its binding, is deleted",
    OfferDeleted "by hand: an offer is deleted",
    SharedPercentage "sharing: a percentage",
    SharedQuantities "sharing: quantities",
    SharedClass "sharing: a class",
    ClassToZero "sharing: a class goes to 0% and back",
    SharedNoClass "sharing: a class that does not exist",
    SharedNothing "sharing: 0%",
    SharedByDefault "sharing: by default",
    DefaultChanged "sharing: the default class is made, changed or deleted",
    OfferManual "offer: to be accepted by hand, or not any more",
    OfferAcceptedByHand "offer: accepted by hand",
    OfferMinimum "offer: a minimum",
    TenantWorks "tenancy: a consumer places a workload",
    SignerStopped "tenancy: the signer is missing for a while",
    ControllerDown "tenancy: a controller is down for a while",
    SideCutOff "tenancy: one side is cut off from the other",
    ServerAnswersBadly "tenancy: one resource answers 403, 409, 429, 500 or never",
    WatchesOutdated "tenancy: watches end, and the past is forgotten",
}

/// How often each was drawn.
#[derive(Clone, Debug, Default)]
pub struct Tally(BTreeMap<Drawn, u32>);

impl Tally {
    /// Counts one.
    pub(super) fn add(&mut self, drawn: Drawn) {
        *self.0.entry(drawn).or_default() += 1;
    }

    /// Whether it was drawn.
    pub(super) fn has(&self, drawn: Drawn) -> bool {
        self.0.contains_key(&drawn)
    }

    /// What was drawn, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (Drawn, u32)> + '_ {
        self.0.iter().map(|(drawn, count)| (*drawn, *count))
    }
}
