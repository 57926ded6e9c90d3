//! What a controller answers to those who watch over it: probes of the kubelet, and metrics.

mod answer;
mod server;

pub(crate) use answer::Endpoints;
pub(crate) use server::{bind, serve};
