//! What a Secret says about how a cluster is reached: read and checked, never trusted.

use super::ConnectError;
use super::bearer::check_token;
use super::validity::Validity;
use crate::names::ALLOW_INSECURE_ANNOTATION;
use k8s_openapi::api::core::v1::Secret;
use kube::config::Kubeconfig;
use portolan_api::foreigncluster::SecretKeyRef;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// A kubeconfig out of a Secret.
#[derive(Clone, Debug)]
pub(super) struct Credential {
    /// The kubeconfig without its token.
    pub(super) kubeconfig: Kubeconfig,
    /// The token, if its user has one: it can be replaced while connections are open.
    pub(super) token: Option<String>,
    /// A digest of the certificate and its key, if its user has one: they can be replaced while requests go on.
    pub(super) certificate: Option<String>,
    /// A digest of everything else: if that changes, another connection is needed.
    pub(super) made_of: String,
    /// The resourceVersion of the Secret.
    pub(super) version: Option<String>,
    /// From when to when the token or the client certificate is valid, if it tells.
    pub(super) validity: Option<Validity>,
}

impl Credential {
    /// Reads a key of a Secret.
    ///
    /// # Errors
    /// Why no connection is made with it; never a part of its content.
    pub(super) fn read(secret: &Secret, reference: &SecretKeyRef) -> Result<Self, ConnectError> {
        let name = format!("{}/{}", reference.namespace, reference.name);
        let key = || reference.key.clone();
        let Some(bytes) = secret.data.as_ref().and_then(|data| data.get(&reference.key)) else {
            return Err(ConnectError::NoKey { secret: name, key: key() });
        };
        let unusable =
            |problem: String| ConnectError::Kubeconfig { secret: name.clone(), key: key(), problem };
        let text = std::str::from_utf8(&bytes.0).map_err(|_| unusable("it is not UTF-8 text".to_owned()))?;
        // The parser's own message may quote the text, and with it a credential.
        let mut kubeconfig = Kubeconfig::from_yaml(text)
            .map_err(|_| unusable("it is not valid kubeconfig YAML".to_owned()))?;
        let annotations = secret.metadata.annotations.as_ref();
        let insecure = annotations
            .and_then(|all| all.get(ALLOW_INSECURE_ANNOTATION))
            .is_some_and(|value| value == "true");
        check(&kubeconfig, insecure).map_err(unusable)?;
        let token = take_token(&mut kubeconfig);
        if let Some(token) = &token {
            check_token(token).map_err(|error| unusable(error.to_string()))?;
        }
        let (certificate, rest) = without_certificate(&kubeconfig);
        Ok(Self {
            certificate,
            made_of: digest(&rest),
            validity: Validity::of(token.as_deref(), &kubeconfig),
            kubeconfig,
            token,
            version: secret.metadata.resource_version.clone(),
        })
    }
}

/// Whether the address of an API server can be used: a URL with https, or with http where insecure connections are
/// allowed.
///
/// # Errors
/// What is wrong with it.
pub fn check_server(server: &str, insecure: bool) -> Result<(), String> {
    let refused = |why: &str| Err(format!("server {server:?} {why}"));
    let Ok(url) = server.parse::<http::Uri>() else { return refused("is not a URL") };
    if url.host().is_none_or(str::is_empty) || url.authority().is_some_and(|all| all.as_str().contains('@')) {
        return refused("is not a URL such as https://10.0.0.5:6443");
    }
    match url.scheme_str() {
        Some("https") => Ok(()),
        Some("http") if insecure => Ok(()),
        Some("http") => refused("would send the credential in clear text: use https"),
        _ => refused("does not begin with https://"),
    }
}

/// A kubeconfig from a Secret must stand alone: one that ran a command or read a file would run and read it here. It
/// has one user, so that it is clear whose token is replaced, and its connection is private unless the Secret says that it
/// need not be.
fn check(kubeconfig: &Kubeconfig, insecure: bool) -> Result<(), String> {
    if kubeconfig.auth_infos.len() > 1 {
        let count = kubeconfig.auth_infos.len();
        return Err(format!("it has {count} users; leave the one that Portolan is to use"));
    }
    for user in &kubeconfig.auth_infos {
        let Some(auth) = &user.auth_info else { continue };
        if auth.exec.is_some() || auth.auth_provider.is_some() {
            return Err(format!(
                "user {} runs a command; use a token or a client certificate in it",
                user.name
            ));
        }
        let files = [&auth.client_certificate, &auth.client_key, &auth.token_file];
        if files.iter().any(|file| file.is_some()) {
            return Err(format!("user {} refers to files; put their content into it", user.name));
        }
    }
    let unless = format!("; annotation {ALLOW_INSECURE_ANNOTATION}: \"true\" of the Secret allows it");
    for cluster in &kubeconfig.clusters {
        let Some(described) = &cluster.cluster else { continue };
        if described.certificate_authority.is_some() {
            return Err(format!("cluster {} refers to a file; put its content into it", cluster.name));
        }
        if let Some(server) = &described.server {
            let hint = if check_server(server, true).is_ok() { unless.as_str() } else { "" };
            check_server(server, insecure).map_err(|why| format!("cluster {}: {why}{hint}", cluster.name))?;
        }
        if described.insecure_skip_tls_verify == Some(true) && !insecure {
            return Err(format!(
                "cluster {}: insecure-skip-tls-verify lets anybody answer in its place{unless}",
                cluster.name
            ));
        }
    }
    Ok(())
}

/// Takes the token of the only user out of a kubeconfig, so that it can be replaced while connections are open.
fn take_token(kubeconfig: &mut Kubeconfig) -> Option<String> {
    let auth = kubeconfig.auth_infos.first_mut()?.auth_info.as_mut()?;
    let written = serde_json::to_value(&*auth).ok()?;
    auth.token = None;
    written["token"].as_str().map(str::to_owned)
}

/// A digest of the certificate and key of the only user, and the kubeconfig without them.
fn without_certificate(kubeconfig: &Kubeconfig) -> (Option<String>, Kubeconfig) {
    let mut rest = kubeconfig.clone();
    let auth = rest.auth_infos.first_mut().and_then(|user| user.auth_info.as_mut());
    let Some(auth) = auth.filter(|auth| auth.client_certificate_data.is_some()) else { return (None, rest) };
    auth.client_certificate_data = None;
    auth.client_key_data = None;
    (Some(digest(kubeconfig)), rest)
}

fn digest(kubeconfig: &Kubeconfig) -> String {
    // What cannot be written as JSON has no digest, and is taken for new each time.
    let written = serde_json::to_value(kubeconfig).map(|value| value.to_string()).unwrap_or_default();
    let digest = Sha256::digest(written.as_bytes());
    digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::ByteString;
    use serde_json::{Value, json};

    fn kubeconfig(cluster: Value, users: Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": users,
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        })
    }

    fn user(token: &str) -> Value {
        json!([{"name": "u", "user": {"token": token}}])
    }

    fn read(kubeconfig: &Value, insecure: bool) -> Result<Credential, String> {
        let data = [("kubeconfig".to_owned(), ByteString(kubeconfig.to_string().into_bytes()))].into();
        let mut secret = Secret { data: Some(data), ..Secret::default() };
        if insecure {
            secret.metadata.annotations =
                Some([(ALLOW_INSECURE_ANNOTATION.to_owned(), "true".to_owned())].into());
        }
        let reference = SecretKeyRef { namespace: "n".into(), name: "s".into(), key: "kubeconfig".into() };
        Credential::read(&secret, &reference).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_private_is_refused_unless_the_secret_allows_it() {
        let clear = kubeconfig(json!({"server": "http://10.0.0.5"}), user("t"));
        let unchecked =
            kubeconfig(json!({"server": "https://a", "insecure-skip-tls-verify": true}), user("t"));
        for (config, word) in [(&clear, "clear text"), (&unchecked, "insecure-skip-tls-verify")] {
            let error = read(config, false).unwrap_err();
            assert!(error.contains(word) && error.contains(ALLOW_INSECURE_ANNOTATION), "{error}");
            assert!(read(config, true).is_ok());
        }
    }

    #[test]
    fn an_address_that_is_no_url_is_refused_always() {
        for server in ["foo", "", "ftp://a", "https://", "https://u:p@a", "/x", "https://a b"] {
            let config = kubeconfig(json!({ "server": server }), user("t"));
            assert!(read(&config, true).is_err(), "{server:?} is taken");
        }
        assert!(read(&kubeconfig(json!({"server": "https://[::1]:6443/base"}), user("t")), false).is_ok());
    }

    #[test]
    fn a_second_user_or_a_token_that_cannot_be_sent_is_an_error_and_no_panic() {
        let two = json!([{"name": "u", "user": {"token": "a\nb"}}, {"name": "v", "user": {"token": "t"}}]);
        let error = read(&kubeconfig(json!({"server": "https://a"}), two), false).unwrap_err();
        assert!(error.contains("2 users"), "{error}");
        let error = read(&kubeconfig(json!({"server": "https://a"}), user("SECRET\nx")), false).unwrap_err();
        assert!(error.contains("no HTTP header") && !error.contains("SECRET"), "{error}");
    }

    #[test]
    fn another_token_is_the_same_connection_and_another_address_is_not() {
        let of = |server: &str, token: &str| {
            read(&kubeconfig(json!({ "server": server }), user(token)), false).unwrap()
        };
        let first = of("https://a", "one");
        assert_eq!(first.token.as_deref(), Some("one"));
        assert_eq!(first.made_of, of("https://a", "two").made_of);
        assert_ne!(first.made_of, of("https://b", "one").made_of);
    }

    #[test]
    fn another_certificate_is_the_same_address_and_is_noticed() {
        let of = |server: &str, certificate: &str| {
            let user = json!({"client-certificate-data": certificate, "client-key-data": "a2V5"});
            let users = json!([{"name": "u", "user": user}]);
            read(&kubeconfig(json!({ "server": server }), users), false).unwrap()
        };
        let (first, second) = (of("https://a", "b25l"), of("https://a", "dHdv"));
        assert_eq!(first.made_of, second.made_of);
        assert!(first.certificate.is_some() && first.certificate != second.certificate);
        assert_ne!(first.made_of, of("https://b", "b25l").made_of);
        let token = read(&kubeconfig(json!({"server": "https://a"}), user("one")), false).unwrap();
        assert_eq!(token.certificate, None);
    }
}
