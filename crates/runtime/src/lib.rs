//! What every shell runs on: clock, seed, ordered indexes fed by watches, and a work queue.
