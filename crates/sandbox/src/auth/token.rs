//! Bearer tokens: the administrator's, and those of service accounts.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::User;
use crate::api::{Api, Writer};
use crate::error::{About, ApiError, Cause};
use crate::store::{ObjectKey, at};

/// How long a token lasts if nobody says.
const LIFE: i64 = 3600;
const SHORTEST_LIFE: i64 = 600;

impl Api {
    /// A token that may do everything.
    pub(crate) fn admin_token(&self) -> String {
        BASE64.encode(Sha256::new().chain_update(self.token_key).chain_update(b"admin").finalize())
    }

    /// Who a token is, if it is one of this cluster's.
    pub(crate) fn user_of_token(&self, token: &str) -> Option<User> {
        if token == self.admin_token() {
            return Some(User::admin());
        }
        let (signed, signature) = token.rsplit_once('.')?;
        if signature != self.signature(signed) {
            return None;
        }
        let (_, claims) = signed.split_once('.')?;
        let claims: Value = serde_json::from_slice(&BASE64.decode(claims).ok()?).ok()?;
        let expires = claims.get("exp").and_then(Value::as_i64)?;
        if self.now().as_second() >= expires {
            return None;
        }
        let text = |pointer: &str| at(&claims, pointer).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) =
            (text("/kubernetes.io/namespace"), text("/kubernetes.io/serviceaccount/name"));
        let account = self.store.get("/serviceaccounts", &ObjectKey::new(namespace, name))?.value();
        let same = at(&account, "/metadata/uid").and_then(Value::as_str)
            == Some(text("/kubernetes.io/serviceaccount/uid"));
        (same && self.bound_secret_is_there(&claims)).then(|| User::service_account(namespace, name))
    }

    /// A token that is bound to a Secret is worth nothing without it, nor with another one of the same name.
    fn bound_secret_is_there(&self, claims: &Value) -> bool {
        let Some(bound) = at(claims, "/kubernetes.io/secret") else { return true };
        let text =
            |object: &Value, pointer: &str| at(object, pointer).and_then(Value::as_str).map(str::to_owned);
        let namespace = text(claims, "/kubernetes.io/namespace").unwrap_or_default();
        let key = ObjectKey::new(&namespace, &text(bound, "/name").unwrap_or_default());
        let found = self.store.get("/secrets", &key).map(|secret| secret.value());
        found.is_some_and(|secret| text(&secret, "/metadata/uid") == text(bound, "/uid"))
    }

    /// The Secret that a token is to be bound to, as its claims name it.
    fn secret_to_bind(&self, key: &ObjectKey, wanted: &Value) -> Result<Option<Value>, ApiError> {
        let Some(bound) = at(wanted, "/spec/boundObjectRef").filter(|bound| bound.is_object()) else {
            return Ok(None);
        };
        let text = |field: &str| bound.get(field).and_then(Value::as_str).unwrap_or_default();
        let (kind, version, name) = (text("kind"), text("apiVersion"), text("name"));
        if (kind, version) != ("Secret", "v1") {
            let account = &key.name;
            let message =
                format!("cannot bind token for serviceaccount {account:?} to type {version}, Kind={kind}");
            return Err(ApiError::bad_request(message));
        }
        let row = self.row("", "secrets")?;
        let secret = self.live(&row, &key.namespace, name)?.value();
        let uid = at(&secret, "/metadata/uid").and_then(Value::as_str).unwrap_or_default();
        if !text("uid").is_empty() && text("uid") != uid {
            let why = format!(
                "the UID in the bound object reference ({}) does not match the UID in record. The object might have \
                 been deleted and then recreated",
                text("uid")
            );
            return Err(ApiError::conflict(About { group: "", resource: "Secret", name }, &why));
        }
        Ok(Some(json!({"name": name, "uid": uid})))
    }

    /// Answers a TokenRequest for a service account.
    pub(crate) fn request_token(
        &self,
        key: &ObjectKey,
        mut request: Value,
        writer: &Writer,
    ) -> Result<Value, ApiError> {
        let row = self.row("", "serviceaccounts")?;
        let account = self.live(&row, &key.namespace, &key.name)?.value();
        let seconds = at(&request, "/spec/expirationSeconds").and_then(Value::as_i64).unwrap_or(LIFE);
        if seconds < SHORTEST_LIFE {
            let cause = Cause::invalid(
                "spec.expirationSeconds",
                &json!(seconds),
                "may not specify a duration less than 10 minutes",
            );
            return Err(ApiError::invalid("authentication.k8s.io", "TokenRequest", "", &[cause]));
        }
        // Policies see what was filled in.
        request["spec"]["expirationSeconds"] = json!(seconds);
        request["metadata"]["name"] = json!(&*key.name);
        request["metadata"]["namespace"] = json!(&*key.namespace);
        self.check_expressions_of(&row, "token", None, &request, writer)?;
        let bound = self.secret_to_bind(key, &request)?;
        let now = self.now();
        let ends = now.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
        let audiences = request
            .pointer("/spec/audiences")
            .cloned()
            .unwrap_or_else(|| json!(["https://kubernetes.default.svc"]));
        let mut claims = json!({
            "iss": "https://kubernetes.default.svc",
            "aud": audiences,
            "sub": format!("system:serviceaccount:{}:{}", key.namespace, key.name),
            "iat": now.as_second(),
            "nbf": now.as_second(),
            "exp": ends.as_second(),
            "kubernetes.io": {
                "namespace": &*key.namespace,
                "serviceaccount": {"name": &*key.name, "uid": at(&account, "/metadata/uid")},
            },
        });
        if let Some(secret) = bound {
            claims["kubernetes.io"]["secret"] = secret;
        }
        let signed = format!(
            "{}.{}",
            BASE64.encode(r#"{"alg":"HS256","typ":"JWT"}"#),
            BASE64.encode(claims.to_string())
        );
        let token = format!("{signed}.{}", self.signature(&signed));
        request["apiVersion"] = json!("authentication.k8s.io/v1");
        request["kind"] = json!("TokenRequest");
        request["spec"]["audiences"] = audiences;
        let ends = Timestamp::from_second(ends.as_second()).unwrap_or(ends);
        request["status"] = json!({"token": token, "expirationTimestamp": ends.to_string()});
        Ok(request)
    }

    fn signature(&self, signed: &str) -> String {
        let inner = Sha256::new().chain_update(self.token_key).chain_update(signed.as_bytes()).finalize();
        BASE64.encode(Sha256::new().chain_update(self.token_key).chain_update(inner).finalize())
    }
}
