//! Turns manifests of other systems into ours: mck8s (`fogguru.eu/v1`), Liqo 0.5 (`discovery.liqo.io`,
//! `offloading.liqo.io`) and the feature controller of KubeFed (`feature.kubefed.io`).
//!
//! Nothing is guessed and nothing is dropped in silence. A document, kind or field that is not known is an error
//! with its position, so a plain Kubernetes object or one that is already ours is an error too: it needs no
//! conversion. What is known but has no place with us becomes a warning that says what to do instead.

mod carry;
mod fields;
mod fogguru;
mod kubefed;
mod liqo;
mod metadata;
mod node;
mod output;
mod place;

use serde_json::Value;

use self::{carry::Target, fields::Fields, node::Node};
pub use self::{
    output::{to_json, to_yaml},
    place::{ConvertError, Place, Position, Problem, Warning},
};

/// What came out of a conversion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversion {
    /// The objects, in the order of the input.
    pub documents: Vec<Value>,
    /// What could not be carried over, and what to do instead.
    pub warnings: Vec<Warning>,
}

/// Converts all documents of `input`, which is YAML or JSON. A `List` of Kubernetes counts as its items.
pub fn convert(input: &str) -> Result<Conversion, ConvertError> {
    let documents = node::parse(input)?;
    if documents.is_empty() {
        return Err(ConvertError { place: Place::default(), problem: Problem::Empty });
    }
    let mut conversion = Conversion::default();
    for (index, root) in documents.iter().enumerate() {
        let place = Place { document: Some(index + 1), position: Some(root.position), path: String::new() };
        document(root, place, &mut conversion)?;
    }
    Ok(conversion)
}

/// Where the parts of a converted object come from and go to.
struct Source<'a> {
    metadata: Option<fields::Field<'a>>,
    spec: Option<fields::Field<'a>>,
    place: Place,
}

/// A function that converts one kind.
type Converter = fn(Source<'_>, &mut Vec<Warning>) -> Result<Value, ConvertError>;

fn converter(api_version: &str, kind: &str) -> Option<Converter> {
    Some(match (api_version, kind) {
        ("fogguru.eu/v1", "MultiClusterDeployment") => fogguru::deployment,
        ("fogguru.eu/v1", "MultiClusterJob") => fogguru::job,
        ("fogguru.eu/v1", "MultiClusterService") => fogguru::service,
        ("fogguru.eu/v1", "MultiClusterHorizontalPodAutoscaler") => fogguru::autoscaler,
        ("fogguru.eu/v1", "CloudProvisioner") => fogguru::cloud_provisioner,
        ("fogguru.eu/v1", "MultiClusterRescheduler") => fogguru::rescheduler,
        ("offloading.liqo.io/v1alpha1", "NamespaceOffloading") => liqo::namespace_offloading,
        ("feature.kubefed.io/v1alpha1", "FeatureConfig") => kubefed::feature_config,
        _ => return None,
    })
}

fn document(root: &Node, place: Place, conversion: &mut Conversion) -> Result<(), ConvertError> {
    let mut fields = Fields::new(root, place.clone())?;
    let api_version = fields.require("apiVersion")?.text()?.to_owned();
    let kind_field = fields.require("kind")?;
    let kind = kind_field.text()?.to_owned();
    if (api_version.as_str(), kind.as_str()) == ("v1", "List") {
        return list(fields, conversion);
    }
    let liqos_cluster =
        (api_version.as_str(), kind.as_str()) == ("discovery.liqo.io/v1alpha1", "ForeignCluster");
    let converter = converter(&api_version, &kind);
    if converter.is_none() && !liqos_cluster {
        return Err(ConvertError {
            place: kind_field.place,
            problem: Problem::UnknownDocument { api_version, kind },
        });
    }
    if let Some(status) = fields.take("status") {
        conversion.warnings.push(Warning {
            place: status.place,
            message: "the status is not carried over: Portolan finds it out anew".to_owned(),
        });
    }
    let source = Source { metadata: fields.take("metadata"), spec: fields.take("spec"), place };
    fields.finish()?;
    let Some(converter) = converter else {
        return liqo::foreign_cluster(source, &mut conversion.warnings);
    };
    let place = source.place.clone();
    let object = converter(source, &mut conversion.warnings)?;
    let kind = object["kind"].as_str().unwrap_or_default();
    if crate::EXPERIMENTAL_KINDS.contains(&kind) {
        let message = format!(
            "no controller serves {kind} yet: a hub takes it only after `portolan crds --experimental`, and nothing \
             happens then"
        );
        conversion.warnings.push(Warning { place, message });
    }
    conversion.documents.push(object);
    Ok(())
}

fn list(mut fields: Fields<'_>, conversion: &mut Conversion) -> Result<(), ConvertError> {
    let items = fields.require("items")?;
    fields.take("metadata");
    fields.finish()?;
    for item in items.sequence()? {
        document(item.node, item.place, conversion)?;
    }
    Ok(())
}

impl<'a> Source<'a> {
    /// The fields of the spec, which must be there.
    fn spec(&self) -> Result<Fields<'a>, ConvertError> {
        match &self.spec {
            Some(spec) => Fields::new(spec.node, spec.place.clone()),
            None => Err(ConvertError {
                place: self.place.clone(),
                problem: Problem::MissingField { field: "spec".to_owned() },
            }),
        }
    }

    /// The converted object.
    fn finish(self, target: Target, warnings: &mut Vec<Warning>) -> Result<Value, ConvertError> {
        let metadata = metadata::convert(self.metadata, &self.place, target.namespaced(), warnings)?;
        Ok(target.into_object(metadata))
    }
}
