//! What a new template would change.

use portolan_api::placementreview::{ContainerChange, Rollout};
use serde_json::Value;
use std::collections::BTreeMap;

/// What differs between two templates; the pods that are replaced are counted by whoever knows them.
pub(super) fn differences(before: &Value, after: &Value) -> Rollout {
    let (old, new) = (images(before), images(after));
    let mut changed: Vec<ContainerChange> = Vec::new();
    for (container, to) in &new {
        let from = old.get(container).cloned().unwrap_or_default();
        if from != *to {
            changed.push(ContainerChange { container: container.clone(), from, to: to.clone() });
        }
    }
    for (container, from) in old.iter().filter(|(name, _)| !new.contains_key(*name)) {
        changed.push(ContainerChange { container: container.clone(), from: from.clone(), to: String::new() });
    }
    let mut fields = Vec::new();
    for part in ["metadata", "spec"] {
        let (old, new) = (without_images(&before[part]), without_images(&after[part]));
        let names =
            |value: &Value| value.as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>());
        let mut all: Vec<String> = names(&old).into_iter().chain(names(&new)).flatten().collect();
        all.sort();
        all.dedup();
        fields.extend(
            all.into_iter().filter(|name| old[name] != new[name]).map(|name| format!("{part}.{name}")),
        );
    }
    Rollout { images: changed, fields, ..Rollout::default() }
}

fn images(template: &Value) -> BTreeMap<String, String> {
    let lists = ["containers", "initContainers"].map(|list| template["spec"][list].as_array());
    let containers = lists.into_iter().flatten().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    containers.map(|each| (text(&each["name"]), text(&each["image"]))).collect()
}

fn without_images(part: &Value) -> Value {
    let mut part = part.clone();
    for list in ["containers", "initContainers"] {
        for container in part.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(container) = container.as_object_mut() {
                container.remove("image");
            }
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn images_are_told_with_their_container_and_other_changes_by_field() {
        let template = |image: &str, cpu: &str| {
            let requests = json!({"requests": {"cpu": cpu}});
            json!({"spec": {"containers": [{"name": "main", "image": image, "resources": requests}]}})
        };
        let change = |from: &str, to: &str| ContainerChange {
            container: "main".into(),
            from: from.into(),
            to: to.into(),
        };
        let image = differences(&template("app:1", "1"), &template("app:2", "1"));
        assert_eq!((image.images, image.fields), (vec![change("app:1", "app:2")], vec![]));
        let cpu = differences(&template("app:1", "1"), &template("app:1", "2"));
        assert_eq!((cpu.images, cpu.fields), (vec![], vec!["spec.containers".to_owned()]));
    }
}
