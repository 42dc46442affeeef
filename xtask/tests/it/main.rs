//! Tests of the command line, and of the rules about this repository.

mod chore;
mod tidy;
