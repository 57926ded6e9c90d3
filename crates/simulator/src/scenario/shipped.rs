//! The scenarios that come with the program.

/// A scenario that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Its name.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

const ALL: [Shipped; 6] = [
    Shipped { name: "day", text: include_str!("../../scenarios/day.yaml") },
    Shipped { name: "paper-1", text: include_str!("../../scenarios/paper-1.yaml") },
    Shipped { name: "paper-2", text: include_str!("../../scenarios/paper-2.yaml") },
    Shipped { name: "paper-3", text: include_str!("../../scenarios/paper-3.yaml") },
    Shipped { name: "paper-4", text: include_str!("../../scenarios/paper-4.yaml") },
    Shipped { name: "rush-hour", text: include_str!("../../scenarios/rush-hour.yaml") },
];

/// The scenarios that come with the program, by name.
#[must_use]
pub fn shipped() -> &'static [Shipped] {
    &ALL
}
