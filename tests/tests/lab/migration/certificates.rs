//! The certificates of two agents, as a peering gives them: each cluster has an authority of its own.

use anyhow::Result;
use portolan_tests::migration::Peer;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};

/// One side of a peering.
struct Side {
    name: String,
    identity: String,
    authority: String,
    certificate: String,
    key: String,
}

impl Side {
    fn new(name: &str) -> Result<Self> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, format!("agents of {name}"));
        let authority = params.self_signed(&key)?.pem();
        let issuer = Issuer::new(params, key);

        let identity = format!("spiffe://{name}/portolan-agent");
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.subject_alt_names.push(SanType::URI(identity.as_str().try_into()?));
        let certificate = params.signed_by(&key, &issuer)?.pem();
        Ok(Self { name: name.to_owned(), identity, authority, certificate, key: key.serialize_pem() })
    }

    /// What the agent of this side is told of the other one.
    fn towards(&self, other: &Self) -> Peer {
        Peer {
            name: other.name.clone(),
            identity: other.identity.clone(),
            authority: other.authority.clone(),
            certificate: self.certificate.clone(),
            key: self.key.clone(),
        }
    }
}

/// What the agent of each cluster is told of the other.
pub(super) fn peers(one: &str, other: &str) -> Result<[Peer; 2]> {
    let (one, other) = (Side::new(one)?, Side::new(other)?);
    Ok([one.towards(&other), other.towards(&one)])
}
