//! Reduces the `generated.proto` files of the Go modules k8s.io/api and k8s.io/apimachinery to the structure the
//! sandbox needs to read protobuf bodies: which number is which JSON field, of which type.
//!
//! Protobuf knows less than the Go types do: which messages are inlined in JSON, and what is left out when it is
//! zero. Both come from the tags of the Go structs beside the `generated.proto` files.
//!
//! `cargo xtask generate --kubernetes` runs it on two directories, which are what `go list -m -f '{{.Dir}}' k8s.io/api k8s.io/apimachinery` says in
//! `crates/lab/parts/kubernetes/VERSION`.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Where the two modules differ in how packages are named, and where no difference is left: `core.v1.Pod`.
const PREFIXES: &[&str] = &["k8s.io.apimachinery.pkg.apis.", "k8s.io.apimachinery.pkg.", "k8s.io.api."];

/// A field of a message, as the `.proto` file has it.
struct ProtoField {
    number: u32,
    name: String,
    kind: String,
    repeated: bool,
    map: bool,
}

/// A field of a Go struct that has a protobuf number.
struct GoField {
    name: String,
    pointer: bool,
    inline: bool,
    omit: bool,
}

#[derive(Default)]
struct GoStruct {
    /// It has `apiVersion` and `kind`: objects of this kind are sent.
    is_object: bool,
    fields: BTreeMap<u32, GoField>,
}

struct Package {
    messages: BTreeMap<String, Vec<ProtoField>>,
    structs: BTreeMap<String, GoStruct>,
    /// Types that are a list in Go and a message only on the wire.
    lists: BTreeSet<String>,
    group: Option<String>,
    version: String,
}

fn main() -> Outcome<()> {
    let mut packages = BTreeMap::new();
    for root in std::env::args().skip(1) {
        collect(Path::new(&root), &mut packages)?;
    }
    if packages.is_empty() {
        return Err("usage: messages DIRECTORY..., each of a Go module with generated.proto files".into());
    }
    let kinds = kinds(&packages);
    let mut messages = BTreeMap::new();
    let mut open: BTreeSet<String> = kinds.values().cloned().collect();
    while let Some(name) = open.pop_first() {
        if messages.contains_key(&name) {
            continue;
        }
        let (rows, found) = message(&name, &packages)?;
        messages.insert(name, rows);
        open.extend(found.into_iter().filter(|name| !messages.contains_key(name)));
    }
    println!("{}", serde_json::to_string(&json!({ "kinds": kinds, "messages": messages }))?);
    Ok(())
}

/// Adds the packages below a directory.
fn collect(directory: &Path, packages: &mut BTreeMap<String, Package>) -> Outcome<()> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<Outcome<_>>()?;
    entries.sort();
    let proto = directory.join("generated.proto");
    if entries.contains(&proto) {
        let text = std::fs::read_to_string(&proto)?;
        let (name, messages) = read_proto(&text).map_err(|error| format!("{}: {error}", proto.display()))?;
        let mut package = Package {
            messages,
            structs: BTreeMap::new(),
            lists: BTreeSet::new(),
            group: None,
            version: name.rsplit('.').next().unwrap_or_default().to_owned(),
        };
        for file in entries.iter().filter(|file| file.extension().is_some_and(|end| end == "go")) {
            read_go(&std::fs::read_to_string(file)?, &mut package)?;
        }
        packages.insert(short(&name), package);
    }
    for entry in entries.iter().filter(|entry| entry.is_dir()) {
        collect(entry, packages)?;
    }
    Ok(())
}

fn short(name: &str) -> String {
    let found = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    found.unwrap_or(name).to_owned()
}

fn read_proto(text: &str) -> Outcome<(String, BTreeMap<String, Vec<ProtoField>>)> {
    let package = Regex::new(r"(?m)^package (\S+);$")?;
    let package = package.captures(text).ok_or("no package")?[1].to_owned();
    let head = Regex::new(r"^message (\w+) \{$")?;
    let field = Regex::new(r"^  (optional|repeated|required) (\S+) (\w+) = (\d+);$")?;
    let map = Regex::new(r"^  map<string, (\S+)> (\w+) = (\d+);$")?;
    let mut messages: BTreeMap<String, Vec<ProtoField>> = BTreeMap::new();
    let mut open = String::new();
    for line in text.lines() {
        let content = line.trim();
        if let Some(found) = head.captures(line) {
            open = found[1].to_owned();
            messages.insert(open.clone(), Vec::new());
        } else if line == "}" {
            open.clear();
        } else if !open.is_empty() && !content.is_empty() && !content.starts_with("//") {
            let (kind, name, number, repeated, is_map) = if let Some(found) = map.captures(line) {
                (found[1].to_owned(), found[2].to_owned(), found[3].parse()?, false, true)
            } else if let Some(found) = field.captures(line) {
                let repeated = &found[1] == "repeated";
                (found[2].to_owned(), found[3].to_owned(), found[4].parse()?, repeated, false)
            } else {
                return Err(format!("message {open}: not understood: {content}").into());
            };
            let kind = match kind.as_str() {
                "string" | "bytes" | "bool" | "int32" | "int64" => kind,
                other if other.contains('.') => format!("#{}", short(other.trim_start_matches('.'))),
                other => format!("#{}.{other}", short(&package)),
            };
            let found = ProtoField { number, name, kind, repeated, map: is_map };
            messages.entry(open.clone()).or_default().push(found);
        }
    }
    Ok((package, messages))
}

fn read_go(text: &str, package: &mut Package) -> Outcome<()> {
    let head = Regex::new(r"^type (\w+) struct \{$")?;
    let list = Regex::new(r"^type (\w+) \[\]")?;
    let group = Regex::new(r#"^const GroupName = "([^"]*)"$"#)?;
    let tag = Regex::new(r#"json:"([^",]*)((?:,\w+)*)""#)?;
    let number = Regex::new(r#"protobuf:"\w+,(\d+)"#)?;
    let mut open = String::new();
    for line in text.lines() {
        if let Some(found) = head.captures(line) {
            open = found[1].to_owned();
        } else if line == "}" {
            open.clear();
        } else if let Some(found) = list.captures(line) {
            package.lists.insert(found[1].to_owned());
        } else if let Some(found) = group.captures(line) {
            package.group = Some(found[1].to_owned());
        } else if !open.is_empty()
            && let Some((declared, tags)) = line.trim().split_once('`')
            && let Some(found) = tag.captures(tags)
        {
            let words: Vec<&str> = declared.split_whitespace().collect();
            let (Some(first), Some(last)) = (words.first(), words.last()) else { continue };
            let options: Vec<&str> = found[2].split(',').collect();
            let inline = options.contains(&"inline") || (words.len() == 1 && found[1].is_empty());
            let entry = package.structs.entry(open.clone()).or_default();
            if inline && last.ends_with("TypeMeta") {
                entry.is_object = true;
            }
            if let Some(number) = number.captures(tags) {
                let name = if found[1].is_empty() { (*first).to_owned() } else { found[1].to_owned() };
                let omit = options.contains(&"omitempty") || options.contains(&"omitzero");
                let field = GoField { name, pointer: last.starts_with('*'), inline, omit };
                entry.fields.insert(number[1].parse()?, field);
            }
        }
    }
    Ok(())
}

/// `apiVersion/Kind` to message, for versions that are neither alpha nor beta. Kinds of every group
/// (`DeleteOptions`) stand under `*`.
fn kinds(packages: &BTreeMap<String, Package>) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for (name, package) in packages {
        let Some(group) = &package.group else { continue };
        let unstable = package.version.contains("alpha") || package.version.contains("beta");
        if unstable || group.starts_with("testapigroup") {
            continue;
        }
        let version = match group.as_str() {
            "meta.k8s.io" => "*".to_owned(),
            "" => package.version.clone(),
            group => format!("{group}/{}", package.version),
        };
        for (kind, _) in package.structs.iter().filter(|(_, found)| found.is_object) {
            let listed = kind.ends_with("List") || (version == "*" && !kind.ends_with("Options"));
            if !listed && package.messages.contains_key(kind) {
                out.insert(format!("{version}/{kind}"), format!("{name}.{kind}"));
            }
        }
    }
    out
}

/// The rows of a message, and the messages it names.
fn message(full: &str, packages: &BTreeMap<String, Package>) -> Outcome<(Value, BTreeSet<String>)> {
    let (package_name, name) = full.rsplit_once('.').ok_or_else(|| format!("{full} has no package"))?;
    let package = packages.get(package_name).ok_or_else(|| format!("no package of {full}"))?;
    let fields = package.messages.get(name).ok_or_else(|| format!("no message {full}"))?;
    let go = package.structs.get(name);
    let mut rows = Vec::new();
    let mut found = BTreeSet::new();
    for field in fields {
        let known = go.and_then(|go| go.fields.get(&field.number));
        let is_message = field.kind.starts_with('#');
        let mut flags = String::new();
        flags.extend(field.repeated.then_some('r'));
        flags.extend(field.map.then_some('m'));
        flags.extend(package.lists.contains(name).then_some('w'));
        if let Some(known) = known {
            if known.name == "-" {
                continue;
            }
            flags.extend((known.inline && is_message).then_some('i'));
            // A zero port is no port: the API server defaults both alike.
            let simple = !is_message || field.kind == "#util.intstr.IntOrString";
            let scalar = !field.repeated && !field.map && simple;
            flags.extend((scalar && known.omit && !known.pointer).then_some('o'));
        } else if go.is_some_and(|go| !go.fields.is_empty()) {
            return Err(
                format!("{full}: no Go field has the number {} ({})", field.number, field.name).into()
            );
        }
        found.extend(field.kind.strip_prefix('#').map(str::to_owned));
        let json_name = known.map_or(&field.name, |known| &known.name);
        rows.push(json!([field.number, json_name, field.kind, flags]));
    }
    Ok((Value::Array(rows), found))
}
