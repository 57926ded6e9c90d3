//! Lines with further lines below them, as a tree.

/// So many lines are shown below one; `-o json` has all.
const SHOWN_AT_MOST: usize = 20;

/// A line, and those below it.
pub(super) struct Branch {
    line: String,
    below: Vec<String>,
}

impl Branch {
    /// A line with nothing below it.
    pub(super) fn leaf(line: String) -> Self {
        Self { line, below: Vec::new() }
    }

    /// A line with others below it; nothing if there are no others.
    pub(super) fn list(line: String, mut below: Vec<String>) -> Option<Self> {
        if below.len() > SHOWN_AT_MOST {
            let more = below.len() - SHOWN_AT_MOST;
            below.truncate(SHOWN_AT_MOST);
            below.push(format!("and {more} more"));
        }
        (!below.is_empty()).then_some(Self { line, below })
    }
}

/// The branches as text.
pub(super) fn drawn(branches: &[Branch]) -> String {
    let mut text = String::new();
    for (position, Branch { line, below }) in branches.iter().enumerate() {
        let (fork, trunk) =
            if position + 1 == branches.len() { ("└─", "   ") } else { ("├─", "│  ") };
        text.push_str(&format!("{fork} {line}\n"));
        for (position, line) in below.iter().enumerate() {
            let fork = if position + 1 == below.len() { "└─" } else { "├─" };
            text.push_str(&format!("{trunk}{fork} {line}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_forks_and_says_how_much_is_left_out() {
        let words = |count: usize| (1..=count).map(|number| number.to_string()).collect::<Vec<_>>();
        let mut branches = vec![Branch::leaf("one".to_owned())];
        branches.extend(Branch::list("two".to_owned(), words(2)));
        branches.extend(Branch::list("none".to_owned(), Vec::new()));
        branches.push(Branch::leaf("three".to_owned()));
        assert_eq!(drawn(&branches), "├─ one\n├─ two\n│  ├─ 1\n│  └─ 2\n└─ three\n");
        let many = drawn(&Vec::from_iter(Branch::list("many".to_owned(), words(25))));
        assert!(many.ends_with("   ├─ 20\n   └─ and 5 more\n"), "{many}");
        assert_eq!(drawn(&[]), "");
    }
}
