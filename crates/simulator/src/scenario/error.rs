//! Why a scenario cannot be played.

/// Why a scenario cannot be played: the file, the field, the rule, and what would help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ScenarioError {
    /// The file, or the name of a shipped scenario.
    pub file: String,
    /// The field, such as `clusters[1].nodes.cpu`; empty if it is the file as a whole.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
    /// What would help.
    pub hint: Option<String>,
}

impl std::fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, field, message, .. } = self;
        if field.is_empty() {
            write!(f, "{file}: {message}")
        } else {
            write!(f, "{file}: {field}: {message}")
        }
    }
}

/// A rule that is broken, before it is known in which file.
pub(super) struct Broken {
    pub(super) field: String,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl Broken {
    pub(super) fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), hint: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn of(self, file: &str) -> ScenarioError {
        ScenarioError { file: file.to_owned(), field: self.field, message: self.message, hint: self.hint }
    }
}
