//! `ichido demo` as a newcomer runs it: the whole scenario, a taken port, Ctrl-C, and nothing left behind.
// Issue 8.

mod program;
mod refusing;
mod stopping;
mod story;
