//! Which links between clusters are cut, as written down beside the lab.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

const FILE: &str = "cuts.json";

/// Pairs of clusters that cannot reach one another; the names of a pair are in their order.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cuts(BTreeSet<(String, String)>);

impl Cuts {
    pub(crate) fn read(lab: &Path) -> Result<Self> {
        let file = lab.join(FILE);
        match fs::read_to_string(&file) {
            Ok(text) => {
                serde_json::from_str(&text).with_context(|| format!("cannot read {}", file.display()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Cuts::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
        }
    }

    pub(crate) fn write(&self, lab: &Path) -> Result<()> {
        let file = lab.join(FILE);
        fs::write(&file, serde_json::to_string(self)?)
            .with_context(|| format!("cannot write {}", file.display()))
    }

    pub(crate) fn cut(&mut self, a: &str, b: &str) -> Result<()> {
        ensure!(a != b, "{a} has no link to itself");
        self.0.insert(in_order(a, b));
        Ok(())
    }

    pub(crate) fn heal(&mut self, a: &str, b: &str) -> Result<()> {
        ensure!(self.0.remove(&in_order(a, b)), "the link between {a} and {b} is not cut");
        Ok(())
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(a, b)| (a.as_str(), b.as_str()))
    }
}

fn in_order(a: &str, b: &str) -> (String, String) {
    if a < b { (a.to_owned(), b.to_owned()) } else { (b.to_owned(), a.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_healed_from_either_side_and_survives_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let mut cuts = Cuts::read(dir.path()).unwrap();
        cuts.cut("c2", "c1").unwrap();
        cuts.cut("c1", "c2").unwrap();
        cuts.cut("c1", "c3").unwrap();
        cuts.write(dir.path()).unwrap();
        let mut cuts = Cuts::read(dir.path()).unwrap();
        assert_eq!(cuts.pairs().collect::<Vec<_>>(), [("c1", "c2"), ("c1", "c3")]);
        cuts.heal("c2", "c1").unwrap();
        assert!(cuts.heal("c1", "c2").unwrap_err().to_string().contains("is not cut"));
        assert!(cuts.cut("c1", "c1").is_err());
    }
}
