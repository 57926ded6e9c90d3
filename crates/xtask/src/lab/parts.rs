//! What labs consist of, made before it is needed.

use anyhow::Result;
use portolan_lab::parts::{
    ClusterApiParts, DEFAULT_KUBERNETES, Parts, custom_metrics_adapter, metrics_server,
};

/// Makes all parts that are not in the cache.
pub(crate) fn ensure_all() -> Result<()> {
    let mut report = |step| println!("{step}");
    Parts::ensure(DEFAULT_KUBERNETES, &mut report)?;
    ClusterApiParts::ensure(&mut report)?;
    metrics_server(&mut report)?;
    custom_metrics_adapter(&mut report)?;
    Ok(())
}
