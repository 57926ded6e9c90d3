//! Structured merge: who owns which field, and how two versions of an object become one.

mod fieldset;
mod managers;
mod strategic;
mod typed;

pub(crate) use managers::{Apply, ApplyError, Manager, Operation, apply, check_items, track_update};
pub(crate) use strategic::strategic_merge;
