//! Traces, as a collector gets them.

mod collector;
mod spans;
mod vendor;
