//! The variables of a ClusterClass and the patches that use them.

use serde_json::{Map, Value, json};

use super::json::{flag, list, text};
use super::kinds::Kind;

/// The values of variables, by name.
pub(super) type Variables = Map<String, Value>;

/// Which template a patch may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target<'a> {
    Infrastructure,
    ControlPlane,
    /// A MachineDeployment of this class.
    Workers(&'a str),
}

/// The values of all variables of a class: those given, later ones before earlier ones, or the defaults.
pub(super) fn variables(class: &Value, given: &[&[Value]]) -> Result<Variables, String> {
    let mut values = Variables::new();
    for variable in list(class, "/spec/variables") {
        if let Some(default) = variable.pointer("/schema/openAPIV3Schema/default") {
            values.insert(text(variable, "/name").to_owned(), default.clone());
        }
    }
    for value in given.iter().copied().flatten() {
        let name = text(value, "/name");
        let mut known = list(class, "/spec/variables").iter();
        let variable = known.find(|variable| text(variable, "/name") == name);
        let variable =
            variable.ok_or_else(|| format!("variable {name:?} is not defined in the ClusterClass"))?;
        let given = value.get("value").cloned().unwrap_or_default();
        check(name, &given, variable.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null))?;
        values.insert(name.to_owned(), given);
    }
    for variable in list(class, "/spec/variables").iter().filter(|variable| flag(variable, "/required")) {
        let name = text(variable, "/name");
        if !values.contains_key(name) {
            return Err(format!("variable {name:?} is required, and has neither a value nor a default"));
        }
    }
    Ok(values)
}

fn check(name: &str, value: &Value, schema: &Value) -> Result<(), String> {
    let fits = match text(schema, "/type") {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        _ => true,
    };
    if !fits {
        return Err(format!(
            "variable {name:?}: Invalid value: {value}: must be of type {}",
            text(schema, "/type")
        ));
    }
    let known = list(schema, "/enum");
    if !known.is_empty() && !known.contains(value) {
        let known: Vec<String> = known.iter().map(Value::to_string).collect();
        return Err(format!(
            "variable {name:?}: Unsupported value: {value}: supported values: {}",
            known.join(", ")
        ));
    }
    Ok(())
}

/// A template with all patches of the class that are for it.
pub(super) fn patched(
    class: &Value,
    kind: Kind,
    target: Target<'_>,
    template: &Value,
    variables: &Variables,
) -> Result<Value, String> {
    let mut out = template.clone();
    for patch in list(class, "/spec/patches") {
        let name = text(patch, "/name");
        if patch.get("enabledIf").is_some() || patch.get("external").is_some() {
            return Err(format!(
                "patch {name:?} has enabledIf or external, which the sandbox's Cluster API does not evaluate"
            ));
        }
        for definition in list(patch, "/definitions") {
            if selects(definition.get("selector").unwrap_or(&Value::Null), kind, target) {
                for change in list(definition, "/jsonPatches") {
                    apply(&mut out, change, variables).map_err(|error| format!("patch {name:?}: {error}"))?;
                }
            }
        }
    }
    Ok(out)
}

fn selects(selector: &Value, kind: Kind, target: Target<'_>) -> bool {
    text(selector, "/kind") == kind.name
        && match target {
            Target::Infrastructure => flag(selector, "/matchResources/infrastructureCluster"),
            Target::ControlPlane => flag(selector, "/matchResources/controlPlane"),
            Target::Workers(class) => list(selector, "/matchResources/machineDeploymentClass/names")
                .iter()
                .filter_map(Value::as_str)
                .any(|name| name == class || name == "*"),
        }
}

fn apply(template: &mut Value, change: &Value, variables: &Variables) -> Result<(), String> {
    let mut step = json!({"op": text(change, "/op"), "path": text(change, "/path")});
    if let Some(variable) = change.pointer("/valueFrom/variable").and_then(Value::as_str) {
        let (first, rest) = variable.split_once('.').unwrap_or((variable, ""));
        let rest = if rest.is_empty() { String::new() } else { format!("/{}", rest.replace('.', "/")) };
        let value = variables.get(first).and_then(|value| value.pointer(&rest));
        step["value"] = value.cloned().ok_or_else(|| format!("variable {variable:?} has no value"))?;
    } else if change.pointer("/valueFrom").is_some() {
        return Err("valueFrom.template is not evaluated by the sandbox's Cluster API".to_owned());
    } else if let Some(value) = change.get("value") {
        step["value"] = value.clone();
    }
    let patch: json_patch::Patch =
        serde_json::from_value(json!([step])).map_err(|error| error.to_string())?;
    json_patch::patch(template, &patch).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::kinds::SANDBOX_MACHINE_TEMPLATE;
    use super::*;

    fn class() -> Value {
        json!({"spec": {
            "variables": [
                {"name": "machineType", "required": true, "schema": {"openAPIV3Schema": {"type": "string", "default": "small", "enum": ["small", "large"]}}},
                {"name": "net", "schema": {"openAPIV3Schema": {"type": "object"}}},
            ],
            "patches": [{"name": "type", "definitions": [{
                "selector": {
                    "kind": "SandboxMachineTemplate",
                    "matchResources": {"machineDeploymentClass": {"names": ["default"]}},
                },
                "jsonPatches": [
                    {"op": "replace", "path": "/spec/template/spec/machineType", "valueFrom": {"variable": "machineType"}},
                    {"op": "add", "path": "/spec/template/spec/zone", "valueFrom": {"variable": "net.zone"}},
                ],
            }]}],
        }})
    }

    #[test]
    fn the_value_of_a_pool_goes_before_that_of_the_cluster_and_the_default() {
        let large = [json!({"name": "machineType", "value": "large"})];
        let values = variables(&class(), &[&large]).unwrap();
        assert_eq!(values["machineType"], "large");
        assert_eq!(variables(&class(), &[]).unwrap()["machineType"], "small");
        let small = [json!({"name": "machineType", "value": "small"})];
        assert_eq!(variables(&class(), &[&large, &small]).unwrap()["machineType"], "small");
    }

    #[test]
    fn a_value_that_the_class_does_not_allow_is_named() {
        let given =
            |name: &str, value: Value| variables(&class(), &[&[json!({"name": name, "value": value})]]);
        let error = given("machineType", json!("huge")).unwrap_err();
        assert!(error.contains("Unsupported value: \"huge\"") && error.contains("\"large\""), "{error}");
        assert!(given("colour", json!("red")).unwrap_err().contains("\"colour\" is not defined"));
        assert!(given("net", json!(7)).unwrap_err().contains("must be of type object"));
    }

    #[test]
    fn a_patch_changes_the_template_that_it_selects_and_no_other() {
        let template = json!({"spec": {"template": {"spec": {"machineType": "none"}}}});
        let net = [json!({"name": "net", "value": {"zone": "b"}})];
        let values = variables(&class(), &[&net]).unwrap();
        let with = |target| patched(&class(), SANDBOX_MACHINE_TEMPLATE, target, &template, &values);
        let spec = with(Target::Workers("default")).unwrap()["spec"]["template"]["spec"].clone();
        assert_eq!(spec, json!({"machineType": "small", "zone": "b"}));
        assert_eq!(with(Target::Workers("other")).unwrap(), template);
        assert_eq!(with(Target::ControlPlane).unwrap(), template);
        let unset = variables(&class(), &[]).unwrap();
        let error =
            patched(&class(), SANDBOX_MACHINE_TEMPLATE, Target::Workers("default"), &template, &unset);
        assert!(error.unwrap_err().contains("\"net.zone\" has no value"));
    }
}
