//! Words as shells write them.

/// Whether a name can be written into a command line as it is, in each shell. Others are not offered: a kubeconfig may come from
/// elsewhere, and a name such as `$(…)` must not become a command.
pub(super) fn is_plain(name: &str) -> bool {
    let plain = |each: char| each.is_ascii_alphanumeric() || "-_.:/@+=".contains(each);
    name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.chars().all(plain)
}

/// A line of bash, up to the cursor, as words. The last one is being written.
pub(super) struct Words {
    pub(super) words: Vec<String>,
    /// How the last word stands there.
    pub(super) raw: String,
}

/// Reads a line of bash. Variables and commands stay as they stand: to complete a line is not to run it.
pub(super) fn split(line: &str) -> Words {
    let mut words = Vec::new();
    let (mut word, mut raw) = (String::new(), String::new());
    let mut quote = None;
    let mut rest = line.chars();
    while let Some(each) = rest.next() {
        match (quote, each) {
            (None, ' ' | '\t' | '\n') => {
                if !raw.is_empty() {
                    words.push(std::mem::take(&mut word));
                    raw.clear();
                }
                continue;
            }
            (None, '\'' | '"') => quote = Some(each),
            (Some(open), close) if open == close => quote = None,
            (None | Some('"'), '\\') => {
                raw.push(each);
                let Some(next) = rest.next() else { break };
                if quote.is_some() && !"\\\"$`".contains(next) {
                    word.push('\\');
                }
                word.push(next);
                raw.push(next);
                continue;
            }
            (_, other) => word.push(other),
        }
        raw.push(each);
    }
    words.push(word);
    Words { words, raw }
}

/// How many bytes of the last word bash keeps and does not expect again: it takes a word apart at these characters.
pub(super) fn kept(raw: &str, breaks: &str) -> usize {
    let is_quoted = raw.contains(['\'', '"', '\\']);
    let breaks: Vec<char> = breaks.chars().filter(|each| "=:@".contains(*each)).collect();
    match raw.rfind(breaks.as_slice()) {
        Some(last) if !is_quoted => last + 1,
        _ => 0,
    }
}

/// A word for a line of bash. A quote that the user has opened stays open.
pub(super) fn for_bash(value: &str, raw: &str) -> String {
    if raw.starts_with(['\'', '"']) {
        return value.to_owned();
    }
    let mut quoted = String::with_capacity(value.len());
    for (place, each) in value.char_indices() {
        let plain = each.is_alphanumeric() || "-_.:/@+=,%".contains(each) || (place == 0 && each == '~');
        if !plain {
            quoted.push('\\');
        }
        quoted.push(each);
    }
    quoted
}

/// A word for a line of PowerShell.
pub(super) fn for_powershell(value: &str) -> String {
    let plain = |each: char| each.is_alphanumeric() || "-_.:/\\@+=~".contains(each);
    if value.chars().all(plain) && !value.starts_with('@') {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', "''"))
}

/// A path as one word of a POSIX shell.
pub(super) fn posix(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}

/// A path as one word of fish.
pub(super) fn fish(path: &str) -> String {
    format!("'{}'", path.replace('\\', r"\\").replace('\'', r"\'"))
}

/// A path as one word of PowerShell.
pub(super) fn powershell(path: &str) -> String {
    format!("'{}'", path.replace('\'', "''"))
}
