//! What a cluster goes through, held against a real one: the same deployment, job, drain and loss of a node on both
//! give the same sequence of states.
//!
//! [`run`] carries out the script on a [`Ground`] and returns, for each step, what every object went through and how it
//! was at rest afterwards. What depends on timing alone is left out by a written rule:
//!
//! - **Names, times, addresses, identifiers** are left out. Objects are told apart by role: replica sets and pods by the
//!   version of their template, pods of a step also by whether they were there before it and after it, nodes by their
//!   number.
//! - **A sequence is that of one field.** Two fields that change in two writes here and in one there go through the same.
//! - **Of a count, only the turning points stay**: whether `0 → 1 → 2` or `0 → 2` is seen depends on how many pods
//!   are told about at once. What replica sets are asked for is not such a count, and compared whole. How many
//!   pods a deployment, a replica set or a job has, as it sums them up, is compared at rest, and so is what a budget
//!   allows.
//! - **Which node** a pod gets is compared where the script leaves the scheduler one node.
//! - **That the network of a new pod is not there yet** is told by a kubelet or not, depending on how busy it is.
//! - **Of a container**, its state is compared: not its image, its resources or its identifiers.
//!
//! What a real cluster did is checked in (`recording.json`), so that the sandbox is held against it without a lab; the
//! test on the lab holds the recording against the cluster. What is known to differ stands in `divergences.yaml`.

mod fields;
mod ground;
mod history;
mod rest;
mod script;

use crate::conformance::{Answers, Divergence};
use anyhow::{Context, Result};
use std::path::PathBuf;

pub use ground::{Ground, NodeSwitch};
pub use script::run;

/// What a real cluster went through.
pub fn recording() -> Result<Answers> {
    serde_json::from_str(include_str!("recording.json")).context("recording.json cannot be read")
}

/// Where the recording lies.
#[must_use]
pub fn recording_file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/sequences/recording.json")
}

/// The list that the test pins: a difference that is not in it fails, and so does an entry that is no longer true.
pub fn divergences() -> Result<Vec<Divergence>> {
    serde_saphyr::from_str(include_str!("divergences.yaml")).context("divergences.yaml cannot be read")
}
