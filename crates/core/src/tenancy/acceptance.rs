//! Who is accepted without being asked about, and which provider a line may speak for.

/// A ForeignCluster that exists of the identity that a consumer names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownCluster<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it stands for a tenant already.
    pub has_tenant: bool,
}

/// Whether a consumer becomes the tenant of a ForeignCluster that exists only if an administrator says so. An identity is a
/// claim: whoever has a line can name that of another cluster, and would get its name, and what was meant for it. An
/// administrator says so by an invitation for that ForeignCluster, or by accepting the key that is shown.
#[must_use]
pub fn is_claim(known: Option<KnownCluster<'_>>, invited: Option<&str>) -> bool {
    known.is_some_and(|known| !known.has_tenant && invited != Some(known.name))
}

/// A digest of a key as people compare it: its first 64 bits, in groups.
#[must_use]
pub fn fingerprint(key_digest: &str) -> String {
    let letters: Vec<char> = key_digest.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    letters.chunks(4).map(String::from_iter).collect::<Vec<_>>().join("-")
}

/// How an API server is known: its URL, and the certificates of the authorities that it is known by; none if those of the
/// machine count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownServer {
    /// Its URL.
    pub server: String,
    /// In DER.
    pub authorities: Vec<Vec<u8>>,
}

impl KnownServer {
    /// Whether another one must be the same cluster: it is known by no other authority, or by its URL if there is none.
    #[must_use]
    pub fn vouches_for(&self, other: &Self) -> bool {
        match (self.authorities.is_empty(), other.authorities.is_empty()) {
            (true, true) => self.server.trim_end_matches('/') == other.server.trim_end_matches('/'),
            (false, false) => other.authorities.iter().all(|each| self.authorities.contains(each)),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_cluster_is_taken_only_by_whom_it_was_meant_for() {
        let milan = KnownCluster { name: "milan", has_tenant: false };
        assert!(!is_claim(None, None), "nobody has that identity");
        assert!(is_claim(Some(milan), None));
        assert!(is_claim(Some(milan), Some("rome")));
        assert!(!is_claim(Some(milan), Some("milan")));
        // That is refused anyway, or it is the same one again.
        assert!(!is_claim(Some(KnownCluster { has_tenant: true, ..milan }), None));
    }

    #[test]
    fn a_fingerprint_is_short_and_has_no_more_than_digits() {
        assert_eq!(fingerprint("3fa2bc9111112222333344445555"), "3fa2-bc91-1111-2222");
        assert_eq!(fingerprint("3fa2 bc\n"), "3fa2-bc");
        assert_eq!(fingerprint(""), "");
    }

    #[test]
    fn a_member_is_the_same_by_its_authority_and_without_one_by_its_url() {
        let known = |server: &str, authorities: &[u8]| KnownServer {
            server: server.to_owned(),
            authorities: authorities.iter().map(|each| vec![*each]).collect(),
        };
        assert!(known("https://a", &[1]).vouches_for(&known("https://b", &[1])), "another address");
        assert!(
            known("https://a", &[1, 2]).vouches_for(&known("https://a", &[2])),
            "the authority is being changed"
        );
        assert!(
            !known("https://a", &[1]).vouches_for(&known("https://a", &[1, 2])),
            "one more would be trusted"
        );
        assert!(!known("https://a", &[1]).vouches_for(&known("https://a", &[2])));
        assert!(!known("https://a", &[1]).vouches_for(&known("https://a", &[])));
        assert!(!known("https://a", &[]).vouches_for(&known("https://a", &[1])));
        assert!(known("https://a", &[]).vouches_for(&known("https://a/", &[])));
        assert!(!known("https://a", &[]).vouches_for(&known("https://b", &[])));
    }
}
