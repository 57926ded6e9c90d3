//! ValidatingAdmissionPolicies, as far as they are about kinds, users, objects and namespaces. They have no parameters here,
//! select by nothing but kinds and expressions, and ask no authorizer.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use kube_cel::KubeCelExt;
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context, Program, Value as Cel};
use serde_json::{Value, json};

use super::name_of;
use crate::api::{Api, Writer};
use crate::auth::User;
use crate::error::ApiError;
use crate::registry::Resource;
use crate::store::{ObjectKey, at};

const POLICIES: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";
const BINDINGS: &str = "admissionregistration.k8s.io/validatingadmissionpolicybindings";

/// Expressions that have been parsed, or what is wrong with them.
#[derive(Default)]
pub(crate) struct Expressions(Mutex<BTreeMap<String, Arc<Result<Program, String>>>>);

impl fmt::Debug for Expressions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Expressions")
    }
}

impl Expressions {
    fn evaluate(&self, expression: &str, context: &Context<'_>) -> Result<Cel, String> {
        let program = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let parse = || Arc::new(Program::compile(expression).map_err(|error| error.to_string()));
            Arc::clone(known.entry(expression.to_owned()).or_insert_with(parse))
        };
        let program = program.as_ref().as_ref().map_err(Clone::clone)?;
        program.execute(context).map_err(|error| error.to_string())
    }

    fn holds(&self, expression: &str, context: &Context<'_>) -> Result<bool, String> {
        let wrong = |why: String| format!("expression '{expression}' resulted in error: {why}");
        match self.evaluate(expression, context) {
            Ok(Cel::Bool(holds)) => Ok(holds),
            Ok(other) => Err(wrong(format!("it is {other:?}"))),
            Err(error) => Err(wrong(error)),
        }
    }
}

impl Api {
    /// Refuses what a policy with a binding denies. What the sandbox writes itself passes.
    pub(crate) fn check_expressions(
        &self,
        row: &Resource,
        old: Option<&Value>,
        object: &Value,
        writer: &Writer,
    ) -> Result<(), ApiError> {
        self.check_expressions_of(row, "", old, object, writer)
    }

    /// The same for a subresource: policies name it behind its resource.
    pub(crate) fn check_expressions_of(
        &self,
        row: &Resource,
        subresource: &str,
        old: Option<&Value>,
        object: &Value,
        writer: &Writer,
    ) -> Result<(), ApiError> {
        let Some(user) = writer.user.as_deref() else { return Ok(()) };
        for binding in self.store.scan(BINDINGS, None, None) {
            let binding = binding.value();
            if !list(&binding, "/spec/validationActions").iter().any(|action| action == "Deny") {
                continue;
            }
            let name = text(&binding, "/spec/policyName");
            let Some(policy) = self.store.get(POLICIES, &ObjectKey::new("", name)) else { continue };
            let policy = policy.value();
            if !is_about(&policy, row, subresource, old) {
                continue;
            }
            let context = self.context(row, subresource, old, object, writer.dry_run, user);
            if let Some(why) = self.denied_by(&policy, context) {
                return Err(denial(row, object, (name, text(&binding, "/metadata/name")), &why));
            }
        }
        Ok(())
    }

    /// Why a policy denies a request, if it does.
    fn denied_by(&self, policy: &Value, mut context: Context<'_>) -> Option<String> {
        let fails = text(policy, "/spec/failurePolicy") != "Ignore";
        let expressions = &self.admission.expressions;
        for condition in list(policy, "/spec/matchConditions") {
            match expressions.holds(text(condition, "/expression"), &context) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(why) => return fails.then_some(why),
            }
        }
        // A variable that cannot be told is missing only where it is used.
        let mut variables = Vec::new();
        for variable in list(policy, "/spec/variables") {
            if let Ok(value) = expressions.evaluate(text(variable, "/expression"), &context) {
                variables.push((key(text(variable, "/name")), value));
                context.add_variable_from_value("variables", map(variables.clone()));
            }
        }
        list(policy, "/spec/validations").iter().find_map(|validation| {
            let expression = text(validation, "/expression");
            match expressions.holds(expression, &context) {
                Ok(true) => None,
                Ok(false) if text(validation, "/message").is_empty() => {
                    Some(format!("failed expression: {expression}"))
                }
                Ok(false) => Some(text(validation, "/message").to_owned()),
                Err(why) => fails.then_some(why),
            }
        })
    }

    /// What expressions may ask about.
    fn context(
        &self,
        row: &Resource,
        subresource: &str,
        old: Option<&Value>,
        object: &Value,
        dry_run: bool,
        user: &User,
    ) -> Context<'static> {
        let namespace = text(object, "/metadata/namespace");
        let mut user_info = json!({"username": user.name, "groups": user.groups});
        if !user.uid.is_empty() {
            user_info["uid"] = json!(user.uid);
        }
        let mut request = json!({
            "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
            "kind": {"group": row.group, "version": row.version, "kind": row.kind},
            "resource": {"group": row.group, "version": row.version, "resource": row.plural},
            "name": name_of(object), "namespace": namespace, "dryRun": dry_run, "userInfo": user_info,
        });
        if !subresource.is_empty() {
            request["subResource"] = json!(subresource);
        }
        let found = self.store.get("/namespaces", &ObjectKey::new("", namespace));
        let namespace = found.filter(|_| row.namespaced).map(|found| found.value());
        let mut context = Context::default().with_all();
        context.add_variable_from_value("object", cel(object));
        context.add_variable_from_value("oldObject", old.map_or(Cel::Null, cel));
        context.add_variable_from_value("request", cel(&request));
        context.add_variable_from_value("namespaceObject", namespace.map_or(Cel::Null, |found| cel(&found)));
        context
    }
}

/// Whether the rules of a policy name a request.
fn is_about(policy: &Value, row: &Resource, subresource: &str, old: Option<&Value>) -> bool {
    let resource = match subresource {
        "" => row.plural.to_string(),
        part => format!("{}/{part}", row.plural),
    };
    let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
    let named = |rule: &Value, field: &str, value: &str| {
        list(rule, field).iter().any(|each| each == "*" || each == value)
    };
    list(policy, "/spec/matchConstraints/resourceRules").iter().any(|rule| {
        named(rule, "/apiGroups", &row.group)
            && named(rule, "/apiVersions", &row.version)
            && named(rule, "/resources", &resource)
            && named(rule, "/operations", operation)
    })
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    at(value, pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    at(value, pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A value as expressions see it: keys of maps are as they are written, unlike in rules of schemas.
fn cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => {
            number.as_i64().map_or_else(|| Cel::Float(number.as_f64().unwrap_or(f64::NAN)), Cel::Int)
        }
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(cel).collect())),
        Value::Object(fields) => map(fields.iter().map(|(name, value)| (key(name), cel(value)))),
    }
}

fn key(name: &str) -> Key {
    Key::String(Arc::new(name.to_owned()))
}

fn map(fields: impl IntoIterator<Item = (Key, Cel)>) -> Cel {
    Cel::Map(Map { map: Arc::new(fields.into_iter().collect()) })
}

/// What a policy with a binding says of an object, as ValidatingAdmissionPolicies do if nothing else is said.
pub(super) fn denial(row: &Resource, object: &Value, (policy, binding): (&str, &str), why: &str) -> ApiError {
    let why = format!("ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {why}");
    let mut denied = ApiError::forbidden(row.about(name_of(object)), &why);
    (denied.code, denied.reason) = (422, "Invalid");
    denied
}
