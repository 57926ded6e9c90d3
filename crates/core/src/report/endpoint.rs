//! Where the API server of a cluster is.

use std::fmt;
use std::net::IpAddr;

/// The host and the port of an API server that is reached by TLS.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// A name or an address, the latter without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Endpoint {
    /// The endpoint in the URL of an API server. What follows the port makes no difference to the distance. Nothing if the URL is
    /// not one of https, or names a user.
    #[must_use]
    pub fn parse(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("https://")?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => {
                let (host, after) = bracketed.split_once(']')?;
                let address: IpAddr = host.parse().ok()?;
                if !address.is_ipv6() {
                    return None;
                }
                let port = match after {
                    "" => None,
                    after => Some(after.strip_prefix(':')?),
                };
                (host, port)
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_plain) {
            return None;
        }
        let port = match port {
            None => 443,
            Some(text) => text.parse().ok().filter(|port| *port > 0)?,
        };
        Some(Self { host: host.to_owned(), port })
    }

    /// Whether a cluster may be asked to connect to this address: not to itself, and not to what only its own machines reach, such
    /// as the metadata of a cloud.
    #[must_use]
    pub fn is_elsewhere(address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_link_local = match address {
            IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        !(is_link_local || address.is_loopback() || address.is_unspecified() || address.is_multicast())
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') {
            write!(formatter, "https://[{host}]:{port}")
        } else {
            write!(formatter, "https://{host}:{port}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_read_from_the_url_of_an_api_server_and_written_in_one_form() {
        for (url, written) in [
            ("https://203.0.113.7:6443/", "https://203.0.113.7:6443"),
            ("https://api.example.org", "https://api.example.org:443"),
            ("https://rancher.example.org/k8s/clusters/c-1", "https://rancher.example.org:443"),
            ("https://[2001:db8::7]:6443", "https://[2001:db8::7]:6443"),
            ("https://[2001:db8::7]", "https://[2001:db8::7]:443"),
        ] {
            let endpoint = Endpoint::parse(url).unwrap();
            assert_eq!(endpoint.to_string(), written);
            assert_eq!(Endpoint::parse(written), Some(endpoint));
        }
    }

    #[test]
    fn what_is_no_address_by_tls_is_none() {
        for url in [
            "",
            "https://",
            "http://203.0.113.7:6443",
            "https://user@203.0.113.7",
            "https://user:password@203.0.113.7:1",
            "https://203.0.113.7:0",
            "https://203.0.113.7:65536",
            "https://203.0.113.7:x",
            "https://2001:db8::7",
            "https://[203.0.113.7]:1",
            "https://[2001:db8::7",
            "https://[2001:db8::7]6443",
            "https://a b:1",
        ] {
            assert_eq!(Endpoint::parse(url), None, "{url}");
        }
    }

    #[test]
    fn a_cluster_connects_to_nothing_in_itself_or_on_its_machines() {
        for address in ["203.0.113.7", "10.0.0.7", "192.168.1.7", "2001:db8::7", "fd00::7"] {
            assert!(Endpoint::is_elsewhere(address.parse().unwrap()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "127.8.9.1",
            "0.0.0.0",
            "169.254.169.254",
            "255.255.255.255",
            "224.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
        ] {
            assert!(!Endpoint::is_elsewhere(address.parse().unwrap()), "{address}");
        }
    }
}
