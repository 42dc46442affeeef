//! `ichido check` as a process, on real files.

mod diff;
mod fixture;
mod formats;
mod guide;
mod many;
mod refusing;
mod rules;
mod starting;
