//! The futures of the store's operations.
//!
//! Guarantee: nothing happens before the first poll, and each future can be sent to another thread.

use std::pin::Pin;

use crate::error::StoreError;

/// A boxed future.
///
/// The code of an `async fn` is compiled in every crate that awaits it, and with it all of the database driver that it calls.
/// Boxed, it is compiled once, here, and small wherever it is awaited. One allocation is nothing beside a statement.
pub type BoxFuture<'s, T> = Pin<Box<dyn Future<Output = T> + Send + 's>>;

/// What an operation of the store returns.
pub type StoreFuture<'s, T> = BoxFuture<'s, Result<T, StoreError>>;
