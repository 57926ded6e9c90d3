//! The controllers of Portolan, one folder a capability.
