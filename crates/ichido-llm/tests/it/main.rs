//! Tests of models, batches of questions and the destination, over real sockets and stores.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

mod judge;
mod llm;
