//! Chat completions of OpenAI and of all that imitate it.

mod read;
mod reply;

pub(crate) use read::read;
pub(crate) use reply::{answer, counters, fail, refuse};
