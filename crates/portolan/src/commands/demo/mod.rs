//! `portolan demo`: placement at work on clusters inside this process.

mod fleet;
mod show;
mod story;

use crate::cli::DemoArgs;
use crate::failure::Failure;
use std::time::Duration;

pub(super) fn run(args: &DemoArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let limit = Duration::from_secs(args.seconds);
    match runtime.block_on(async { tokio::time::timeout(limit, story::tell(args.seed)).await }) {
        Ok(told) => told,
        Err(_) => Err(Failure::other(format!("the demo was not done within {} s", limit.as_secs()))
            .hint("a slow machine needs longer: give --seconds")),
    }
}
