//! Asks language models under Ichido's rules: single calls, batches, or a queue's messages.
//!
//! Guarantee: a model is called at most as often as its limits allow, every call reports whether it may have been
//! billed, and an answer counts only in the requested form.
//!
//! Start at [`models`]. [`judge`] asks many questions, and [`destination`] answers the messages of a queue.
//! [`articles`] has the questions of `ichido judge`.

pub mod articles;
pub mod destination;
pub mod judge;
pub mod models;
pub mod seconds;
