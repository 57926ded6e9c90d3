//! mck8s: `fogguru.eu/v1`.

use serde_json::{Value, json};

use super::{
    Source,
    carry::Target,
    fields::{Field, Fields},
    place::{ConvertError, Problem, Warning},
};
use crate::{
    CloudProvisioner, MultiClusterDeployment, MultiClusterHorizontalPodAutoscaler, MultiClusterJob,
    MultiClusterRescheduler, MultiClusterService,
};

/// The `apiVersion` of mck8s.
const API_VERSION: &str = "fogguru.eu/v1";

type Converted = Result<Value, ConvertError>;

pub(super) fn deployment(source: Source<'_>, warnings: &mut Vec<Warning>) -> Converted {
    let mut spec = source.spec()?;
    let mut target = Target::new::<MultiClusterDeployment>();
    placement(&mut spec, &mut target, warnings)?;
    let bursting = switch(&mut spec, "enableBursting")?;
    if let Some(field) = &bursting {
        target.carry_field("enableBursting", field)?;
    }
    if let Some(policy) = spec.take("burstingPolicy") {
        if is_on(bursting.as_ref())? {
            target.carry_field("burstingPolicy", &policy)?;
        } else {
            warn(
                warnings,
                policy,
                "burstingPolicy is left out: it has no effect without enableBursting: true",
            );
        }
    }
    for name in ["selector", "template", "replicas"] {
        target.carry_required(&mut spec, name)?;
    }
    target.carry(
        &mut spec,
        &["strategy", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds", "paused"],
    )?;
    spec.finish()?;
    source.finish(target, warnings)
}

pub(super) fn job(source: Source<'_>, warnings: &mut Vec<Warning>) -> Converted {
    let mut spec = source.spec()?;
    let mut target = Target::new::<MultiClusterJob>();
    placement(&mut spec, &mut target, warnings)?;
    target.carry_required(&mut spec, "template")?;
    target.carry(
        &mut spec,
        &[
            "completions",
            "parallelism",
            "completionMode",
            "backoffLimit",
            "activeDeadlineSeconds",
            "ttlSecondsAfterFinished",
            "suspend",
            "podFailurePolicy",
        ],
    )?;
    for name in ["enableBursting", "burstingPolicy"] {
        if let Some(field) = spec.take(name) {
            warn(
                warnings,
                field,
                "a job does not burst: give it more locations, or enableSubstitution, instead",
            );
        }
    }
    spec.finish()?;
    source.finish(target, warnings)
}

pub(super) fn service(source: Source<'_>, warnings: &mut Vec<Warning>) -> Converted {
    let mut spec = source.spec()?;
    let mut target = Target::new::<MultiClusterService>();
    for name in ["selector", "ports"] {
        target.carry_required(&mut spec, name)?;
    }
    target.carry(
        &mut spec,
        &[
            "type",
            "clusterIP",
            "sessionAffinity",
            "publishNotReadyAddresses",
            "externalTrafficPolicy",
            "internalTrafficPolicy",
        ],
    )?;
    spec.finish()?;
    source.finish(target, warnings)
}

pub(super) fn autoscaler(source: Source<'_>, warnings: &mut Vec<Warning>) -> Converted {
    let mut spec = source.spec()?;
    let mut target = Target::new::<MultiClusterHorizontalPodAutoscaler>();
    let reference = scale_target(&spec.require("scaleTargetRef")?)?;
    target.set("scaleTargetRef", reference);
    target.carry_required(&mut spec, "maxReplicas")?;
    target.carry(&mut spec, &["minReplicas", "metrics", "behavior"])?;
    spec.finish()?;
    source.finish(target, warnings)
}

fn scale_target(field: &Field<'_>) -> Converted {
    let mut fields = field.fields()?;
    let api_version = fields.require("apiVersion")?;
    let kind = fields.require("kind")?;
    let name = fields.require("name")?.text()?;
    fields.finish()?;
    let check = |field: &Field<'_>, only: &str| {
        let value = field.text()?;
        if value == only {
            return Ok(());
        }
        let expected = format!("it must be {only}, since nothing else can be scaled over clusters");
        let problem = Problem::WrongValue { value: value.to_owned(), expected };
        Err(ConvertError { place: field.place.clone(), problem })
    };
    check(&api_version, API_VERSION)?;
    check(&kind, "MultiClusterDeployment")?;
    Ok(json!({ "apiVersion": crate::API_VERSION, "kind": "MultiClusterDeployment", "name": name }))
}

pub(super) fn cloud_provisioner(source: Source<'_>, warnings: &mut Vec<Warning>) -> Converted {
    let mut spec = source.spec()?;
    let mut target = Target::new::<CloudProvisioner>();
    for name in ["cloudClusterName", "cloudProvider"] {
        target.carry_required(&mut spec, name)?;
    }
    target.carry(&mut spec, &["region", "floatingIP"])?;
    // The paper's field, then those of the prototype's example.
    for name in ["credentials", "cloudsYaml", "certText"] {
        if let Some(credentials) = spec.take(name) {
            warn(
                warnings,
                credentials,
                "credentials are not carried over, since everybody who may list CloudProvisioners could read them: \
                 put them into a Secret, name it in spec.credentialsSecretRef, and revoke those that stood here",
            );
        }
    }
    for name in ["gatewayIP", "extNetworkID", "securityGroupID"] {
        if let Some(field) = spec.take(name) {
            warn(
                warnings,
                field,
                "settings of one cloud are not carried over: give them to the Cluster API class, in \
                 spec.clusterClass.variables",
            );
        }
    }
    spec.finish()?;
    source.finish(target, warnings)
}

pub(super) fn rescheduler(source: Source<'_>, warnings: &mut Vec<Warning>) -> Converted {
    // mck8s gives this kind no spec: its name is all.
    if let Some(spec) = &source.spec {
        spec.fields()?.finish()?;
    }
    source.finish(Target::new::<MultiClusterRescheduler>(), warnings)
}

/// The fields that deployments and jobs share. In mck8s locations win over everything else that chooses clusters;
/// what they make idle is left out with a warning, since our rules refuse contradictions.
fn placement(
    spec: &mut Fields<'_>,
    target: &mut Target,
    warnings: &mut Vec<Warning>,
) -> Result<(), ConvertError> {
    let locations = match spec.take("locations") {
        Some(field) => names(&field)?,
        None => Vec::new(),
    };
    let by_name = !locations.is_empty();
    if by_name {
        target.set("locations", json!(locations));
    }
    if let Some(policy) = spec.take("placementPolicy") {
        match (policy.text()?, by_name) {
            ("cluster-affinity", true) | (_, false) => target.carry_field("placementPolicy", &policy)?,
            (_, true) => {
                warn(warnings, policy, "placementPolicy is left out: the locations decide, as in mck8s")
            }
        }
    }
    if let Some(number) = spec.take("numberOfLocations") {
        if by_name {
            warn(
                warnings,
                number,
                "numberOfLocations is left out: the locations say the number by themselves",
            );
        } else {
            target.carry_field("numberOfLocations", &number)?;
        }
    }
    let substitution = switch(spec, "enableSubstitution")?;
    let substitutes = is_on(substitution.as_ref())?;
    match substitution {
        Some(field) if by_name || !substitutes => target.carry_field("enableSubstitution", &field)?,
        Some(field) => {
            warn(
                warnings,
                field,
                "enableSubstitution is left out: without locations there is nothing to substitute",
            );
        }
        None => {}
    }
    if let Some(policy) = spec.take("substitutionPolicy") {
        if by_name && substitutes {
            target.carry_field("substitutionPolicy", &policy)?;
        } else {
            warn(
                warnings,
                policy,
                "substitutionPolicy is left out: it has no effect without locations and enableSubstitution: true",
            );
        }
    }
    Ok(())
}

/// `cluster2, cluster5`: the names of clusters in one text, as mck8s writes them.
fn names(field: &Field<'_>) -> Result<Vec<String>, ConvertError> {
    let text = field.text()?;
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    let mut seen = std::collections::BTreeSet::new();
    let wrong = names.iter().find(|name| name.is_empty() || !seen.insert(name.as_str()));
    match wrong {
        None => Ok(names),
        Some(_) => Err(ConvertError {
            place: field.place.clone(),
            problem: Problem::WrongValue {
                value: text.to_owned(),
                expected: "it must be names of different clusters with commas between them, such as cluster2, cluster5"
                    .to_owned(),
            },
        }),
    }
}

/// A field that is true or false.
fn switch<'a>(spec: &mut Fields<'a>, name: &str) -> Result<Option<Field<'a>>, ConvertError> {
    let field = spec.take(name);
    if let Some(field) = &field {
        field.boolean()?;
    }
    Ok(field)
}

fn is_on(field: Option<&Field<'_>>) -> Result<bool, ConvertError> {
    field.map_or(Ok(false), Field::boolean)
}

fn warn(warnings: &mut Vec<Warning>, field: Field<'_>, message: &str) {
    warnings.push(Warning { place: field.place, message: message.to_owned() });
}
