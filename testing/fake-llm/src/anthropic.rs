//! Anthropic's Messages API.

mod read;
mod reply;

pub(crate) use read::read;
pub(crate) use reply::{answer, counters, fail, refuse};
