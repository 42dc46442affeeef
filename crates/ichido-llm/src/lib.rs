//! Language models under Ichido's rules: one question at a time, many under a rate limit, or as a destination of messages.
//!
//! Guarantee: a model is asked at most as often as its limits allow, each question is told whether it may have been billed, and an answer
//! counts only in the form that was asked for.
//!
//! Start at [`models`]; [`judge`] asks many questions at a time, and [`destination`] answers the messages of a queue.
//! [`articles`] has the questions of `ichido judge`.

pub mod articles;
pub mod destination;
pub mod judge;
pub mod models;
