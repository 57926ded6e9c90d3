//! Checks that the files of one folder do not import each other in circles.
//!
//! A file that is part of a circle cannot be read, tested or moved without the others. Names that a folder's own module
//! (`mod.rs`) re-exports count as imports of the file that they come from. The folder's own module and tests do not count, also not
//! those of the package of tests.

mod graph;
mod source;

use crate::steps::root;
use anyhow::{Context, Result, bail};
use graph::Graph;
use source::Source;
use std::fs;
use std::path::{Path, PathBuf};

/// How many re-exports of one folder are followed until a file is found.
const MOST_REEXPORTS: usize = 8;

/// Fails if files of one folder import each other in a circle, and names the circles.
pub(crate) fn run() -> Result<()> {
    let mut packages = Vec::new();
    for entry in fs::read_dir(root().join("crates"))? {
        packages.push(entry?.path());
    }
    packages.sort();
    let mut check = Check::default();
    for package in packages {
        let folder = package.join("src");
        let roots = ["lib.rs", "main.rs"].map(|file| folder.join(file));
        check.folder(&folder, &[], &roots.into_iter().filter(|file| file.exists()).collect::<Vec<_>>())?;
    }
    if !check.circles.is_empty() {
        bail!(
            "files of one folder import each other in circles; move what they share into a file that imports none of them:\n  {}",
            check.circles.join("\n  ")
        );
    }
    println!("{} files in {} folders: no circles", check.files, check.folders);
    Ok(())
}

/// What was looked at, and the circles that were found.
#[derive(Default)]
struct Check {
    files: usize,
    folders: usize,
    circles: Vec<String>,
}

impl Check {
    /// Checks the modules that `own`, the folder's own module, declares, and the folders below. `path` is that of the module in
    /// its crate. A crate with a library and a program has two such modules.
    fn folder(&mut self, folder: &Path, path: &[String], own: &[PathBuf]) -> Result<()> {
        let mut module = Source::default();
        for file in own {
            module.extend(read(file)?);
        }
        let mut graph = Graph::default();
        for name in &module.declared {
            let below = folder.join(name);
            let child: Vec<String> = path.iter().chain([name]).cloned().collect();
            let file = folder.join(format!("{name}.rs"));
            if file.exists() {
                self.files += 1;
                for (sibling, item) in siblings(&read(&file)?, &child, path, &module) {
                    graph.add(name, &sibling, &item);
                }
                self.folder(&below, &child, &[file])?;
            } else if below.join("mod.rs").exists() {
                self.folder(&below, &child, &[below.join("mod.rs")])?;
            }
        }
        self.folders += usize::from(!module.declared.is_empty());
        let shown = folder.strip_prefix(root()).unwrap_or(folder).display();
        self.circles.extend(graph.circles().into_iter().map(|circle| format!("{shown}: {circle}")));
        Ok(())
    }
}

fn read(file: &Path) -> Result<Source> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(Source::parse(&text))
}

/// The modules beside the module `child` that it names, each with the item. `module` is the one of the folder, `path` its path.
fn siblings(source: &Source, child: &[String], path: &[String], module: &Source) -> Vec<(String, String)> {
    let absolute = source.paths.iter().filter_map(|named| absolute(&named.segments, child, &source.declared));
    let found = absolute.filter_map(|named| sibling(named, path, module));
    found.filter(|(name, _)| Some(name) != child.last()).collect()
}

/// The module of a folder in which a path of the crate ends, and the item in it.
fn sibling(mut named: Vec<String>, path: &[String], module: &Source) -> Option<(String, String)> {
    for _ in 0..MOST_REEXPORTS {
        let rest = named.strip_prefix(path)?;
        let (first, items) = rest.split_first()?;
        if module.declared.contains(first) {
            return Some((first.clone(), items.last().unwrap_or(first).clone()));
        }
        let import = module.paths.iter().find(|import| import.name.as_ref() == Some(first))?;
        let mut origin = absolute(&import.segments, path, &module.declared)?;
        origin.extend(items.iter().cloned());
        named = origin;
    }
    None
}

/// A path as seen from the root of the crate; nothing if it leads out of the crate.
fn absolute(segments: &[String], module: &[String], declared: &[String]) -> Option<Vec<String>> {
    let (base, rest): (&[String], &[String]) = match segments.first()?.as_str() {
        "crate" => (&[], &segments[1..]),
        "self" => (module, &segments[1..]),
        "super" => {
            let up = segments.iter().take_while(|segment| *segment == "super").count();
            (&module[..module.len().checked_sub(up)?], &segments[up..])
        }
        first if declared.iter().any(|name| name == first) => (module, segments),
        _ => return None,
    };
    Some(base.iter().chain(rest).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the file `plan` of the folder `x::y` imports from the files beside it, `size` and `model` among them.
    fn imports(module: &str, text: &str) -> Vec<String> {
        let path = ["x", "y"].map(str::to_owned);
        let child = ["x", "y", "plan"].map(str::to_owned);
        let module = Source::parse(&format!("mod plan; mod size; mod model; {module}"));
        let found = siblings(&Source::parse(text), &child, &path, &module);
        found.into_iter().map(|(file, item)| format!("{file} {item}")).collect()
    }

    #[test]
    fn a_file_is_found_by_either_path() {
        let text = "use super::size::{Sizing, own}; use crate::x::y::model; fn f() { super::size::g() }";
        assert_eq!(imports("", text), ["size Sizing", "size own", "model model", "size g"]);
    }

    #[test]
    fn a_name_of_the_folder_is_followed_to_its_file() {
        let module = "pub use size::Sizing; use self::model::{Old as New}; pub use super::y::size::far;";
        let text = "use super::{New, Sizing, far}; use crate::x::y::Sizing::Large;";
        assert_eq!(imports(module, text), ["model Old", "size Sizing", "size far", "size Large"]);
    }

    #[test]
    fn other_folders_the_file_itself_and_the_folder_are_no_siblings() {
        let module = "pub struct Plan; pub use plan::Step;";
        let text = "use super::{Plan, Step}; use super::super::size::A; use crate::size::B; use std::fs; mod below; use below::C;";
        assert!(imports(module, text).is_empty());
    }

    #[test]
    fn re_exports_in_a_circle_come_to_an_end() {
        assert!(imports("use super::y::B as A; use super::y::A as B;", "use super::A;").is_empty());
    }
}
