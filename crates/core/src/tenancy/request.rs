//! A request for a certificate (PKCS #10), read and never trusted.

use sha2::{Digest, Sha256};
use std::fmt::Write;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer;
use x509_parser::x509::AttributeTypeAndValue;

/// The longest request that is read.
const LONGEST: usize = 16 << 10;

/// What is asked to be signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateRequest {
    /// The common names of the subject: the user.
    pub common_names: Vec<String>,
    /// Its organizations: the groups.
    pub organizations: Vec<String>,
    /// Whether the subject has further parts, or the request has attributes, such as extensions with alternative names.
    pub has_more: bool,
    /// A digest of the public key.
    pub key_digest: String,
}

/// Why a request cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// Longer than any request.
    #[error("the request has {0} bytes, and at most {LONGEST} are read")]
    TooLong(usize),
    /// Not PEM, not PKCS #10, or cut off.
    #[error("the request is not one certificate request in PEM")]
    Unreadable,
    /// Whoever made it has not the key.
    #[error("the signature of the request is wrong: whoever made it does not have the key")]
    Signature,
}

impl CertificateRequest {
    /// Reads one request in PEM, and checks that whoever made it has the key.
    ///
    /// # Errors
    /// It is no such request.
    pub fn read(text: &[u8]) -> Result<Self, RequestError> {
        if text.len() > LONGEST {
            return Err(RequestError::TooLong(text.len()));
        }
        let mut blocks = Pem::iter_from_buffer(text);
        let block = blocks.next().and_then(Result::ok).ok_or(RequestError::Unreadable)?;
        if block.label != "CERTIFICATE REQUEST" || blocks.next().is_some() {
            return Err(RequestError::Unreadable);
        }
        let (rest, request) =
            X509CertificationRequest::from_der(&block.contents).map_err(|_| RequestError::Unreadable)?;
        if !rest.is_empty() {
            return Err(RequestError::Unreadable);
        }
        request.verify_signature().map_err(|_| RequestError::Signature)?;
        let info = &request.certification_request_info;
        let common_names = texts(info.subject.iter_common_name())?;
        let organizations = texts(info.subject.iter_organization())?;
        let parts = info.subject.iter_attributes().count();
        Ok(Self {
            // A signer may read attributes that are overlooked here, such as a second list of extensions.
            has_more: parts != common_names.len() + organizations.len() || !info.attributes().is_empty(),
            common_names,
            organizations,
            key_digest: hex(&Sha256::digest(info.subject_pki.raw)),
        })
    }
}

fn texts<'a, 'b: 'a>(
    attributes: impl Iterator<Item = &'a AttributeTypeAndValue<'b>>,
) -> Result<Vec<String>, RequestError> {
    attributes.map(|each| each.as_str().map(str::to_owned).map_err(|_| RequestError::Unreadable)).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rcgen::{Attribute, CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

    fn request(edit: impl FnOnce(&mut CertificateParams)) -> (KeyPair, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "jane");
        params.distinguished_name.push(DnType::OrganizationName, "team");
        edit(&mut params);
        let pem = params.serialize_request(&key).unwrap().pem().unwrap();
        (key, pem)
    }

    fn with_attributes(attributes: &[Attribute]) -> (KeyPair, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "jane");
        let request = params.serialize_request_with_attributes(&key, attributes.to_vec()).unwrap();
        (key, request.pem().unwrap())
    }

    #[test]
    fn subject_and_key_are_read_and_everything_else_is_noticed() {
        let (_, pem) = request(|_| {});
        let read = CertificateRequest::read(pem.as_bytes()).unwrap();
        assert_eq!((read.common_names, read.organizations), (vec!["jane".into()], vec!["team".into()]));
        assert!(!read.has_more && read.key_digest.len() == 64);
        let (_, named) = request(|params| {
            params.subject_alt_names = vec![SanType::DnsName("a.example".try_into().unwrap())]
        });
        assert!(CertificateRequest::read(named.as_bytes()).unwrap().has_more);
        let (_, hidden) = with_attributes(&[Attribute {
            oid: &[1, 2, 840, 113_549, 1, 9, 14],
            // A set of one list of extensions, which is empty.
            values: vec![0x31, 0x02, 0x30, 0x00],
        }]);
        assert!(CertificateRequest::read(hidden.as_bytes()).unwrap().has_more);
        let (_, country) = request(|params| params.distinguished_name.push(DnType::CountryName, "BE"));
        assert!(CertificateRequest::read(country.as_bytes()).unwrap().has_more);
        assert_eq!(CertificateRequest::read(format!("{pem}{pem}").as_bytes()), Err(RequestError::Unreadable));
        assert_eq!(CertificateRequest::read(&[b'x'; 20_000]), Err(RequestError::TooLong(20_000)));
    }

    proptest! {
        /// A byte beside what is signed may be another one; what is read is what was signed.
        #[test]
        fn a_changed_byte_changes_nothing_that_is_read(at in 0_usize..400, by in 1_u8..255) {
            let (_, pem) = request(|_| {});
            let block = Pem::iter_from_buffer(pem.as_bytes()).next().unwrap().unwrap();
            let mut der = block.contents.clone();
            let at = at % der.len();
            der[at] ^= by;
            let encoded = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, der);
            let text = format!("-----BEGIN CERTIFICATE REQUEST-----\n{encoded}\n-----END CERTIFICATE REQUEST-----\n");
            if let Ok(read) = CertificateRequest::read(text.as_bytes()) {
                prop_assert_eq!(Ok(read), CertificateRequest::read(pem.as_bytes()));
            }
        }

        #[test]
        fn no_bytes_are_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = CertificateRequest::read(&bytes);
        }
    }
}
