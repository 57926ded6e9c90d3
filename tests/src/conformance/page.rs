//! The list of divergences as a page of the documentation.

use super::divergences::{Divergence, Outlook, divergences};
use super::script::script;
use super::step::Kind;
use anyhow::Result;
use std::fmt::Write as _;

const HEAD: &str = "# Where the sandbox differs from Kubernetes

<!-- Written by `cargo run -p portolan-tests --bin divergences`; a test compares. -->

One script of API calls is run against the sandbox and against a real kube-apiserver of the lab. Answers are compared
whole (status code, the headers that clients go by, body, watch events) after taking out what differs from run to run:
identifiers, versions, times, made-up names, addresses. Versions are compared by whether an object is newer than when it
was last seen.

```sh
cargo test -p portolan-tests --test lab conformance -- --nocapture
```
";

const BEYOND_THE_SCRIPT: &str = "
## Beyond the script

The script shows differences only in the calls that it makes. Known beyond it:

- **Pod templates are validated only in part.** The sandbox checks names and images of containers, the syntax of quantities, pull
  policies, selectors and strategies. It does not check ports, probes, volumes and their mounts, environment variables, names of
  init containers, spread constraints, Pod Security levels, negative quantities, or requests above limits. A template that the
  sandbox takes may be refused by a member: the API servers of members check all of it, and Portolan tries the template
  of a MultiClusterDeployment in a member before anything is placed.
- **Volumes are bound at once.** A PersistentVolumeClaim gets a volume of its size without a StorageClass, and pods do not wait for
  it. A claim that names a volume, selects one or has the empty class stays pending.
- **Pods are adopted by StatefulSets and DaemonSets only.** A ReplicaSet or a Job does not take over pods that nothing controls, and no
  controller gives up a pod whose labels changed.
- **A StatefulSet does not repair its pods.** Labels that somebody took off a pod, such as `apps.kubernetes.io/pod-index`, come back
  only with the next pod of that name.
- **ValidatingAdmissionPolicies are evaluated in part.** They are about groups, versions, resources and operations, with conditions and
  variables. Selectors, names of resources, parameters, the authorizer, expressions for messages and audit annotations are not
  known, expressions are not checked for their types, and a policy that is no use is stored without a word.
- **Quotas are held against new objects only.** A Service that becomes a load balancer by a change is not counted first.
";

/// The page.
pub fn page() -> Result<String> {
    let listed = divergences()?;
    let scenarios = script();
    let calls: usize = scenarios
        .iter()
        .map(|scenario| scenario.steps.iter().filter(|step| !matches!(step.kind, Kind::Await(_))).count())
        .sum();
    let mut out = HEAD.to_owned();
    let _ = write!(
        out,
        "\nThe script has {calls} calls in {} scenarios. A difference that is not listed here fails the test, and so \
         does an entry that is no longer true.\n",
        scenarios.len()
    );
    section(&mut out, "To be fixed", &listed, Outlook::ToBeFixed);
    section(&mut out, "Meant to be so", &listed, Outlook::Meant);
    out.push_str(BEYOND_THE_SCRIPT);
    Ok(out)
}

fn section(out: &mut String, title: &str, all: &[Divergence], outlook: Outlook) {
    let _ = write!(out, "\n## {title}\n\n");
    let mut listed = all.iter().filter(|each| each.outlook == outlook).peekable();
    if listed.peek().is_none() {
        out.push_str("Nothing.\n");
    }
    for each in listed {
        let steps: Vec<&str> = each.places.keys().map(String::as_str).collect();
        let _ = writeln!(out, "- **{}** {}\n  Seen in: {}.", each.what, each.why, steps.join("; "));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_is_up_to_date() {
        let path =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/develop/divergences.md");
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == super::page().unwrap(),
            "write it anew: cargo run -q -p portolan-tests --bin divergences > docs/src/develop/divergences.md"
        );
    }
}
