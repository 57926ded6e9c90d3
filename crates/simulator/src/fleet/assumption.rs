//! What could not be read of a fleet, and what the scenario has in its place.

use std::fmt;

/// Something that the scenario cannot take from the fleet as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// The member or the object.
    pub about: String,
    /// What is not known, and why.
    pub problem: String,
    /// What is assumed in its place.
    pub assumed: String,
    /// What would help.
    pub hint: Option<String>,
}

impl Assumption {
    pub(super) fn new(
        about: impl Into<String>,
        problem: impl Into<String>,
        assumed: impl Into<String>,
    ) -> Self {
        Self { about: about.into(), problem: problem.into(), assumed: assumed.into(), hint: None }
    }

    pub(super) fn hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.hint = hint.map(Into::into);
        self
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { about, problem, assumed, .. } = self;
        write!(f, "{about}: {problem}. Assumed: {assumed}.")
    }
}

/// Why something could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// Why.
    pub reason: String,
    /// What would help.
    pub hint: Option<String>,
}

impl Unread {
    /// A reason, without what would help.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), hint: None }
    }

    /// The same, with what would help.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
