//! What every database must do alike: one test per behaviour, run over each.
//!
//! A failure names the behaviour and the database: `ledger::a_second_arrival_waits::postgres`. A case uses nothing but
//! the public interface of the store; time passes by moving the store's clock, never by sleeping.

#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and the line says where")]

mod actions;
mod alerts;
mod answers;
mod audit;
mod bounds;
mod evidence;
mod fixture;
mod ledger;
mod letters;
mod marks;
mod members;
mod operator;
mod outbox;
mod races;
mod read;
mod rescue;
mod settle_in;
mod tokens;
mod transaction;
mod unknown;
mod wake;
mod work;
