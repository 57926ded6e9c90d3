//! Which hop of a connection fails.

use portolan_runtime::{CallError, chain, foreign_text};
use rustls::CertificateError;
use std::error::Error;
use std::io;

/// Why an API server cannot be reached, in words that say what to look at.
pub(super) fn why_unreachable(error: &CallError) -> String {
    if matches!(error, CallError::Silent { .. }) {
        return "no answer came; a firewall on the way may drop what is sent".to_owned();
    }
    match failed(error) {
        Some(why) => why.to_owned(),
        None => foreign_text(&chain(error)),
    }
}

fn failed(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(why) = error.downcast_ref::<rustls::Error>().and_then(of_tls) {
            return Some(why);
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            // What such an error wraps is not its source, but that which has the source.
            let within = error.get_ref().and_then(|inner| failed(inner));
            if let Some(why) = within.or_else(|| of_network(error.kind())) {
                return Some(why);
            }
        }
        next = error.source();
    }
    None
}

fn of_network(kind: io::ErrorKind) -> Option<&'static str> {
    Some(match kind {
        io::ErrorKind::ConnectionRefused => {
            "the connection is refused: nothing listens at that address and port"
        }
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            "there is no route to that address"
        }
        io::ErrorKind::TimedOut => "the connection timed out: a firewall on the way may drop what is sent",
        io::ErrorKind::ConnectionReset => "the connection was closed by the other side",
        _ => return None,
    })
}

fn of_tls(error: &rustls::Error) -> Option<&'static str> {
    let rustls::Error::InvalidCertificate(problem) = error else { return None };
    Some(match problem {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the certificate that is shown there is not signed by the authority of the invitation: another server answers at \
             that address, or the provider's authority was changed since"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the certificate that is shown there has expired: renew it, or compare the clocks of both machines"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate that is shown there is not valid yet: the clock of this machine is behind"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate that is shown there is for other names: `portolan invite --tls-server-name` gives one of them"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(error: impl Into<Box<dyn Error + Send + Sync>>) -> String {
        let source = Box::new(kube::Error::Service(error.into()));
        why_unreachable(&CallError::Refused { what: "ask".to_owned(), source })
    }

    #[test]
    fn the_hop_that_fails_is_named() {
        let tls =
            |problem| io::Error::new(io::ErrorKind::InvalidData, rustls::Error::InvalidCertificate(problem));
        assert!(told(io::Error::from(io::ErrorKind::ConnectionRefused)).contains("port"));
        assert!(told(io::Error::from(io::ErrorKind::TimedOut)).contains("firewall"));
        assert!(told(tls(CertificateError::UnknownIssuer)).contains("authority of the invitation"));
        assert!(told(tls(CertificateError::NotValidYet)).contains("clock"));
        assert!(told(tls(CertificateError::Expired)).contains("expired"));
        assert!(told(io::Error::other(tls(CertificateError::NotValidForName))).contains("--tls-server-name"));
        assert!(told("something else").contains("something else"));
    }
}
