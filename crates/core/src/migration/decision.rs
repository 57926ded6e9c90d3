//! What an agent is to do next.

use super::Report;

/// What to do with the record on the agent's disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write<Record> {
    /// It is right as it is.
    Nothing,
    /// Replace it, and be sure that it is on the disk.
    Put(Record),
    /// Remove it: the session is over.
    Remove,
}

/// The next step of an agent. First `write`, then the actions in their order, then `report`; then look again.
///
/// If anything fails or the agent dies in between, it looks again too: every action can be repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision<Record, Action, Stage> {
    /// What to write before anything else.
    pub write: Write<Record>,
    /// What to do then.
    pub actions: Vec<Action>,
    /// What to answer, once it is written.
    pub report: Option<Report<Stage>>,
}

impl<Record, Action, Stage> Decision<Record, Action, Stage> {
    /// Only an answer, or nothing at all.
    pub(super) fn only(report: Option<Report<Stage>>) -> Self {
        Self { write: Write::Nothing, actions: Vec::new(), report }
    }

    /// Whether there is nothing to write and nothing to do until something else happens.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(self.write, Write::Nothing) && self.actions.is_empty()
    }
}
