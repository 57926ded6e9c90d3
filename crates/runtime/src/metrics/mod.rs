//! Numbers for those who watch over a process.
//!
//! They are kept where things happen, under locks that are held there anyway, and collected when somebody asks: counting
//! costs next to nothing, and nothing that is counted has an effect on what is done.

mod encode;
mod family;
mod histogram;
mod requests;
mod samples;

pub use encode::Format;
pub use family::{Family, Kind};
pub use histogram::Histogram;
pub use requests::{Counted, CountedRequests, RequestCount, RequestCounts, RequestUnderWay};
pub use samples::Samples;
