//! The sandbox held against a real API server: one script of calls, run on both, and what differs.
//!
//! The [`script`] is made of independent scenarios, each in a namespace of its own. [`run`] carries it out over a
//! client, [`normalise`](Answer) takes out of the answers what differs from run to run, [`compare`] finds what is
//! left, and [`divergences`] is the list of differences that are known. [`page`] is that list as documentation.

mod compare;
mod divergences;
mod normalise;
mod page;
mod run;
mod script;
mod step;

pub use compare::{Difference, Verdict, compare};
pub use divergences::{Divergence, Outlook, divergences};
pub use page::page;
pub use run::{Answer, Answers, add_node, run, run_on_sandbox};
pub use script::script;
pub use step::{Kind, Scenario, Step};
