//! Traces as a collector receives them.

mod collector;
mod spans;
mod vendor;
