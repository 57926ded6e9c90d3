//! End-to-end tests live under `tests/`; what they share is here.
