//! Deleting what may be gone already.

use portolan_runtime::CallError;

/// That an object is not there any more is no mistake.
pub(super) fn gone<T>(result: Result<T, CallError>) -> Result<(), CallError> {
    match result {
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(|_| ()),
    }
}
