//! Checks of the documentation: links resolve, every page is in the summary, commands and their flags exist.

use crate::generate::help;
use crate::steps::root;
use anyhow::{Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn run() -> Result<()> {
    let root = root();
    let book = root.join("docs/src");
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    pages.extend(markdown(&book)?);
    let mut problems = Vec::new();
    let mut helps = BTreeMap::new();
    let (mut links, mut commands) = (0, 0);
    for page in &pages {
        let text = fs::read_to_string(page)?;
        let name = page.strip_prefix(&root).unwrap_or(page).display().to_string();
        for link in link_targets(&text) {
            links += 1;
            problems.extend(broken(page, &link).map(|why| format!("{name}: link {link}: {why}")));
        }
        for command in shell_commands(&text) {
            if let Some(why) = unknown(&command, &mut helps) {
                problems.push(format!("{name}: `{command}`: {why}"));
            }
            commands += 1;
        }
    }
    let summary = fs::read_to_string(book.join("SUMMARY.md"))?;
    for page in markdown(&book)?.iter().filter_map(|page| page.strip_prefix(&book).ok()) {
        let listed = page.ends_with("SUMMARY.md") || summary.contains(&format!("({})", page.display()));
        if !listed {
            problems.push(format!("docs/src/SUMMARY.md does not list {}", page.display()));
        }
    }
    if !problems.is_empty() {
        bail!("the documentation has mistakes:\n  {}", problems.join("\n  "));
    }
    println!("{} pages, {links} links, {commands} lines of shell: in order", pages.len());
    Ok(())
}

fn markdown(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            pages.extend(markdown(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}

/// The targets of `[text](target)`, outside code.
fn link_targets(text: &str) -> Vec<String> {
    let mut targets = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect();
        let mut rest = prose.as_str();
        while let Some(start) = rest.find("](") {
            rest = &rest[start + 2..];
            let end = rest.find(')').unwrap_or(rest.len());
            targets.push(rest[..end].to_owned());
            rest = &rest[end..];
        }
    }
    targets
}

fn broken(page: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() { page.to_owned() } else { page.parent()?.join(file) };
    if !target.exists() {
        return Some("there is no such file".to_owned());
    }
    if anchor.is_empty() {
        return None;
    }
    let text = fs::read_to_string(&target).ok()?;
    let anchors: BTreeSet<String> = text
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| slug(line.trim_start_matches('#')))
        .collect();
    (!anchors.contains(anchor)).then(|| format!("{} has no heading #{anchor}", target.display()))
}

/// The anchor that a heading gets.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// The lines of ```sh blocks that run a program of ours, continued lines joined.
fn shell_commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut shell = false;
    let mut pending = String::new();
    for line in text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            shell = !shell && matches!(language, "sh" | "bash" | "shell");
            continue;
        }
        if !shell {
            continue;
        }
        pending.push_str(line.trim().trim_end_matches('\\'));
        if !line.trim_end().ends_with('\\') {
            let line = std::mem::take(&mut pending);
            commands.extend(
                line.split('|').map(|part| part.trim().to_owned()).filter(|part| ours(part).is_some()),
            );
        }
    }
    commands
}

/// The package and the words after the program's name, if the program is ours.
fn ours(command: &str) -> Option<(&'static str, Vec<&str>)> {
    let words: Vec<_> = command.split_whitespace().collect();
    match words.as_slice() {
        ["portolan", rest @ ..] => Some(("portolan", rest.to_vec())),
        ["./dev", "demo", rest @ ..] => Some(("portolan", [&["demo"], rest].concat())),
        ["cargo", "xtask", rest @ ..] => Some(("xtask", rest.to_vec())),
        ["./dev", rest @ ..] => Some(("xtask", rest.to_vec())),
        _ => None,
    }
}

/// Why a command does not exist as written.
fn unknown(
    command: &str,
    helps: &mut BTreeMap<(String, Vec<String>), Result<String, String>>,
) -> Option<String> {
    let (package, words) = ours(command)?;
    let mut path: Vec<String> = Vec::new();
    let mut text = read(package, &path, helps).ok()?;
    for word in words.iter().take_while(|word| !word.starts_with('-')) {
        let listed =
            text.lines().any(|line| line.starts_with("  ") && line.split_whitespace().next() == Some(word));
        if !text.contains("\nCommands:") {
            break;
        }
        if !listed {
            return Some(format!("there is no command {word}"));
        }
        path.push((*word).to_owned());
        text = match read(package, &path, helps) {
            Ok(text) => text,
            Err(why) => return Some(why),
        };
    }
    let flags = words.iter().take_while(|word| **word != "--").filter(|word| word.starts_with("--"));
    let names = flags.map(|flag| flag.split('=').next().unwrap_or(flag));
    let missing =
        names.filter(|flag| !text.split(|c: char| c.is_whitespace() || c == ',').any(|word| word == *flag));
    let missing: Vec<_> = missing.collect();
    (!missing.is_empty()).then(|| format!("{} {} has no {}", package, path.join(" "), missing.join(", ")))
}

fn read(
    package: &str,
    path: &[String],
    helps: &mut BTreeMap<(String, Vec<String>), Result<String, String>>,
) -> Result<String, String> {
    let key = (package.to_owned(), path.to_vec());
    helps.entry(key).or_insert_with(|| help(package, path).map_err(|error| error.to_string())).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_code_are_no_links() {
        let text = "see [a](b.md) and `[c](d.md)`\n```sh\n[e](f.md)\n```\n[g](h.md#i)";
        assert_eq!(link_targets(text), ["b.md", "h.md#i"]);
    }

    #[test]
    fn commands_are_found_in_shell_blocks_only() {
        let text = "```sh\nportolan crds | kubectl apply -f -\ncargo xtask lab up \\\n  --clusters 2\nls\n```\n```yaml\nportolan x\n```";
        assert_eq!(shell_commands(text), ["portolan crds", "cargo xtask lab up --clusters 2"]);
    }

    #[test]
    fn headings_become_anchors() {
        assert_eq!(slug(" The idea, in one picture"), "the-idea-in-one-picture");
    }
}
