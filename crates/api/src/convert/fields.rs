//! Reading a mapping field by field, so that what nobody asked for is noticed.

use super::{
    node::{Content, Key, Node},
    place::{ConvertError, Place, Problem},
};

/// The fields of a mapping that have not been taken yet.
pub(super) struct Fields<'a> {
    rest: Vec<&'a (Key, Node)>,
    taken: Vec<String>,
    place: Place,
}

/// A field with its place.
#[derive(Clone)]
pub(super) struct Field<'a> {
    pub(super) node: &'a Node,
    pub(super) place: Place,
}

impl<'a> Fields<'a> {
    /// The fields of `node`, which must be a mapping.
    pub(super) fn new(node: &'a Node, place: Place) -> Result<Self, ConvertError> {
        match &node.content {
            Content::Mapping(entries) => {
                Ok(Self { rest: entries.iter().collect(), taken: Vec::new(), place })
            }
            _ => Err(wrong_type(place, "a mapping", node)),
        }
    }

    /// Takes a field. One that is null counts as absent, as in Kubernetes.
    pub(super) fn take(&mut self, name: &str) -> Option<Field<'a>> {
        self.taken.push(name.to_owned());
        let index = self.rest.iter().position(|(key, _)| key.name == name)?;
        let (key, node) = self.rest.remove(index);
        (node.content != Content::Null)
            .then(|| Field { node, place: self.place.field(&key.name, key.position) })
    }

    /// Takes a field that must be there.
    pub(super) fn require(&mut self, name: &str) -> Result<Field<'a>, ConvertError> {
        self.take(name).ok_or_else(|| ConvertError {
            place: self.place.clone(),
            problem: Problem::MissingField { field: name.to_owned() },
        })
    }

    /// An error for the first field that was not taken, if there is one.
    pub(super) fn finish(self) -> Result<(), ConvertError> {
        let Some((key, _)) = self.rest.first() else { return Ok(()) };
        let mut known = self.taken;
        known.sort();
        known.dedup();
        let place = self.place.field(&key.name, key.position);
        Err(ConvertError { place, problem: Problem::UnknownField { known } })
    }
}

impl<'a> Field<'a> {
    /// The field as text.
    pub(super) fn text(&self) -> Result<&'a str, ConvertError> {
        match &self.node.content {
            Content::Text(text) => Ok(text),
            _ => Err(wrong_type(self.place.clone(), "a text", self.node)),
        }
    }

    /// The field as true or false.
    pub(super) fn boolean(&self) -> Result<bool, ConvertError> {
        match &self.node.content {
            Content::Boolean(value) => Ok(*value),
            _ => Err(wrong_type(self.place.clone(), "true or false", self.node)),
        }
    }

    /// The items of the field.
    pub(super) fn sequence(&self) -> Result<Vec<Field<'a>>, ConvertError> {
        match &self.node.content {
            Content::Sequence(items) => Ok(items
                .iter()
                .enumerate()
                .map(|(index, node)| Field { node, place: self.place.item(index, node.position) })
                .collect()),
            _ => Err(wrong_type(self.place.clone(), "a list", self.node)),
        }
    }

    /// The fields of the field.
    pub(super) fn fields(&self) -> Result<Fields<'a>, ConvertError> {
        Fields::new(self.node, self.place.clone())
    }
}

/// The error for a value of the wrong type.
pub(super) fn wrong_type(place: Place, expected: &'static str, node: &Node) -> ConvertError {
    ConvertError { place, problem: Problem::WrongType { expected, found: node.kind() } }
}
