//! Portolan on sandbox clusters, on virtual time. One binary, so that it links once.

#![allow(clippy::unwrap_used)]

mod autoscale;
mod brake;
mod burst;
mod burst_crashes;
mod burst_templates;
mod calls;
mod capacity;
mod capacity_reports;
mod credentials;
mod departure;
mod dependencies;
mod determinism;
mod drift;
mod edges;
mod edits;
mod health;
mod hostile;
mod job_members;
mod jobs;
mod leaders;
mod limits;
mod measurement;
mod mistakes;
mod peering;
mod placement;
mod plan;
mod provision;
mod provision_unclear;
mod recovery;
mod refusals;
mod reschedule;
mod rights;
mod seeds;
mod sequences;
mod services;
mod sharing;
mod signals;
mod silence;
mod stage;
mod stress;
mod template;
mod tenancy;
mod under_way;
