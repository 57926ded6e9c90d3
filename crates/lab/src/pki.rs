//! Keys and certificates of a cluster, and the kubeconfigs made of them.

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use serde_json::json;

/// A lab is made for an hour and forgotten for a week; its keys last a little longer than what `portolan doctor` warns of.
const LIFETIME: Duration = Duration::from_secs(60 * 24 * 3600);

/// A certificate authority.
pub(crate) struct Authority {
    pub(crate) certificate: String,
    pub(crate) key: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, both in PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Result<Self> {
        let params = authority_params(name)?;
        let key = KeyPair::generate().context("cannot make a key")?;
        let certificate =
            params.self_signed(&key).with_context(|| format!("cannot make the authority {name}"))?;
        Ok(Authority {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            issuer: Issuer::new(params, key),
        })
    }

    /// The authority of that name that was made before.
    pub(crate) fn load(name: &str, certificate: String, key: &str) -> Result<Self> {
        let pair = KeyPair::from_pem(key).with_context(|| format!("cannot read the key of {name}"))?;
        Ok(Authority { certificate, key: key.to_owned(), issuer: Issuer::new(authority_params(name)?, pair) })
    }

    /// A client certificate for a user of a group.
    pub(crate) fn client(&self, user: &str, group: Option<&str>) -> Result<Identity> {
        self.issue(user, group, &[], &[])
    }

    /// A certificate for a server under these names and addresses; it serves as a client certificate too.
    pub(crate) fn server(
        &self,
        user: &str,
        group: Option<&str>,
        names: &[&str],
        addresses: &[Ipv4Addr],
    ) -> Result<Identity> {
        self.issue(user, group, names, addresses)
    }

    fn issue(
        &self,
        user: &str,
        group: Option<&str>,
        names: &[&str],
        addresses: &[Ipv4Addr],
    ) -> Result<Identity> {
        let mut params = params(user, group)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        if !(names.is_empty() && addresses.is_empty()) {
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        }
        for name in names {
            params.subject_alt_names.push(SanType::DnsName((*name).try_into().context("not a DNS name")?));
        }
        params
            .subject_alt_names
            .extend(addresses.iter().map(|address| SanType::IpAddress(IpAddr::V4(*address))));
        let key = KeyPair::generate().context("cannot make a key")?;
        let certificate = params
            .signed_by(&key, &self.issuer)
            .with_context(|| format!("cannot make the certificate of {user}"))?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    /// A kubeconfig with one context, named like the cluster.
    pub(crate) fn kubeconfig(&self, cluster: &str, server: &str, identity: &Identity) -> Result<String> {
        let user = format!("{cluster}-admin");
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": cluster, "cluster": {
                "server": server,
                "certificate-authority-data": STANDARD.encode(&self.certificate),
            } }],
            "users": [{ "name": user, "user": {
                "client-certificate-data": STANDARD.encode(&identity.certificate),
                "client-key-data": STANDARD.encode(&identity.key),
            } }],
            "contexts": [{ "name": cluster, "context": { "cluster": cluster, "user": user } }],
            "current-context": cluster,
        });
        Ok(serde_json::to_string_pretty(&config)?)
    }
}

/// One kubeconfig with the clusters, users and contexts of all; the first one's context is the current one.
pub(crate) fn merge_kubeconfigs(configs: &[String]) -> Result<String> {
    let mut merged =
        json!({ "apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": [] });
    for config in configs {
        let mut config: serde_json::Value =
            serde_json::from_str(config).context("not a kubeconfig of the lab")?;
        for list in ["clusters", "users", "contexts"] {
            let added = config[list].take();
            if let (Some(all), serde_json::Value::Array(added)) = (merged[list].as_array_mut(), added) {
                all.extend(added);
            }
        }
        if merged.get("current-context").is_none() {
            merged["current-context"] = config["current-context"].take();
        }
    }
    Ok(serde_json::to_string_pretty(&merged)?)
}

fn authority_params(name: &str) -> Result<CertificateParams> {
    let mut params = params(name, None)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::CrlSign];
    Ok(params)
}

fn params(name: &str, group: Option<&str>) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new()).context("cannot make certificate parameters")?;
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    let now = SystemTime::now();
    // A clock set back a little must not make a new certificate one of the future.
    params.not_before = (now - Duration::from_secs(600)).into();
    params.not_after = (now + LIFETIME).into();
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_kubeconfigs_keep_every_context_and_the_first_as_current() {
        let config = |name: &str| {
            let ca = Authority::new(name).unwrap();
            let admin = ca.client("admin", Some("system:masters")).unwrap();
            ca.kubeconfig(name, "https://198.18.0.65:6443", &admin).unwrap()
        };
        let merged: serde_json::Value =
            serde_json::from_str(&merge_kubeconfigs(&[config("c1"), config("c2")]).unwrap()).unwrap();
        assert_eq!(merged["current-context"], "c1");
        assert_eq!(merged["contexts"][1]["name"], "c2");
        assert_eq!(merged["users"].as_array().unwrap().len(), 2);
    }
}
