//! What a file of Rust names: the modules that it declares and the paths that it imports. Tests are left out.
//!
//! This reads as much of the language as it takes to tell a path from text; macros are read as they are written.

/// What one file names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Source {
    /// The modules declared as `mod name;`.
    pub(super) declared: Vec<String>,
    /// Paths of `use`, and those that begin with `crate`, `self` or `super` anywhere.
    pub(super) paths: Vec<Path>,
}

/// One path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    /// Its parts, `crate`, `self` and `super` among them.
    pub(super) segments: Vec<String>,
    /// The name that it has in the file, if it is imported.
    pub(super) name: Option<String>,
}

impl Source {
    pub(super) fn parse(text: &str) -> Self {
        let tokens = tokens(text);
        let mut reader = Reader { tokens: &tokens, at: 0, inline: Vec::new(), source: Self::default() };
        reader.read();
        reader.source
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.declared.extend(other.declared);
        self.paths.extend(other.paths);
    }
}

struct Reader<'a> {
    tokens: &'a [String],
    at: usize,
    /// How many braces are open around each inline module that is open, itself included.
    inline: Vec<usize>,
    source: Source,
}

impl Reader<'_> {
    fn read(&mut self) {
        let mut depth: usize = 0;
        while let Some(token) = self.tokens.get(self.at) {
            match token.as_str() {
                "#" if self.is_test() => {
                    self.skip_item();
                    continue;
                }
                "{" => depth += 1,
                "}" => {
                    self.inline.pop_if(|opened| *opened == depth);
                    depth = depth.saturating_sub(1);
                }
                "mod" if self.is(2, "{") => self.inline.push(depth + 1),
                "mod" if self.is(2, ";") && self.inline.is_empty() => {
                    self.source.declared.push(self.tokens[self.at + 1].clone());
                }
                "use" => {
                    self.at += 1;
                    self.tree(&[], true);
                    continue;
                }
                "crate" | "self" | "super" if self.is(1, "::") => {
                    self.tree(&[], false);
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    fn is(&self, ahead: usize, wanted: &str) -> bool {
        self.tokens.get(self.at + ahead).is_some_and(|token| token == wanted)
    }

    /// Whether an attribute begins here that leaves an item to tests: `#[cfg(test)]`, also together with other conditions.
    fn is_test(&self) -> bool {
        let attribute = self.tokens[self.at..].iter().take_while(|token| *token != "]");
        let words: Vec<&str> = attribute.map(String::as_str).collect();
        words.starts_with(&["#", "[", "cfg", "("]) && words.contains(&"test") && !words.contains(&"not")
    }

    /// Skips an item with its attributes: to its `;`, or to the end of its block, or to the end of what it is in.
    fn skip_item(&mut self) {
        let mut depth: usize = 0;
        let mut is_import = false;
        while let Some(token) = self.tokens.get(self.at) {
            match token.as_str() {
                "use" if depth == 0 => is_import = true,
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" if depth == 0 => return,
                "}" if depth == 1 && !is_import => {
                    self.at += 1;
                    return;
                }
                "}" | ")" | "]" => depth -= 1,
                ";" if depth == 0 => {
                    self.at += 1;
                    return;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Reads a path, or the tree of paths of a `use`, and adds every path in it.
    fn tree(&mut self, prefix: &[String], is_import: bool) {
        let mut segments = prefix.to_vec();
        if self.is(0, "::") {
            // A path that begins so leads into another crate.
            segments.push(String::new());
            self.at += 1;
        }
        while let Some(token) = self.tokens.get(self.at) {
            if token == "{" && is_import {
                self.at += 1;
                while self.at < self.tokens.len() && !self.is(0, "}") {
                    if self.is(0, ",") {
                        self.at += 1;
                    } else {
                        self.tree(&segments, is_import);
                    }
                }
                self.at += 1;
                return;
            }
            self.at += 1;
            segments.push(token.clone());
            if !self.is(0, "::") {
                break;
            }
            self.at += 1;
            // Generics: `Vec::<T>`.
            if self.is(0, "<") || (!is_import && self.is(0, "{")) {
                break;
            }
        }
        // `a::{self}` names `a`.
        if segments.len() > 1 {
            segments.pop_if(|last| last == "self");
        }
        let mut name = segments.last().cloned().filter(|name| name != "*");
        if is_import && self.is(0, "as") {
            name = self.tokens.get(self.at + 1).cloned();
            self.at += 2;
        }
        self.add(segments, name.filter(|_| is_import));
    }

    /// Adds a path as seen from the file, unless it leads into the file itself.
    fn add(&mut self, mut segments: Vec<String>, name: Option<String>) {
        if segments.last().is_some_and(|last| last == "*") {
            segments.pop();
        }
        for _ in &self.inline {
            match segments.first().map(String::as_str) {
                Some("super") => drop(segments.remove(0)),
                Some("crate") => break,
                _ => return,
            }
        }
        let leads_out = |first: &String| matches!(first.as_str(), "super" | "crate");
        if self.inline.is_empty() || segments.first().is_some_and(leads_out) {
            // What an inline module imports has no name in the file.
            let name = name.filter(|_| self.inline.is_empty());
            self.source.paths.push(Path { segments, name });
        }
    }
}

/// Words, `::` and single signs; comments, texts, characters and lifetimes are left out.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let used = match first {
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => comment(rest),
            _ if rest.starts_with("::") => {
                tokens.push("::".to_owned());
                2
            }
            '"' => string(rest),
            '\'' => character(rest),
            _ if word > 0 => match raw_string(rest, word) {
                Some(used) => used,
                None => {
                    tokens.push(rest[..word].to_owned());
                    word
                }
            },
            _ => {
                if !first.is_whitespace() {
                    tokens.push(first.to_string());
                }
                first.len_utf8()
            }
        };
        rest = &rest[used..];
    }
    tokens
}

/// How long a block comment is, with those in it.
fn comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// How long a text in quotes is.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// How long a character in quotes is; of a lifetime, its quote.
fn character(text: &str) -> usize {
    let mut after = text.char_indices().skip(1);
    match (after.next(), after.next()) {
        (Some((_, '\\')), Some((escaped, c))) => {
            let from = escaped + c.len_utf8();
            text[from..].find('\'').map_or(text.len(), |end| from + end + 1)
        }
        (Some(_), Some((end, '\''))) => end + 1,
        _ => 1,
    }
}

/// How long a raw text is that begins with a word of this length, as in `r#"text"#`; nothing if it is none.
fn raw_string(text: &str, word: usize) -> Option<usize> {
    if !matches!(&text[..word], "r" | "br" | "cr") {
        return None;
    }
    let signs = text[word..].chars().take_while(|c| *c == '#').count();
    let body = text[word + signs..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(signs));
    let start = word + signs + 1;
    Some(body.find(&end).map_or(text.len(), |at| start + at + end.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let paths = Source::parse(text).paths;
        paths
            .into_iter()
            .map(|path| match path.name {
                Some(name) => format!("{} as {name}", path.segments.join("::")),
                None => path.segments.join("::"),
            })
            .collect()
    }

    #[test]
    fn the_trees_of_use_are_told_apart() {
        let text = "use super::{A, b::{self, C as D, e::*}, f};\npub(crate) use crate::x::Y;\nuse ::std::fs;";
        assert_eq!(
            paths(text),
            [
                "super::A as A",
                "super::b as b",
                "super::b::C as D",
                "super::b::e",
                "super::f as f",
                "crate::x::Y as Y",
                "::std::fs as fs",
            ]
        );
    }

    #[test]
    fn paths_in_code_are_found_and_visibility_is_no_path() {
        let text =
            "pub(super) fn f(x: &super::a::A) -> B { crate::b::c::<u8>(x); self.d(); super::E { n: 1 } }";
        assert_eq!(paths(text), ["super::a::A", "crate::b::c", "super::E"]);
    }

    #[test]
    fn texts_comments_characters_and_lifetimes_hide_nothing() {
        let text = "/// [`super::a::A`]\n/* use super::b; /* */ */ const C: &str = \"use super::c; \\\" \";\n\
                    const D: &str = r#\"use \"super::d;\"#; fn f<'a>(c: char) { c == '\"' || c == '\\'' } use super::e;";
        assert_eq!(paths(text), ["super::e as e"]);
    }

    #[test]
    fn tests_are_left_out() {
        let text = "#[cfg(test)]\nmod model;\nmod a;\n#[cfg(test)]\nuse super::{b::B, c};\n\
                    #[cfg(any(test, feature = \"x\"))]\n#[path = \"d_tests.rs\"]\nmod d_tests;\n#[cfg(not(test))]\nuse super::e;\n\
                    #[cfg(test)]\nmod tests {\n    use super::super::f;\n    fn g() { }\n}\nuse super::h;";
        assert_eq!(Source::parse(text).declared, ["a"]);
        assert_eq!(paths(text), ["super::e as e", "super::h as h"]);
    }

    #[test]
    fn an_inline_module_is_part_of_its_file() {
        let text = "mod inner {\n    use super::A;\n    use super::super::b::B;\n    use crate::c::C;\n    use self::d::D;\n}\nuse super::e;";
        assert_eq!(paths(text), ["super::b::B", "crate::c::C", "super::e as e"]);
    }
}
