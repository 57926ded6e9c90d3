//! Liqo 0.5: `discovery.liqo.io/v1alpha1` and `offloading.liqo.io/v1alpha1`.

use serde_json::Value;

use super::{
    Source,
    carry::Target,
    fields::Field,
    place::{ConvertError, Problem, Warning},
};
use crate::{ForeignCluster, NamespaceOffloading, namespaceoffloading::OFFLOADING_NAME};

pub(super) fn foreign_cluster(
    source: Source<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Value, ConvertError> {
    let mut spec = source.spec()?;
    let mut target = Target::new::<ForeignCluster>();
    target.carry_required(&mut spec, "clusterIdentity")?;
    let verification = spec.take("insecureSkipTLSVerify");
    match &verification {
        Some(field) => target.carry_field("insecureSkipTLSVerify", field)?,
        None => warnings.push(Warning {
            place: source.place.clone(),
            message:
                "Liqo does not verify the certificate of the authentication service unless told to; Portolan \
                      does: if the certificate is not trusted, set spec.insecureSkipTLSVerify: true"
                    .to_owned(),
        }),
    }
    target.carry(
        &mut spec,
        &[
            "peeringType",
            "outgoingPeeringEnabled",
            "incomingPeeringEnabled",
            "networkingEnabled",
            "foreignAuthUrl",
            "foreignProxyUrl",
            "ttl",
        ],
    )?;
    spec.finish()?;
    warnings.push(Warning {
        place: source.place.clone(),
        message: "the identity that Liqo keeps in Secrets of its tenant namespace is not carried over: run `portolan \
                  peer`, which makes one of its own and names it in spec.credentials"
            .to_owned(),
    });
    source.finish(target, warnings)
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
                && let Some((domain, _)) = key.text()?.split_once('/')
                && (domain == "liqo.io" || domain.ends_with(".liqo.io"))
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
