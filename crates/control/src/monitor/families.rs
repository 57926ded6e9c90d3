//! All metrics of a controller.
//!
//! Names follow those of controller-runtime and client-go, with a prefix of our own; those of the process are the usual ones.
//! Values of labels are bounded: names of ForeignClusters and CloudProvisioners, which administrators of the hub create, and
//! words of this program.

use portolan_runtime::metrics::{Family, Kind};

macro_rules! families {
    ($($constant:ident, $name:literal, $kind:ident, [$($label:literal),*], $help:literal;)+) => {
        $(#[doc = $help]
        pub static $constant: Family =
            Family { name: $name, kind: Kind::$kind, labels: &[$($label),*], help: $help };)+

        /// All metrics, in order of their names.
        #[must_use]
        pub fn families() -> Vec<&'static Family> {
            let mut all = vec![$(&$constant,)+];
            all.sort_by_key(|family| family.name);
            all
        }
    };
}

families! {
    BUILD_INFO, "portolan_build_info", Gauge, ["version"],
        "1, with the version of this program.";
    LEADER, "portolan_leader_election_master_status", Gauge, ["name"],
        "1 if this controller leads, 0 if it stands by. The name is that of the Lease.";
    TERMS, "portolan_leader_election_terms", Counter, ["name"],
        "How often this controller was elected.";
    READY, "portolan_ready", Gauge, ["check"],
        "1 if a check of /readyz holds, 0 if it does not.";

    QUEUE_DEPTH, "portolan_workqueue_depth", Gauge, ["name"],
        "How many objects are due in a work queue and wait for a worker.";
    QUEUE_ADDS, "portolan_workqueue_adds", Counter, ["name"],
        "How often an object was added to a work queue that was not in it.";
    QUEUE_RETRIES, "portolan_workqueue_retries", Counter, ["name"],
        "How often an object was added again because work on it had failed.";
    QUEUE_LATENCY, "portolan_workqueue_queue_duration_seconds", Histogram, ["name"],
        "How long objects were due before a worker took them.";
    QUEUE_WORK, "portolan_workqueue_work_duration_seconds", Histogram, ["name"],
        "How long work on one object took.";
    QUEUE_UNFINISHED, "portolan_workqueue_unfinished_work_seconds", Gauge, ["name"],
        "How long work has been under way that is not finished, summed over the workers.";
    QUEUE_LONGEST, "portolan_workqueue_longest_running_processor_seconds", Gauge, ["name"],
        "How long the longest work has been under way.";
    RECONCILES, "portolan_reconcile", Counter, ["controller", "result"],
        "Reconciliations by result: success, requeue_after or error.";
    RECONCILE_ERRORS, "portolan_reconcile_errors", Counter, ["controller"],
        "Reconciliations that failed; each is tried again with backoff.";
    WORKERS, "portolan_active_workers", Gauge, ["controller"],
        "How many workers of a controller are at work.";

    DECISIONS, "portolan_decisions", Counter, ["kind", "result"],
        "Placement decisions by result: scheduled if everything has a cluster, unschedulable if something is pending, error if nothing could be decided.";
    OBJECTS, "portolan_objects", Gauge, ["kind"],
        "How many objects of a kind the hub has.";
    PENDING_REPLICAS, "portolan_pending_replicas", Gauge, ["reason"],
        "Replicas without a cluster, by the reason that most clusters give.";
    PENDING_COMPLETIONS, "portolan_pending_completions", Gauge, ["reason"],
        "Completions without a cluster, by the reason that most clusters give.";
    PENDING_WORKLOADS, "portolan_pending_workloads", Gauge, ["kind"],
        "How many workloads have replicas or completions without a cluster.";

    MEMBERS, "portolan_members", Gauge, ["state"],
        "Members by state: Ready, NotReady, Unreachable, CredentialRefused, NotConnected or Joining.";
    MEMBER_READY, "portolan_member_ready", Gauge, ["cluster"],
        "1 if the member answers and all that is watched in it is known.";
    MEMBER_REACHABLE, "portolan_member_reachable", Gauge, ["cluster"],
        "1 if the API server of the member answers the hub and accepts its credential.";
    MEMBER_RTT, "portolan_member_round_trip_seconds", Gauge, ["cluster"],
        "The round-trip time between the hub and the member, smoothed.";
    CREDENTIAL_END, "portolan_member_credential_expiration_timestamp_seconds", Gauge, ["cluster"],
        "When the token or the client certificate ends that the open connection uses; members whose credential has no end have no series.";
    CREDENTIAL_LIFETIME, "portolan_member_credential_lifetime_seconds", Gauge, ["cluster"],
        "For how long that token or client certificate is valid in all.";
    HUB_WATCH_AGE, "portolan_hub_watch_age_seconds", Gauge, ["kind"],
        "How long ago the hub was last heard on the watch of a kind. An API server sends a bookmark about every minute.";
    HUB_WATCH_FAILING, "portolan_hub_watch_failing", Gauge, ["kind"],
        "1 if the watch of a kind of the hub fails.";
    HUB_UNREADABLE, "portolan_hub_unreadable_objects", Gauge, ["kind"],
        "How many objects of a kind of the hub cannot be read.";
    WATCH_AGE, "portolan_watch_age_seconds", Gauge, ["cluster"],
        "How long ago a member was last heard on the watch that was silent for longest. An API server sends a bookmark about every minute.";
    WATCHES_FAILING, "portolan_watches_failing", Gauge, ["cluster"],
        "How many watches of the member fail.";
    UNREADABLE, "portolan_unreadable_objects", Gauge, ["cluster"],
        "How many objects of the member cannot be read.";

    ACTUATOR_DEPTH, "portolan_actuator_queue_depth", Gauge, ["cluster"],
        "How much work for a member waits for its turn.";
    ACTUATOR_RUNNING, "portolan_actuator_active_workers", Gauge, ["cluster"],
        "How much work in a member is under way.";
    ACTUATOR_LONGEST, "portolan_actuator_longest_running_seconds", Gauge, ["cluster"],
        "How long the longest work in a member has been under way.";
    BREAKER, "portolan_actuator_breaker_open", Gauge, ["cluster"],
        "1 while a member has left several requests unanswered and is asked one at a time after pauses.";

    REQUESTS, "portolan_rest_client_requests", Counter, ["cluster", "verb", "code"],
        "Requests to an API server by verb and status code; code none had no answer. The cluster is hub or the name of a ForeignCluster.";
    REQUEST_LATENCY, "portolan_rest_client_request_duration_seconds", Histogram, ["cluster", "verb"],
        "How long it took until an answer began; watches are left out.";

    CLOUD_COST, "portolan_cloud_provisioner_cost_per_hour", Gauge, ["provisioner"],
        "What the machines of a CloudProvisioner cost per hour, in its currency.";
    CLOUD_BUDGET, "portolan_cloud_provisioner_max_cost_per_hour", Gauge, ["provisioner"],
        "What they may cost at most; CloudProvisioners without a limit have no series.";
    CLOUD_COST_SO_FAR, "portolan_cloud_provisioner_cost_so_far", Gauge, ["provisioner"],
        "What all clusters of a CloudProvisioner have cost so far.";
    CLOUD_FAILURES, "portolan_cloud_provisioner_failures", Gauge, ["provisioner"],
        "How many times in a row a cluster could not be made.";
    CLOUD_NODES, "portolan_cloud_provisioner_nodes", Gauge, ["provisioner", "state"],
        "Worker nodes by state: desired, existing or ready.";
    CLOUD_LEFT_OUT, "portolan_cloud_provisioner_left_out_pods", Gauge, ["provisioner", "reason"],
        "Pods that wait for the cloud and get no node, by reason.";

    CPU, "process_cpu_seconds", Counter, [],
        "CPU time that the process has used, in seconds.";
    RESIDENT, "process_resident_memory_bytes", Gauge, [],
        "Resident memory of the process, in bytes.";
    VIRTUAL, "process_virtual_memory_bytes", Gauge, [],
        "Virtual memory of the process, in bytes.";
    THREADS, "process_threads", Gauge, [],
        "Threads of the process.";
    OPEN_FDS, "process_open_fds", Gauge, [],
        "Open file descriptors.";
    MAX_FDS, "process_max_fds", Gauge, [],
        "How many file descriptors may be open.";
    STARTED, "process_start_time_seconds", Gauge, [],
        "When the process began, in seconds since 1970.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_prometheus_asks_for() {
        let all = families();
        for family in &all {
            let is_ours = family.name.starts_with("portolan_") || family.name.starts_with("process_");
            assert!(is_ours && !family.name.ends_with("_total"), "{}", family.name);
            assert!(family.help.ends_with('.') && !family.help.contains('\n'), "{}", family.name);
            assert_eq!(
                family.kind == Kind::Histogram,
                family.name.ends_with("duration_seconds"),
                "{}",
                family.name
            );
        }
        assert!(all.windows(2).all(|pair| pair[0].name < pair[1].name), "a name is there twice");
    }
}
