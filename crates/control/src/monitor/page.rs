//! The reference of the metrics.

use super::families;

/// The page of the documentation that names all metrics.
#[must_use]
pub fn page() -> String {
    let mut text = String::from(
        "# Metrics\n\n\
         This page is written by `cargo xtask generate` from the list that `portolan controller --listen` serves its metrics by. \
         [Monitor Portolan](../tasks/monitor.md) tells how to scrape them, with alerts and a dashboard.\n\n\
         | metric | type | labels | meaning |\n|---|---|---|---|\n",
    );
    for family in families() {
        let labels: Vec<_> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind) = (family.series(), family.kind.as_str());
        text.push_str(&format!("| `{name}` | {kind} | {} | {} |\n", labels.join(", "), family.help));
    }
    text.push_str(
        "\nA histogram has the series `_bucket`, `_sum` and `_count`. The labels `name`, `controller` and `kind` name a kind of \
         the hub, or what else is worked on: Certificate and Token (those of members), Departure (of members); `cluster` is `hub` or the name of a ForeignCluster, `provisioner` the name of a CloudProvisioner; nothing that a \
         tenant or a member writes is a label.\n",
    );
    text
}
