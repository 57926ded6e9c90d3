//! Versions of Portolan: which one is newer, and which of them work together.

/// A version such as 1.2.3 or 1.2.3-rc.1. They are ordered as they follow each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    /// A release comes after its candidates.
    is_release: bool,
    candidate: String,
}

impl Version {
    /// Reads a version; a `v` in front and what follows a `+` do not matter.
    ///
    /// # Errors
    /// It is no version.
    pub fn parse(text: &str) -> Result<Self, SkewError> {
        let plain = text.trim_start_matches('v').split('+').next().unwrap_or_default();
        let (numbers, candidate) = plain.split_once('-').unwrap_or((plain, ""));
        let mut numbers = numbers.split('.').map(str::parse::<u64>);
        match (numbers.next(), numbers.next(), numbers.next().unwrap_or(Ok(0))) {
            (Some(Ok(major)), Some(Ok(minor)), Ok(patch)) => Ok(Self {
                major,
                minor,
                patch,
                is_release: candidate.is_empty(),
                candidate: candidate.to_owned(),
            }),
            _ => Err(SkewError::NoVersion(text.to_owned())),
        }
    }
}

/// Why one version cannot follow another, or work with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SkewError {
    /// A version that is none.
    #[error("{0:?} is no version such as 1.2.3")]
    NoVersion(String),
    /// They are too far apart.
    #[error(
        "Portolan {from} is installed and this program is {to}: versions may differ by one minor version at most"
    )]
    TooFar {
        /// The installed version.
        from: String,
        /// That of this program.
        to: String,
    },
}

/// Whether one version of Portolan may take the place of another, or work with it: the major version is the same, and the
/// minor one differs by one at most, up or down.
///
/// # Errors
/// It may not.
pub fn check_skew(from: &str, to: &str) -> Result<(), SkewError> {
    let (installed, own) = (Version::parse(from)?, Version::parse(to)?);
    if installed.major == own.major && installed.minor.abs_diff(own.minor) <= 1 {
        return Ok(());
    }
    Err(SkewError::TooFar { from: from.to_owned(), to: to.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_follow_each_other_one_minor_at_a_time() {
        for (from, to) in
            [("0.1.0", "0.1.9"), ("0.1.0", "0.2.0"), ("0.2.0", "0.1.5"), ("1.9.0", "1.10.0-rc.1")]
        {
            assert_eq!(check_skew(from, to), Ok(()), "{from} {to}");
        }
        for (from, to) in [("0.1.0", "0.3.0"), ("0.9.0", "1.0.0"), ("0.3.0", "0.1.0")] {
            assert!(matches!(check_skew(from, to), Err(SkewError::TooFar { .. })), "{from} {to}");
        }
        assert_eq!(check_skew("new", "0.1.0"), Err(SkewError::NoVersion("new".to_owned())));
    }

    #[test]
    fn the_newer_one_is_known() {
        let ascending = ["0.9", "0.9.1", "0.10.0-rc.1", "0.10.0-rc.2", "v0.10.0+abc", "1.0.0"];
        let read: Vec<Version> = ascending.iter().map(|text| Version::parse(text).unwrap()).collect();
        assert!(read.is_sorted_by(|one, next| one < next), "{read:?}");
        for text in ["", "1", "1.x", "1.2.x", "new"] {
            assert_eq!(Version::parse(text), Err(SkewError::NoVersion(text.to_owned())));
        }
    }
}
