//! The decisions of Portolan: pure functions from what is known to what to do.
