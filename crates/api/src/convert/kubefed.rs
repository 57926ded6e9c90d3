//! The feature controller of KubeFed: `feature.kubefed.io/v1alpha1`.

use serde_json::Value;

use super::{
    Source,
    carry::Target,
    place::{ConvertError, Problem, Warning},
};
use crate::FeatureConfig;

pub(super) fn feature_config(source: Source<'_>, warnings: &mut Vec<Warning>) -> Result<Value, ConvertError> {
    let mut spec = source.spec()?;
    let mut target = Target::new::<FeatureConfig>();
    target.carry(&mut spec, &["cpumanagementpolicy", "podpreset", "networkpolicy"])?;
    spec.finish()?;
    let name = match &source.metadata {
        Some(metadata) => metadata.fields()?.take("name"),
        None => None,
    };
    let mut object = source.finish(target, warnings)?;
    if let Some(field) = name {
        let name = field.text()?;
        let lowered = name.to_lowercase();
        if !is_object_name(&lowered) {
            let expected = "a name consists of lower-case letters, digits, '-' and '.'".to_owned();
            let problem = Problem::WrongValue { value: name.to_owned(), expected };
            return Err(ConvertError { place: field.place, problem });
        }
        if lowered != name {
            object["metadata"]["name"] = lowered.clone().into();
            let message = format!(
                "the name {name} is written as {lowered}: Kubernetes takes no capital letters in names"
            );
            warnings.push(Warning { place: field.place, message });
        }
    }
    Ok(object)
}

/// Whether a text is a DNS subdomain, as names of objects must be.
fn is_object_name(text: &str) -> bool {
    let label = |label: &str| {
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        edge(label.chars().next())
            && edge(label.chars().last())
            && label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    text.len() <= 253 && text.split('.').all(label)
}
