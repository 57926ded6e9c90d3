//! Sessions on two fake nodes, with a coordinator that is the real one.

mod crashes;
mod disk;
mod downtime;
mod fake;
mod journal;
mod limits;
mod node;
mod orders;
mod play;
mod world;
