//! Where something is in the input, and what is wrong with it there.

use std::fmt;

/// A line and a column, both counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

/// A place in the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The number of the document, counted from 1 without empty ones.
    pub document: Option<usize>,
    /// Where in the text.
    pub position: Option<Position>,
    /// The field, such as `spec.locations`; empty for the document as a whole.
    pub path: String,
}

impl Place {
    /// The place of a field beneath this one.
    pub(super) fn field(&self, name: &str, position: Position) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Self { document: self.document, position: Some(position), path }
    }

    /// The place of an item of a list beneath this one.
    pub(super) fn item(&self, index: usize, position: Position) -> Self {
        Self { document: self.document, position: Some(position), path: format!("{}[{index}]", self.path) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(document) = self.document {
            parts.push(format!("document {document}"));
        }
        if let Some(Position { line, column }) = self.position {
            parts.push(format!("line {line}, column {column}"));
        }
        if !self.path.is_empty() {
            parts.push(self.path.clone());
        }
        if parts.is_empty() {
            parts.push("the input".to_owned());
        }
        formatter.write_str(&parts.join(", "))
    }
}

/// What was not carried over, and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where it stands in the input.
    pub place: Place,
    /// What it is, and what to do instead.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.message)
    }
}

/// Why a manifest was not converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct ConvertError {
    /// Where it stands in the input.
    pub place: Place,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is no document.
    Empty,
    /// The text is neither YAML nor JSON.
    Syntax(String),
    /// The document is of none of the kinds that can be converted.
    UnknownDocument {
        /// Its `apiVersion`.
        api_version: String,
        /// Its `kind`.
        kind: String,
    },
    /// The kind has no such field.
    UnknownField {
        /// The fields that are known here.
        known: Vec<String>,
    },
    /// A field that must be there is not.
    MissingField {
        /// Its name.
        field: String,
    },
    /// A field has a value of the wrong type.
    WrongType {
        /// What would be right.
        expected: &'static str,
        /// What was found.
        found: &'static str,
    },
    /// A field has a value that is not allowed.
    WrongValue {
        /// The value.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// Leaving the field out would change the meaning, and there is no place for it.
    CannotCarry(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => formatter.write_str("there is no document in the input"),
            Self::Syntax(message) => write!(formatter, "neither YAML nor JSON: {message}"),
            Self::UnknownDocument { api_version, kind } => unknown_document(formatter, api_version, kind),
            Self::UnknownField { known } => {
                write!(formatter, "unknown field; known here: {}", known.join(", "))
            }
            Self::MissingField { field } => write!(formatter, "the field {field} is missing"),
            Self::WrongType { expected, found } => write!(formatter, "must be {expected}, but is {found}"),
            Self::WrongValue { value, expected } => write!(formatter, "{value:?} is not allowed: {expected}"),
            Self::CannotCarry(message) => formatter.write_str(message),
        }
    }
}

fn unknown_document(formatter: &mut fmt::Formatter<'_>, api_version: &str, kind: &str) -> fmt::Result {
    write!(formatter, "{kind} of {api_version} cannot be converted")?;
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    if group == crate::GROUP {
        return write!(formatter, ": it is Portolan's already and can be applied as it is");
    }
    write!(
        formatter,
        "; known are the kinds of mck8s (fogguru.eu/v1: MultiClusterDeployment, MultiClusterJob, MultiClusterService, \
         MultiClusterHorizontalPodAutoscaler, CloudProvisioner, MultiClusterRescheduler), of Liqo \
         (discovery.liqo.io/v1alpha1: ForeignCluster, offloading.liqo.io/v1alpha1: NamespaceOffloading) and of \
         KubeFed's feature controller (feature.kubefed.io/v1alpha1: FeatureConfig); other objects need no conversion"
    )
}
