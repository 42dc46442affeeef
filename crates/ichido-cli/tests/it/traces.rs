//! Traces as a collector receives them.

pub(crate) mod collector;
mod spans;
mod vendor;
