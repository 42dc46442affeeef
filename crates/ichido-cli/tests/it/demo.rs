//! `ichido demo` as a newcomer runs it: the whole story, a port that is taken, Ctrl-C, and nothing left behind (issue 8).

mod program;
mod refusing;
mod stopping;
mod story;
