//! The chores of this repository: the command line, and the rules that the repository keeps.

mod chore;
mod tidy;
