//! Which lines lead to which candidates, without a cluster.

use super::line::Line;
use super::names::named;
use super::quoting::{for_bash, for_powershell, is_plain, kept, split};
use super::*;
use clap::Command;

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

fn offered(line: &str) -> Vec<String> {
    candidates(words(line)).into_iter().map(|candidate| candidate.value).collect()
}

#[test]
fn commands_kinds_and_flags_are_offered() {
    assert_eq!(offered("portolan unc"), ["uncordon"]);
    let all = offered("portolan ");
    assert!(all.contains(&"status".to_owned()) && !all.contains(&"--verbose".to_owned()), "{all:?}");
    assert_eq!(offered("portolan get mch"), ["mchpa"]);
    let kinds = ["clusters", "cp", "mcd", "mchpa", "mcj", "mcr", "mcs", "offers"];
    assert_eq!(offered("portolan get "), kinds, "no flags before one is begun");
    assert_eq!(offered("portolan explain mc"), ["mcd", "mcj", "mcs"]);
    assert_eq!(offered("portolan logs c"), ["controller"]);
    assert_eq!(offered("portolan get mcd --out"), ["--output"]);
    assert_eq!(offered("portolan get mcd -o "), ["wide", "json", "yaml", "name"]);
    assert_eq!(offered("portolan get mcd --output=y"), ["--output=yaml"]);
    assert_eq!(offered("portolan generate peer-command --only"), ["--only-command"]);
}

#[test]
fn flags_may_stand_before_the_command() {
    assert_eq!(offered("portolan --con"), ["--context"]);
    assert_eq!(offered("portolan -n shop --context c1 expl"), ["explain"]);
    let line = Line::new(words("portolan -n shop --context=c1 get mcd ")).unwrap();
    assert_eq!((line.value("namespace"), line.value("context")), (Some("shop".into()), Some("c1".into())));
    let line = Line::new(words("portolan --kubeconfig /tmp/k -n ")).unwrap();
    assert_eq!(line.cluster().kubeconfig, Some("/tmp/k".into()));
}

#[test]
fn a_line_is_understood_that_is_not_complete_or_wrong() {
    let line =
        Line::new(words("portolan peer --remote-kubeconfig /r --remote-context far -n a -n ")).unwrap();
    assert_eq!(line.remote().kubeconfig, Some("/r".into()));
    assert_eq!(line.remote().context.as_deref(), Some("far"));
    assert_eq!(line.values("namespaces"), ["a"]);
    let line = Line::new(words("portolan unpeer --context c1 ")).unwrap();
    assert_eq!(line.cluster().context.as_deref(), Some("c1"), "what is required may come yet");
    for line in
        ["portolan --nonsense x", "portolan nonsense ", "portolan get --help ", "", " ", "portolan -- "]
    {
        let _ = offered(line);
    }
    assert!(Line::new(Vec::new()).is_none());
}

#[test]
fn bash_lines_are_taken_apart_as_bash_does() {
    let read = |line: &str| split(line).words;
    assert_eq!(read("portolan get mcd "), ["portolan", "get", "mcd", ""]);
    assert_eq!(read("p --kubeconfig '/a b/c' -n sh"), ["p", "--kubeconfig", "/a b/c", "-n", "sh"]);
    assert_eq!(read(r#"p "a\"b\n" c\ d ''"#), ["p", r#"a"b\n"#, "c d", ""]);
    assert_eq!(read("p 'open quo"), ["p", "open quo"]);
    assert_eq!(read("p $(id) `id` "), ["p", "$(id)", "`id`", ""], "nothing is run");
    assert_eq!(read(r"p x\"), ["p", "x"]);
    let breaks = " \t\n\"'@><=;|&(:";
    assert_eq!((kept("--context=arn:aws", breaks), kept("web", breaks)), (14, 0));
    assert_eq!((kept("'arn:aws", breaks), kept("arn:aws", " ")), (0, 0));
}

#[test]
fn what_is_written_into_a_line_stays_one_word() {
    let context = "arn:aws:eks:eu-west-1:12:cluster/shop";
    assert!(is_plain(context) && is_plain("kubernetes-admin@kind"));
    for name in ["$(id)", "a b", "-n", "x;y", "a\u{1b}[2J", "", "~x", "`x`", "a'b", "a\nb", "ä\u{202e}"] {
        assert!(!is_plain(name), "{name:?}");
    }
    assert_eq!(for_bash("~/a b$c", "~/a"), r"~/a\ b\$c");
    assert_eq!(for_bash("a b", "'a"), "a b");
    assert_eq!((for_powershell("a b'c"), for_powershell("c:\\x")), ("'a b''c'".into(), "c:\\x".into()));
    let (asked, found) = (
        Shell::Bash.read(vec!["p --context=ar".into(), "=:".into()]).unwrap(),
        vec![Candidate { value: format!("--context={context}"), help: "no".to_owned() }],
    );
    assert_eq!(Shell::Bash.answer(&asked, &found), format!("{context}\n"));
}

#[test]
fn kubectl_is_told_that_there_are_no_files_and_whether_the_word_goes_on() {
    let asked = Shell::Kubectl.read(vec!["logs".into(), String::new().into()]).unwrap();
    assert_eq!(asked.words, ["portolan", "logs", ""]);
    let one = |value: &str| [Candidate { value: value.to_owned(), help: "Help".to_owned() }];
    assert_eq!(Shell::Kubectl.answer(&asked, &one("mcd")), "mcd\tHelp\n:4\n");
    assert_eq!(Shell::Kubectl.answer(&asked, &one("paris=")), "paris=\tHelp\n:6\n");
    assert_eq!(Shell::Kubectl.answer(&asked, &[]), ":4\n");
    let asked = Shell::Powershell.read(["portolan", "get", "\"\""].map(OsString::from).to_vec()).unwrap();
    assert_eq!(asked.words, ["portolan", "get", ""]);
}

#[test]
fn scripts_call_the_program_by_any_path() {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Kubectl] {
        assert!(
            shell.script("/opt/it's here/portolan").contains(r"'/opt/it'\''s here/portolan' --"),
            "{shell:?}"
        );
    }
    assert!(Shell::Fish.script("/it's").contains(r"'/it\'s' --"));
    assert!(Shell::Powershell.script("C:\\it's").contains("& 'C:\\it''s' '--'"));
}

/// Whoever adds an argument that names something has it completed.
#[test]
fn every_argument_that_names_something_is_completed() {
    let mut command = Cli::command();
    command.build();
    let mut missing = Vec::new();
    visit(&command, &mut missing);
    assert!(missing.is_empty(), "{missing:?}");
}

fn visit(command: &Command, missing: &mut Vec<String>) {
    for argument in command.get_arguments() {
        let ids = argument.get_id().as_str();
        let words: Vec<&str> =
            argument.get_value_names().into_iter().flatten().map(|word| word.as_str()).collect();
        let is_name = ["CLUSTER", "CONTEXT", "NAMESPACE", "WORKLOAD", "OBJECT"]
            .iter()
            .any(|what| words.iter().any(|word| word.split(['=', ' ']).any(|part| part == *what)));
        // Names that are given to something new, or that only the other side knows.
        let is_new = matches!((command.get_name(), ids), ("demo" | "sandbox", _));
        if is_name && !is_new && named(command.get_name(), ids).is_none() {
            missing.push(format!("{} {ids} {words:?}", command.get_name()));
        }
    }
    command.get_subcommands().for_each(|inner| visit(inner, missing));
}
