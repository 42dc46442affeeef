//! `ichido check` as a process, on real files.

mod diff;
mod formats;
mod guide;
mod many;
mod place;
mod refusing;
mod rules;
mod starting;
