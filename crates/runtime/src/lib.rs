//! What every shell runs on: clock, seed, ordered indexes fed by watches, and a work queue.

mod clock;
mod seed;

pub use clock::Clock;
pub use seed::Seed;
