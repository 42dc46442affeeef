//! A file can be read at all (SPEC C8).

use super::{Rule, declare};

/// The rule that a file can be read at all; [`Boundary::read`](crate::Boundary::read) checks it.
pub static UNREADABLE: Rule = declare! {
    "ICH-B000", Error, "C8",
    "A boundary file is JSON that fits the dialect",
    why: "What cannot be read cannot be checked, and a reader that guesses at a doubled member or a number in quotes \
          would promise something that the file does not say.",
    mend: "Mend the text at the line and column given. Unknown members are fine; leave a member out to say nothing.",
    example: "bff_to_gateway.json" at "/http/timeouts",
    check: |_| Vec::new(),
};
