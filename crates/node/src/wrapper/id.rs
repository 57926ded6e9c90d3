//! The ID of a container.

use super::WrapperError;
use std::ffi::OsStr;

/// The ID of a container, which becomes part of paths.
pub(super) fn id(id: &OsStr) -> Result<String, WrapperError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match id.to_str() {
        Some(text)
            if (1..=128).contains(&text.len()) && text.chars().all(plain) && !text.starts_with('.') =>
        {
            Ok(text.to_owned())
        }
        _ => Err(WrapperError::Id { id: id.to_string_lossy().chars().take(64).collect() }),
    }
}
