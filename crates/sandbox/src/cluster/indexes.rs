//! The written form of completed indexes: `0-2,5`.

use std::collections::BTreeSet;

/// Reads a written set; what is not a number is left out.
pub(super) fn parse(text: &str) -> BTreeSet<u32> {
    let mut out = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            out.extend(first..=last.min(first.saturating_add(100_000)));
        }
    }
    out
}

/// Writes a set, neighbours joined.
pub(super) fn write(set: &BTreeSet<u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for index in set {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => runs.push((*index, *index)),
        }
    }
    let parts = runs.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    });
    parts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for text in ["", "0", "0,1", "0-2,5", "3,7-9"] {
            assert_eq!(write(&parse(text)), text);
        }
        assert!(parse("x,1-y").is_empty());
    }
}
