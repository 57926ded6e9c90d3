//! What a destination sees.

use super::{FakePods, NOBODY, NoTickets, Tree, UID, World, name, state};
use crate::hands::{DestinationNode, PodState};
use crate::session::{DestinationHands, SessionInfo};
use portolan_core::migration::destination::{Data, Target};
use portolan_node::freezer::CgroupFiles;
use portolan_node::store::{Mark, Presence, Store};
use std::fs;

pub(super) type Node = DestinationNode<FakePods, NoTickets, Tree>;

impl World {
    /// A node on which no container of the pod is there yet.
    pub(super) fn destination() -> (Self, Node) {
        let world = Self::new();
        for id in ["a1", "b1"] {
            fs::remove_dir_all(world.pod_cgroup().join(id)).unwrap();
            fs::remove_dir_all(world.path("bundles").join(id)).unwrap();
        }
        let node = DestinationNode::with_files(world.settings(), world.pods.clone(), NoTickets, Tree);
        (world, node)
    }

    pub(super) fn store(&self) -> Store {
        Store::new(self.path("store"))
    }

    /// As if the kubelet's turn had come to a container, and `portolan-runc` had taken its checkpoint.
    pub(super) fn taken(&self, container: &str, id: &str) {
        let (store, migration) = (self.store(), name("m-1"));
        store.assign(&migration, &name(UID)).unwrap();
        store.begin(&migration, &name(container)).unwrap().finish().unwrap();
        store.take(&migration, &name(container)).unwrap().unwrap();
        self.container(id, Some(container), Some("m-1"), &[NOBODY]);
    }

    pub(super) fn hold(&self, id: &str) {
        Tree.write(&self.pod_cgroup().join(id).join("freezer.state"), "FROZEN").unwrap();
    }

    /// As if `portolan-runc` had restored a container and left it frozen.
    pub(super) fn restored(&self, id: &str) {
        self.hold(id);
        fs::create_dir_all(self.path("wrapper")).unwrap();
        fs::write(self.path("wrapper").join(format!("{id}.restored")), "").unwrap();
    }
}

async fn target(world: &World, node: &Node) -> Target {
    node.look(&world.session(3)).await.unwrap().target
}

#[tokio::test]
async fn a_pod_waits_once_its_first_container_does() {
    let (world, node) = World::destination();
    for (pod, expected) in [
        (None, Target::None),
        (Some(state(UID)), Target::Changing),
        (Some(PodState { terminating: true, ..state(UID) }), Target::Changing),
        (
            Some(PodState { failure: Some("no image".to_owned()), ..state(UID) }),
            Target::Failed("no image".to_owned()),
        ),
    ] {
        world.pods.set(pod);
        assert_eq!(target(&world, &node).await, expected);
    }
    world.pods.set(Some(state(UID)));
    world.bundle("other", Some("a"), Some("m-2"));
    assert_eq!(target(&world, &node).await, Target::Changing);
    world.bundle("a9", Some("a"), Some("m-1"));
    assert_eq!(target(&world, &node).await, Target::Waiting);
    let seen = node.look(&world.session(3)).await.unwrap();
    assert_eq!((seen.data, seen.live, seen.has_files), (Data::Incomplete, false, false));
}

#[tokio::test]
async fn containers_are_told_to_wait_as_long_as_somebody_looks_at_them() {
    let (world, node) = World::destination();
    let beats = || world.store().beats(&name("m-1"));
    world.bundle("a9", Some("a"), Some("m-1"));
    assert_eq!(target(&world, &node).await, Target::Waiting);
    assert_eq!(beats(), None, "it is of no session that has created it");
    node.create_pod(&world.session(3)).await.unwrap();
    for expected in 2..5 {
        assert_eq!(target(&world, &node).await, Target::Waiting);
        assert_eq!(beats(), Some(expected));
    }
    fs::remove_dir_all(world.path("bundles/a9")).unwrap();
    assert_eq!(target(&world, &node).await, Target::Changing);
    assert_eq!(beats(), Some(4), "nobody waits");
    node.remove_files(&world.session(3)).await.unwrap();
    assert_eq!(beats(), None);
}

#[tokio::test]
async fn a_pod_is_frozen_when_all_of_it_is_restored() {
    let (world, node) = World::destination();
    world.taken("a", "a9");
    // The other one is not let through: that has to be ordered again.
    assert_eq!(target(&world, &node).await, Target::Waiting);
    world.taken("b", "b9");
    assert_eq!(target(&world, &node).await, Target::Restoring, "CRIU runs in the cgroups");
    world.restored("a9");
    world.hold("b9");
    assert_eq!(target(&world, &node).await, Target::Restoring);
    world.restored("b9");
    assert_eq!(target(&world, &node).await, Target::Frozen);
}

#[tokio::test]
async fn what_was_for_a_pod_that_is_gone_is_restored_once_that_is_ordered_for_the_next_one() {
    let (world, node) = World::destination();
    world.pods.set(Some(PodState { volumes: Vec::new(), ..state(UID) }));
    let (store, migration) = (world.store(), name("m-1"));
    store.assign(&migration, &name("another")).unwrap();
    for container in ["a", "b"] {
        store.begin(&migration, &name(container)).unwrap().finish().unwrap();
    }
    assert_eq!(target(&world, &node).await, Target::Waiting);
    node.restore(&world.session(3)).await.unwrap();
    assert_eq!(store.owner(&migration).unwrap().as_deref(), Some(UID));
    assert_eq!(target(&world, &node).await, Target::Restoring);
}

#[tokio::test]
async fn a_restored_pod_that_does_not_stand_still_runs() {
    let (world, node) = World::destination();
    for (container, id) in [("a", "a9"), ("b", "b9")] {
        world.taken(container, id);
        world.restored(id);
    }
    Tree.write(&world.pod_cgroup().join("b9/freezer.state"), "THAWED").unwrap();
    assert_eq!(target(&world, &node).await, Target::Running);
}

#[tokio::test]
async fn a_thaw_marks_the_pod_as_live_first_and_can_be_repeated() {
    let (world, node) = World::destination();
    for (container, id) in [("a", "a9"), ("b", "b9")] {
        world.taken(container, id);
        world.restored(id);
    }
    world.store().mark(&name("m-1"), Mark::Live).unwrap();
    assert_eq!(target(&world, &node).await, Target::Frozen, "the agent died between the mark and the thaw");
    for _ in 0..2 {
        node.thaw(&world.session(3)).await.unwrap();
        assert_eq!(target(&world, &node).await, Target::Running);
    }
    let seen = node.look(&world.session(3)).await.unwrap();
    assert!(seen.live && !seen.committed && world.pods.calls().is_empty());
    node.mark_committed(&world.session(3)).await.unwrap();
    assert_eq!(world.pods.calls(), [format!("mark {UID}")]);
    assert!(node.look(&world.session(3)).await.unwrap().committed);
    world.pods.set(Some(PodState { terminating: true, ..state(UID) }));
    assert!(node.look(&world.session(3)).await.unwrap().committed, "it needs no traffic any more");
}

#[tokio::test]
async fn a_restored_pod_is_set_going_though_the_api_server_is_away() {
    let (world, node) = World::destination();
    world.pods.set(Some(PodState { volumes: Vec::new(), ..state(UID) }));
    for (container, id) in [("a", "a9"), ("b", "b9")] {
        world.taken(container, id);
        world.restored(id);
    }
    node.restore(&world.session(3)).await.unwrap();
    world.pods.go_away();
    // Also by an agent that was restarted, and has never heard of the pod.
    let restarted = DestinationNode::with_files(world.settings(), world.pods.clone(), NoTickets, Tree);
    for node in [&node, &restarted] {
        assert_eq!(target(&world, node).await, Target::Frozen);
    }
    restarted.thaw(&world.session(3)).await.unwrap();
    let seen = restarted.look(&world.session(3)).await.unwrap();
    assert_eq!((seen.target, seen.live, seen.committed), (Target::Running, true, false));
    let unknown = SessionInfo { migration: "m-2".to_owned(), ..world.session(4) };
    assert_eq!(restarted.look(&unknown).await.unwrap_err().to_string(), "the API server is away");
}

#[tokio::test]
async fn what_died_frozen_is_put_back_when_the_restore_is_ordered_again() {
    let (world, node) = World::destination();
    world.pods.set(Some(PodState { volumes: Vec::new(), ..state(UID) }));
    for (container, id) in [("a", "a9"), ("b", "b9")] {
        world.taken(container, id);
        world.restored(id);
    }
    fs::remove_dir_all(world.pod_cgroup().join("b9")).unwrap();
    fs::remove_dir_all(world.path("bundles/b9")).unwrap();
    assert_eq!(target(&world, &node).await, Target::Waiting);
    for _ in 0..2 {
        node.restore(&world.session(3)).await.unwrap();
        let presence = |container| world.store().presence(&name("m-1"), &name(container));
        assert_eq!((presence("a"), presence("b")), (Presence::Used, Presence::Ready));
    }
    assert_eq!(target(&world, &node).await, Target::Restoring);
}

#[tokio::test]
async fn a_container_that_was_killed_while_it_stood_still_does_not_run() {
    let (world, node) = World::destination();
    world.pods.set(Some(PodState { volumes: Vec::new(), ..state(UID) }));
    for (container, id) in [("a", "a9"), ("b", "b9")] {
        world.taken(container, id);
        world.restored(id);
    }
    assert_eq!(target(&world, &node).await, Target::Frozen);
    // runc thaws what it kills; the cgroup is left until containerd has removed the container.
    fs::write(world.pod_cgroup().join("b9/cgroup.procs"), "").unwrap();
    Tree.write(&world.pod_cgroup().join("b9/freezer.state"), "THAWED").unwrap();
    assert_eq!(target(&world, &node).await, Target::Restoring);
    fs::remove_dir_all(world.path("bundles/b9")).unwrap();
    let node = DestinationNode::with_files(world.settings(), world.pods.clone(), NoTickets, Tree);
    assert_eq!(target(&world, &node).await, Target::Waiting, "it can be restored again");
    // All of them.
    fs::write(world.pod_cgroup().join("a9/cgroup.procs"), "").unwrap();
    Tree.write(&world.pod_cgroup().join("a9/freezer.state"), "THAWED").unwrap();
    assert_eq!(target(&world, &node).await, Target::Waiting);
}

#[tokio::test]
async fn a_container_of_another_pod_with_the_annotation_is_none_of_the_migration() {
    let (world, node) = World::destination();
    let other = "00000000-0f0e-4b7e-9c39-0d6b0f3d9d11";
    world.bundle_of(other, "evil", "container", Some("a"), Some("m-1"));
    assert_eq!(target(&world, &node).await, Target::Changing);
    world.bundle("a9", Some("a"), Some("m-1"));
    assert_eq!(target(&world, &node).await, Target::Waiting);
}
