//! Which resources a cluster serves. One row a resource; custom resource definitions add rows.

mod builtin;
mod custom;
mod discovery;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::crd::Definition;
use crate::error::About;
use crate::schema::Node;
use crate::table::PrinterColumn;

/// Where a resource's `scale` finds its numbers, as JSON pointers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    pub(crate) spec: String,
    pub(crate) status: String,
    pub(crate) selector: Option<String>,
}

/// What counts as a new generation of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// The resource has no generations.
    None,
    /// A change of `spec`.
    Spec,
    /// Any change outside `metadata` and `status`.
    All,
}

/// Where a resource's objects come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    /// From the store.
    Stored,
    /// They are questions, answered at once.
    Review,
    /// They are worked out from pods and nodes.
    Metrics,
}

/// One resource: what it is called and how it behaves.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// Where the objects are kept; versions of one resource share it.
    pub(crate) table: Arc<str>,
    /// The `apiVersion` objects are kept in.
    pub(crate) stored_as: String,
    pub(crate) status: bool,
    pub(crate) scale: Option<ScalePaths>,
    pub(crate) generation: Generation,
    /// Fields beyond name and namespace that can be selected by, with their pointers.
    pub(crate) selectable: Vec<(String, String)>,
    pub(crate) node: Node,
    /// From a custom resource definition.
    pub(crate) custom: bool,
    pub(crate) nature: Nature,
    /// The printer columns of a custom resource.
    pub(crate) columns: Vec<PrinterColumn>,
    /// The schema of a custom resource.
    pub(crate) definition: Option<Arc<Definition>>,
}

impl Resource {
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    pub(crate) fn about<'a>(&'a self, name: &'a str) -> About<'a> {
        About { group: &self.group, resource: &self.plural, name }
    }

    /// True for the built-in resource of that group and name.
    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        !self.custom && self.group == group && self.plural == plural
    }
}

type Rows = BTreeMap<(String, String, String), Arc<Resource>>;

/// All rows of a cluster. The built-in ones are shared by all clusters.
pub(crate) struct Registry {
    builtin: Arc<Rows>,
    custom: Rows,
    /// Moves with every change of the rows.
    version: u64,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self { builtin: builtin::rows(), custom: Rows::new(), version: 1 }
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        let key = (group.to_owned(), version.to_owned(), plural.to_owned());
        self.builtin.get(&key).or_else(|| self.custom.get(&key)).cloned()
    }

    /// The row that objects of a table are kept in.
    pub(crate) fn of_table(&self, table: &str) -> Option<Arc<Resource>> {
        self.all().find(|row| &*row.table == table && row.stored_as == row.api_version()).cloned()
    }

    /// Moves with every change of the rows.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Every row, built-in ones first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.builtin.values().chain(self.custom.values())
    }

    /// Makes the rows of a custom resource definition what it says, or takes them away.
    pub(crate) fn set_custom(&mut self, table: &str, definition: Option<&Value>) {
        self.version += 1;
        self.custom.retain(|_, row| &*row.table != table);
        for row in definition.map(custom::rows).unwrap_or_default() {
            let key = (row.group.clone(), row.version.clone(), row.plural.clone());
            if !self.builtin.contains_key(&key) {
                self.custom.insert(key, Arc::new(row));
            }
        }
    }
}
