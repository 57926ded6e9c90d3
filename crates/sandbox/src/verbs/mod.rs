//! The verbs, each written once for all resources.

mod admit;
mod binding;
mod convert;
mod create;
mod delete;
mod eviction;
mod metadata;
mod node;
mod patch;
mod read;
mod scale;
mod update;
mod watch;

pub(crate) use convert::{present, shown};
pub(crate) use delete::{DeleteOptions, Propagation};
pub(crate) use patch::{Patch, PatchRequest};
pub(crate) use read::{ListRequest, Page};
pub(crate) use update::Part;
pub(crate) use watch::{WatchBody, WatchRequest};
