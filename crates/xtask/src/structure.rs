//! What the sandbox knows of the types of Kubernetes, made from a real one: their structure from the OpenAPI of a lab's API
//! server, their protobuf form from the Go modules that it is built of.
//!
//! Making it takes a lab. Whether the files are still what was made is cheap to see: a stamp tells the version of Kubernetes
//! and the hashes of the files and of the programs that made them.

use crate::steps::root;
use anyhow::{Context, Result, bail, ensure};
use portolan_lab::Lab;
use portolan_lab::parts::DEFAULT_KUBERNETES;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const STRUCTURE: &str = "crates/sandbox/src/schema/structure.json";
const MESSAGES: &str = "crates/sandbox/src/protobuf/messages.json";
const STAMP: &str = "crates/sandbox/src/schema/made-from.txt";
const MAKERS: [&str; 2] = ["crates/sandbox/examples/structure.rs", "crates/sandbox/examples/messages.rs"];

/// Makes the files, from a lab that is started for it.
pub(crate) fn make() -> Result<BTreeMap<PathBuf, String>> {
    let documents = tempfile::tempdir()?;
    tokio::runtime::Runtime::new()?.block_on(save_documents(documents.path()))?;
    let structure = example("structure", &[documents.path().to_owned()])?;
    let messages = example("messages", &go_modules()?)?;
    let stamp = stamp(|path| match path {
        STRUCTURE => Ok(structure.clone().into_bytes()),
        MESSAGES => Ok(messages.clone().into_bytes()),
        other => read(other),
    })?;
    let files = [(STRUCTURE, structure), (MESSAGES, messages), (STAMP, stamp)];
    Ok(files.into_iter().map(|(path, text)| (root().join(path), text)).collect())
}

/// Fails if a file, or a program that makes it, has changed since it was made. Says what it looked at.
pub(crate) fn check_stamp() -> Result<()> {
    let found = fs::read_to_string(root().join(STAMP)).unwrap_or_default();
    ensure!(
        found == stamp(read)?,
        "{STRUCTURE}, {MESSAGES}, what makes them or the version of Kubernetes has changed since {STAMP} was written; \
         run `cargo xtask generate --kubernetes` and commit"
    );
    println!(
        "the types of Kubernetes are as they were made from {DEFAULT_KUBERNETES}; they were not compared with a running \
         one (`cargo xtask generate --kubernetes --check` does, on a lab)"
    );
    Ok(())
}

fn read(path: &str) -> Result<Vec<u8>> {
    fs::read(root().join(path)).with_context(|| format!("cannot read {path}"))
}

fn stamp(content: impl Fn(&str) -> Result<Vec<u8>>) -> Result<String> {
    let mut out = format!("kubernetes {DEFAULT_KUBERNETES}\n");
    for path in [STRUCTURE, MESSAGES].into_iter().chain(MAKERS) {
        let digest: String =
            Sha256::digest(content(path)?).iter().map(|byte| format!("{byte:02x}")).collect();
        out.push_str(&format!("{digest} {path}\n"));
    }
    Ok(out)
}

/// The OpenAPI documents of an API server, one a file.
async fn save_documents(folder: &Path) -> Result<()> {
    let lab =
        Lab::builder().clusters(1).start().await.context("the types come from an API server of the lab")?;
    let client = lab.cluster("c1")?.client().await?;
    let get = async |path: &str| -> Result<String> {
        let request = http::Request::get(path).body(Vec::new())?;
        client.request_text(request).await.with_context(|| format!("cannot get {path}"))
    };
    let index: Value = serde_json::from_str(&get("/openapi/v3").await?)?;
    let places = index["paths"].as_object().context("the index of OpenAPI has no paths")?;
    for (place, link) in places.iter().filter(|(place, _)| place.starts_with("api")) {
        let address = link["serverRelativeURL"].as_str().context("a document without an address")?;
        fs::write(folder.join(place.replace('/', "_")), get(address).await?)?;
    }
    lab.down()
}

/// Where the Go modules lie that have the `.proto` files.
fn go_modules() -> Result<Vec<PathBuf>> {
    let output = Command::new("go")
        .args(["list", "-m", "-f", "{{.Dir}}", "k8s.io/api", "k8s.io/apimachinery"])
        .current_dir(root().join("crates/lab/parts/kubernetes").join(DEFAULT_KUBERNETES))
        .output()
        .context("the protobuf messages come from Go modules, which takes `go`")?;
    if !output.status.success() {
        bail!("`go list`: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?.lines().map(PathBuf::from).collect())
}

/// What an example of the sandbox prints.
fn example(name: &str, arguments: &[PathBuf]) -> Result<String> {
    let output = Command::new(env!("CARGO"))
        .args(["run", "--locked", "--quiet", "--package", "portolan-sandbox", "--example", name, "--"])
        .args(arguments)
        .current_dir(root())
        .output()?;
    if !output.status.success() {
        bail!("example {name}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
