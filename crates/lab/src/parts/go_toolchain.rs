//! Whether the machine's Go can build a module.

use std::process::Command;

use super::version::leading_numbers;
use super::{Missing, process};

/// Says what is missing to build modules that ask for Go `needed`; nothing when they can be built.
pub(super) fn missing(needed: &str) -> Option<Missing> {
    if process::find("go").is_none() {
        return Some(Missing::new(
            "no `go` in PATH",
            format!(
                "install Go {needed} or newer from https://go.dev/dl and put its bin directory into PATH"
            ),
        ));
    }
    // Outside of any module, and without fetching another toolchain: what is installed.
    let ask = |variable: &str, toolchain: Option<&str>| {
        let mut command = Command::new("go");
        command.args(["env", variable]).current_dir("/").env("GOWORK", "off");
        if let Some(toolchain) = toolchain {
            command.env("GOTOOLCHAIN", toolchain);
        }
        process::run("Go", &mut command, "").map(|printed| printed.trim().to_owned())
    };
    match (ask("GOVERSION", Some("local")), ask("GOTOOLCHAIN", None)) {
        (Ok(installed), Ok(policy)) => too_old(&installed, &policy, needed),
        (Err(error), _) | (_, Err(error)) => {
            Some(Missing::new(format!("`go` does not run: {error}"), format!("install Go {needed} or newer")))
        }
    }
}

/// Since 1.21 Go fetches a newer toolchain for a module that asks for it, unless it is told not to.
fn too_old(installed: &str, policy: &str, needed: &str) -> Option<Missing> {
    let numbers = leading_numbers(installed);
    let fetches = numbers >= vec![1, 21] && policy != "local" && !policy.ends_with("+path");
    if numbers >= leading_numbers(needed) || fetches {
        return None;
    }
    Some(Missing::new(
        format!("Go is {installed}, but the parts need {needed} or newer (GOTOOLCHAIN={policy})"),
        format!("install Go {needed} from https://go.dev/dl, or let Go fetch it: export GOTOOLCHAIN=auto"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_go_is_refused_unless_it_fetches_a_newer_one() {
        assert_eq!(too_old("go1.26.8", "local", "1.26.0"), None);
        assert_eq!(too_old("go1.27rc1", "local", "1.26.0"), None);
        assert_eq!(too_old("go1.24.4", "auto", "1.26.0"), None);
        for (installed, policy) in
            [("go1.24.4", "local"), ("go1.24.4", "local+path"), ("go1.19.8", "auto"), ("devel", "local")]
        {
            let missing = too_old(installed, policy, "1.26.0").unwrap().to_string();
            assert!(missing.contains(installed) && missing.contains("install Go 1.26.0"), "{missing}");
        }
    }
}
