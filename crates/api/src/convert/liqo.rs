//! Liqo 0.5: `discovery.liqo.io/v1alpha1` and `offloading.liqo.io/v1alpha1`.

use serde_json::Value;

use super::{
    Source,
    carry::Target,
    fields::Field,
    place::{ConvertError, Problem, Warning},
};
use crate::{ForeignCluster, NamespaceOffloading, namespaceoffloading::OFFLOADING_NAME};

/// What Liqo says about a peering. Portolan's members have another identity and other credentials.
const PEERING: [&str; 8] = [
    "insecureSkipTLSVerify",
    "peeringType",
    "outgoingPeeringEnabled",
    "incomingPeeringEnabled",
    "networkingEnabled",
    "foreignAuthUrl",
    "foreignProxyUrl",
    "ttl",
];

/// A ForeignCluster of Liqo becomes no object: its cluster ID is not the one that Portolan knows the cluster by, and its
/// credentials stay in Liqo. The warning names the command that makes the cluster a member.
pub(super) fn foreign_cluster(source: Source<'_>, warnings: &mut Vec<Warning>) -> Result<(), ConvertError> {
    let mut spec = source.spec()?;
    let mut identity = spec.require("clusterIdentity")?.fields()?;
    identity.require("clusterID")?;
    let name = identity.require("clusterName")?.text()?.to_owned();
    identity.finish()?;
    let mut left = Vec::new();
    for field in PEERING {
        left.extend(spec.take(field).map(|_| field));
    }
    spec.finish()?;
    let place = source.place.clone();
    let mut target = Target::new::<ForeignCluster>();
    target.set("clusterIdentity", Value::Null);
    let object = source.finish(target, warnings)?;
    let name = object["metadata"]["name"].as_str().unwrap_or(&name);
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    let labels = labels.filter(|(key, _)| !is_liqos(key));
    let labels: String =
        labels.map(|(key, value)| format!(" --label {key}={}", value.as_str().unwrap_or_default())).collect();
    let message = format!(
        "Portolan identifies a cluster by its kube-system namespace and has credentials of its own, so there is no \
         object to apply: run `portolan peer --name {name} --remote-context CONTEXT{labels}`{}",
        if left.is_empty() { String::new() } else { format!("; left out: {}", left.join(", ")) }
    );
    warnings.push(Warning { place, message });
    Ok(())
}

/// Whether a label is one of Liqo's own.
fn is_liqos(key: &str) -> bool {
    key.split_once('/').is_some_and(|(domain, _)| domain == "liqo.io" || domain.ends_with(".liqo.io"))
}

pub(super) fn namespace_offloading(
    source: Source<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Value, ConvertError> {
    if let Some(metadata) = &source.metadata
        && let Some(name) = metadata.fields()?.take("name")
        && name.text()? != OFFLOADING_NAME
    {
        let expected = format!("Liqo takes notice of the name {OFFLOADING_NAME} only");
        let problem = Problem::WrongValue { value: name.text()?.to_owned(), expected };
        return Err(ConvertError { place: name.place, problem });
    }
    let mut spec = source.spec()?;
    let mut target = Target::new::<NamespaceOffloading>();
    target.carry(&mut spec, &["namespaceMappingStrategy", "podOffloadingStrategy"])?;
    if let Some(selector) = spec.take("clusterSelector") {
        check_selector(&selector, warnings)?;
        target.carry_field("clusterSelector", &selector)?;
    }
    spec.finish()?;
    source.finish(target, warnings)
}

/// Names what a Liqo cluster selector can say and ours cannot. Leaving it out would select other clusters, so it is
/// an error.
fn check_selector(selector: &Field<'_>, warnings: &mut Vec<Warning>) -> Result<(), ConvertError> {
    for term in selector.fields()?.require("nodeSelectorTerms")?.sequence()? {
        let mut term = term.fields()?;
        if let Some(fields) = term.take("matchFields") {
            let message = "matchFields looks at fields of nodes, which Portolan does not select clusters by: use \
                           matchExpressions on a label instead";
            return Err(ConvertError {
                place: fields.place,
                problem: Problem::CannotCarry(message.to_owned()),
            });
        }
        let Some(expressions) = term.take("matchExpressions") else { continue };
        for expression in expressions.sequence()? {
            let mut expression = expression.fields()?;
            if let Some(operator) = expression.take("operator")
                && matches!(operator.text()?, "Gt" | "Lt")
            {
                let message = "the operators Gt and Lt compare labels as numbers, which Portolan does not: list the \
                               values with In instead";
                let problem = Problem::CannotCarry(message.to_owned());
                return Err(ConvertError { place: operator.place, problem });
            }
            if let Some(key) = expression.take("key")
                && is_liqos(key.text()?)
            {
                let message = format!(
                    "the label {} is one of Liqo's: it matches only if you give it to your ForeignClusters too",
                    key.text()?
                );
                warnings.push(Warning { place: key.place, message });
            }
        }
    }
    Ok(())
}
