//! Reviews: questions about who somebody is and what they may do. They are answered, never stored.

use serde_json::{Map, Value, json};

use super::{Attributes, User};
use crate::api::Api;
use crate::error::{ApiError, Cause};
use crate::registry::Resource;
use crate::store::at;

impl Api {
    /// Answers a review.
    pub(crate) fn review(
        &self,
        row: &Resource,
        namespace: &str,
        user: &User,
        mut body: Value,
    ) -> Result<Value, ApiError> {
        if !body.is_object() {
            return Err(ApiError::bad_request(format!("the body must be one {} object", row.kind)));
        }
        if row.kind == "TokenReview"
            && at(&body, "/spec/token").and_then(Value::as_str).is_none_or(str::is_empty)
        {
            return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
        }
        if row.kind.ends_with("AccessReview") {
            let given = |field: &str| at(&body, &format!("/spec/{field}")).is_some_and(Value::is_object);
            if given("resourceAttributes") == given("nonResourceAttributes") {
                let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
                let cause = Cause::invalid("spec.resourceAttributes", &Value::Null, detail);
                return Err(ApiError::invalid(&row.group, "", "", &[cause]));
            }
        }
        body["apiVersion"] = json!(row.api_version());
        body["kind"] = json!(row.kind);
        if body.get("metadata").is_none() {
            body["metadata"] = json!({});
        }
        let status = match row.kind.as_str() {
            "SelfSubjectReview" => {
                body["metadata"]["creationTimestamp"] = self.time();
                json!({"userInfo": user_info(user)})
            }
            "TokenReview" => {
                let token = at(&body, "/spec/token").and_then(Value::as_str).unwrap_or_default();
                match self.user_of_token(token) {
                    Some(found) => json!({"authenticated": true, "user": user_info(&found)}),
                    None => {
                        json!({"error": "[invalid bearer token, Token has been invalidated]", "user": {}})
                    }
                }
            }
            "SelfSubjectRulesReview" => {
                let asked = at(&body, "/spec/namespace").and_then(Value::as_str).unwrap_or_default();
                if asked.is_empty() {
                    return Err(ApiError::bad_request("no namespace on request"));
                }
                let status = self.rules_status(user, asked);
                // The answer does not repeat the question.
                body["spec"] = json!({});
                status
            }
            "SelfSubjectAccessReview" => self.access(user, &body["spec"], None),
            "LocalSubjectAccessReview" => {
                self.access(&subject(&body["spec"]), &body["spec"], Some(namespace))
            }
            _ => self.access(&subject(&body["spec"]), &body["spec"], None),
        };
        body["status"] = status;
        Ok(body)
    }

    fn access(&self, user: &User, spec: &Value, namespace: Option<&str>) -> Value {
        let text = |pointer: &str| at(spec, pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let wanted = match spec.get("nonResourceAttributes") {
            Some(_) => Attributes {
                verb: text("/nonResourceAttributes/verb"),
                path: Some(text("/nonResourceAttributes/path")),
                ..Attributes::default()
            },
            None => Attributes {
                verb: text("/resourceAttributes/verb"),
                group: text("/resourceAttributes/group"),
                resource: text("/resourceAttributes/resource"),
                subresource: text("/resourceAttributes/subresource"),
                namespace: namespace.map_or_else(|| text("/resourceAttributes/namespace"), str::to_owned),
                name: text("/resourceAttributes/name"),
                path: None,
            },
        };
        if self.may(user, &wanted) {
            json!({"allowed": true, "reason": "RBAC: allowed"})
        } else {
            json!({"allowed": false})
        }
    }

    fn rules_status(&self, user: &User, namespace: &str) -> Value {
        let mut rules = Vec::new();
        if user.is_master() {
            rules.push(json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}));
            rules.push(json!({"nonResourceURLs": ["*"], "verbs": ["*"]}));
        }
        rules.extend(self.rules_of(user, namespace).iter().cloned());
        // A rule of a role may be about both.
        let about = |fields: [&str; 4]| -> Vec<Value> {
            let named = rules.iter().filter(|rule| given(rule, fields[0]));
            let part = |rule: &Value| -> Value {
                let fields = fields.iter().filter(|field| given(rule, field));
                fields.map(|field| ((*field).to_owned(), rule[*field].clone())).collect::<Map<_, _>>().into()
            };
            named.map(part).collect()
        };
        json!({
            "resourceRules": about(["resources", "verbs", "apiGroups", "resourceNames"]),
            "nonResourceRules": about(["nonResourceURLs", "verbs", "", ""]),
            "incomplete": false,
        })
    }
}

fn given(rule: &Value, field: &str) -> bool {
    rule.get(field).and_then(Value::as_array).is_some_and(|list| !list.is_empty())
}

fn user_info(user: &User) -> Value {
    let mut out = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        out["uid"] = json!(user.uid);
    }
    if !user.extra.is_empty() {
        out["extra"] = json!(user.extra);
    }
    out
}

fn subject(spec: &Value) -> User {
    let groups = spec.get("groups").and_then(Value::as_array);
    User {
        name: spec.get("user").and_then(Value::as_str).unwrap_or_default().to_owned(),
        groups: groups.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
        ..User::named("")
    }
}
