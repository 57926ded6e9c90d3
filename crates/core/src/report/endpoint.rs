//! Where the API server of a cluster is.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest name that DNS has.
const HOST_AT_MOST: usize = 253;

/// Where clouds have the metadata of their machines, beside link-local addresses.
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(192, 0, 0, 192)];
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];

/// The host and the port of an API server that is reached by TLS.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// A name in lower case, or an address in its canonical form, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Endpoint {
    /// The endpoint in the URL of an API server, in one form whatever the URL looks like. Nothing if the URL is not one of https,
    /// names a user, or has more than a host and a port: by a path, a proxy leads to one of several API servers, and the distance to
    /// the proxy says nothing of theirs.
    #[must_use]
    pub fn parse(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("https://")?;
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => {
                let (host, after) = bracketed.split_once(']')?;
                let address: Ipv6Addr = host.parse().ok()?;
                let port = match after {
                    "" => None,
                    after => Some(after.strip_prefix(':')?),
                };
                (address.to_string(), port)
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (named(host)?, Some(port)),
                None => (named(authority)?, None),
            },
        };
        let port = match port {
            None => 443,
            Some(text) => text.parse().ok().filter(|port| *port > 0)?,
        };
        Some(Self { host, port })
    }

    /// Whether a cluster may be asked to connect to this address: not to itself, and not to what only its own machines reach, such
    /// as the metadata of a cloud. An IPv6 address that leads to one of IPv4 is looked at as the latter.
    #[must_use]
    pub fn is_elsewhere(address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => is_elsewhere_v4(address),
            IpAddr::V6(address) => is_elsewhere_v6(address),
        }
    }
}

/// A host without brackets: a name in lower case, without the dot at its end, or an address of IPv4.
fn named(host: &str) -> Option<String> {
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let is_named = !host.is_empty() && host.len() <= HOST_AT_MOST && host.bytes().all(is_plain);
    is_named.then(|| host.to_ascii_lowercase())
}

fn is_elsewhere_v4(address: Ipv4Addr) -> bool {
    !(address.is_link_local()
        || address.is_broadcast()
        || address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || METADATA_V4.contains(&address))
}

fn is_elsewhere_v6(address: Ipv6Addr) -> bool {
    let is_within = address.is_unicast_link_local()
        || address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || METADATA_V6.contains(&address);
    !is_within && embedded(address).is_none_or(is_elsewhere_v4)
}

/// The address of IPv4 in one of NAT64 (64:ff9b::/96), or in one that is compatible with IPv4 (::/96).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [first @ .., high, low] = address.segments();
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    matches!(first, [0x64, 0xff9b, 0, 0, 0, 0] | [0, 0, 0, 0, 0, 0]).then(|| Ipv4Addr::new(a, b, c, d))
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
            ("https://API.Example.org.:443", "https://api.example.org:443"),
            ("https://[2001:db8::7]:6443", "https://[2001:db8::7]:6443"),
            ("https://[2001:0DB8:0:0::0007]:6443/", "https://[2001:db8::7]:6443"),
            ("https://[2001:db8::7]", "https://[2001:db8::7]:443"),
        ] {
            let endpoint = Endpoint::parse(url).unwrap();
            assert_eq!(endpoint.to_string(), written);
            assert_eq!(Endpoint::parse(written), Some(endpoint));
        }
        let longest = format!("https://{}:6443", "a".repeat(HOST_AT_MOST));
        assert_eq!(Endpoint::parse(&longest).unwrap().to_string(), longest);
    }

    #[test]
    fn what_is_no_address_by_tls_is_none() {
        for url in [
            "",
            "https://",
            "https://.",
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
            &format!("https://{}:6443", "a".repeat(HOST_AT_MOST + 1)),
        ] {
            assert_eq!(Endpoint::parse(url), None, "{url}");
        }
    }

    #[test]
    fn what_a_proxy_leads_to_by_a_path_is_not_measured() {
        for url in [
            "https://rancher.example.org/k8s/clusters/c-1",
            "https://rancher.example.org:443/k8s/",
            "https://203.0.113.7:6443//",
            "https://203.0.113.7:6443?cluster=c-1",
            "https://203.0.113.7:6443/?cluster=c-1",
            "https://203.0.113.7:6443#c-1",
            "https://[2001:db8::7]/k8s",
        ] {
            assert_eq!(Endpoint::parse(url), None, "{url}");
        }
    }

    #[test]
    fn a_cluster_connects_to_nothing_in_itself_or_on_its_machines() {
        for address in [
            "203.0.113.7",
            "10.0.0.7",
            "192.168.1.7",
            "100.100.100.201",
            "2001:db8::7",
            "fd00::7",
            "fd00:ec2::253",
            "64:ff9b::203.0.113.7",
            "64:ff9b:0:0:0:1:7f00:1",
            "::203.0.113.7",
        ] {
            assert!(Endpoint::is_elsewhere(address.parse().unwrap()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "127.8.9.1",
            "0.0.0.0",
            "169.254.169.254",
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
            "255.255.255.255",
            "224.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "ff02::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:168.63.129.16",
            "64:ff9b::127.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b::100.100.100.200",
            "::127.0.0.1",
            "::169.254.169.254",
        ] {
            assert!(!Endpoint::is_elsewhere(address.parse().unwrap()), "{address}");
        }
    }
}
