//! What the lab reads from a `go.mod`.

/// The version of `module` that this `go.mod` requires, without the `v`.
pub(super) fn required<'a>(go_mod: &'a str, module: &str) -> Option<&'a str> {
    directives(go_mod).find_map(|words| match words[..] {
        ["require", name, version, ..] if name == module => version.strip_prefix('v'),
        _ => None,
    })
}

/// The oldest Go that this `go.mod` allows.
pub(super) fn go(go_mod: &str) -> Option<&str> {
    directives(go_mod).find_map(|words| match words[..] {
        ["go", version] => Some(version),
        _ => None,
    })
}

/// The value of a `godebug` setting, such as `default`.
pub(super) fn godebug<'a>(go_mod: &'a str, setting: &str) -> Option<&'a str> {
    directives(go_mod).find_map(|words| match words[..] {
        ["godebug", pair] => pair.strip_prefix(setting)?.strip_prefix('='),
        _ => None,
    })
}

/// The modules that are required at exactly this version.
pub(super) fn required_at<'a>(go_mod: &'a str, version: &str) -> Vec<&'a str> {
    directives(go_mod)
        .filter_map(|words| match words[..] {
            ["require", module, at, ..] if at == version => Some(module),
            _ => None,
        })
        .collect()
}

/// Each directive as words, those in a block with the block's keyword before them; comments are left out.
fn directives(go_mod: &str) -> impl Iterator<Item = Vec<&str>> {
    let mut block = None;
    go_mod.lines().filter_map(move |line| {
        let line = line.split_once("//").map_or(line, |(code, _)| code);
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), block) {
            ([], _) => None,
            ([keyword, "("], None) => {
                block = Some(*keyword);
                None
            }
            ([")"], Some(_)) => {
                block = None;
                None
            }
            (_, Some(keyword)) => Some(std::iter::once(keyword).chain(words).collect()),
            (_, None) => Some(words),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "\
// This is a generated file.
module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require k8s.io/klog/v2 v2.140.0 // indirect

require (
\tk8s.io/api v0.0.0
\tk8s.io/client-go v0.0.0 // indirect
\tk8s.io/utils v0.0.0-20260210185600-b8788abfbbc2 // indirect
)

replace k8s.io/other => example.com/other v1.2.3

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/client-go => ./staging/src/k8s.io/client-go
)
";

    #[test]
    fn directives_are_read_in_and_out_of_blocks() {
        assert_eq!(required(EXAMPLE, "k8s.io/klog/v2"), Some("2.140.0"));
        assert_eq!(required(EXAMPLE, "k8s.io/utils"), Some("0.0.0-20260210185600-b8788abfbbc2"));
        assert_eq!(required(EXAMPLE, "k8s.io/other"), None);
        assert_eq!(go(EXAMPLE), Some("1.26.0"));
        assert_eq!(godebug(EXAMPLE, "default"), Some("go1.26"));
        assert_eq!(required_at(EXAMPLE, "v0.0.0"), ["k8s.io/api", "k8s.io/client-go"]);
    }

    #[test]
    fn nothing_is_found_in_nothing() {
        assert_eq!((required("", "a"), go(""), godebug("", "default")), (None, None, None));
        assert!(required_at("require (", "v0.0.0").is_empty());
    }
}
