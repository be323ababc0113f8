//! framework
