//! Flags before the command, as kubectl takes them.

use std::ffi::OsString;

/// The flags that may stand before the command; each takes a value.
const MOVED: [&str; 4] = ["-n", "--namespace", "--context", "--kubeconfig"];

/// Puts such flags behind the command, where its own arguments are: `portolan -n shop get mcd`.
pub(crate) fn as_kubectl_does(arguments: Vec<OsString>) -> Vec<OsString> {
    let mut rest = arguments.into_iter();
    let mut ordered: Vec<OsString> = rest.next().into_iter().collect();
    let mut moved = Vec::new();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy();
        let named = |flag: &&&str| {
            text.strip_prefix(**flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        match MOVED.iter().find(named) {
            Some(flag) if text == **flag => {
                moved.push(argument);
                moved.extend(rest.next());
            }
            Some(_) => moved.push(argument),
            None => {
                let command = !text.starts_with('-');
                ordered.push(argument);
                if command {
                    break;
                }
            }
        }
    }
    ordered.extend(moved);
    ordered.extend(rest);
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(line: &str) -> String {
        let words = as_kubectl_does(line.split(' ').map(OsString::from).collect());
        words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn flags_before_the_command_go_behind_it() {
        assert_eq!(ordered("portolan -n shop get mcd"), "portolan get -n shop mcd");
        assert_eq!(ordered("portolan -v --context=a -n b status"), "portolan -v status --context=a -n b");
        assert_eq!(ordered("portolan get mcd -n shop"), "portolan get mcd -n shop");
        assert_eq!(ordered("portolan --namespaces get"), "portolan --namespaces get");
    }
}
