//! Tests of models, batches of questions and the destination, over real sockets and stores.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the line shows where")]

mod judge;
mod llm;
