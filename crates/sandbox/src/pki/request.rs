//! What is asked to be signed: a PKCS #10 request, read.

use std::net::IpAddr;

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer;
use x509_parser::x509::X509Name;

/// A request for a certificate, whose signature is right.
#[derive(Debug, Default)]
pub(crate) struct CertificateRequest {
    pub(crate) common_name: String,
    pub(crate) organizations: Vec<String>,
    pub(crate) dns: Vec<String>,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) emails: Vec<String>,
    pub(crate) uris: Vec<String>,
    /// The subject as it was written.
    pub(super) subject: Vec<u8>,
    /// The public key as it was written.
    pub(super) public_key: Vec<u8>,
    /// The alternative names as they were written.
    pub(super) alternative_names: Option<Vec<u8>>,
}

impl CertificateRequest {
    /// Reads a request in PEM; says what is wrong in the words of the API server.
    pub(crate) fn read(text: &[u8]) -> Result<Self, String> {
        let block = Pem::iter_from_buffer(text).next().and_then(Result::ok);
        let block = block.filter(|block| block.label == "CERTIFICATE REQUEST");
        let block = block.ok_or("PEM block type must be CERTIFICATE REQUEST")?;
        let parsed = X509CertificationRequest::from_der(&block.contents);
        let (rest, found) = parsed.map_err(|error| format!("asn1: syntax error: {error}"))?;
        if !rest.is_empty() {
            return Err("asn1: syntax error: trailing data".to_owned());
        }
        found.verify_signature().map_err(|error| format!("x509: the signature is wrong: {error}"))?;
        let info = &found.certification_request_info;
        let mut out = Self {
            common_name: common_name(&info.subject),
            organizations: organizations(&info.subject),
            subject: info.subject.as_raw().to_vec(),
            public_key: info.subject_pki.raw.to_vec(),
            ..Self::default()
        };
        let requested = info.iter_attributes().filter_map(|attribute| match attribute.parsed_attribute() {
            ParsedCriAttribute::ExtensionRequest(requested) => Some(&requested.extensions),
            _ => None,
        });
        for extension in requested.flatten() {
            if let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension() {
                out.alternative_names = Some(extension.value.to_vec());
                names.general_names.iter().for_each(|name| out.add_name(name));
            }
        }
        Ok(out)
    }

    fn add_name(&mut self, name: &GeneralName<'_>) {
        match name {
            GeneralName::DNSName(name) => self.dns.push((*name).to_owned()),
            GeneralName::RFC822Name(name) => self.emails.push((*name).to_owned()),
            GeneralName::URI(name) => self.uris.push((*name).to_owned()),
            GeneralName::IPAddress(bytes) => {
                let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
                let sixteen = || <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
                self.addresses.extend(four.or_else(|_| sixteen()));
            }
            _ => {}
        }
    }
}

/// The last common name of a subject; empty if it has none.
pub(super) fn common_name(subject: &X509Name<'_>) -> String {
    let names = subject.iter_common_name().filter_map(|name| name.as_str().ok());
    names.last().unwrap_or_default().to_owned()
}

pub(super) fn organizations(subject: &X509Name<'_>) -> Vec<String> {
    subject.iter_organization().filter_map(|name| name.as_str().ok()).map(str::to_owned).collect()
}

/// What is wrong with certificates in PEM.
pub(crate) fn check_certificates(text: &[u8]) -> Result<(), String> {
    let mut blocks = 0;
    for block in Pem::iter_from_buffer(text) {
        let Ok(block) = block else { break };
        if block.label != "CERTIFICATE" {
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {:?}", block.label));
        }
        block.parse_x509().map_err(|error| format!("x509: malformed certificate: {error}"))?;
        blocks += 1;
    }
    if blocks == 0 {
        return Err("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    Ok(())
}
