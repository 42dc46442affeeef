//! `ichido demo` as a newcomer runs it: the whole story, a port that is taken, Ctrl-C, and nothing left behind (issue 8).

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

#[path = "../outbox/folder.rs"]
mod folder;

mod program;
mod refusing;
mod stopping;
mod story;
