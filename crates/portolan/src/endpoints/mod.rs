//! What a controller answers to those who watch over it: probes of the kubelet, and metrics.

mod answer;
mod process;
mod server;

pub(crate) use answer::{Endpoints, Watched};
pub(crate) use server::{bind, serve};
