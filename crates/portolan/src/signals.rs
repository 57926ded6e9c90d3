//! The user's wish to end.

use crate::failure::Failure;

/// Waits for Ctrl-C or a polite request to end.
pub(crate) async fn stopped() -> Result<(), Failure> {
    #[cfg(unix)]
    {
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            result = tokio::signal::ctrl_c() => result?,
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await?;
    Ok(())
}
