//! Behaviour that every database must share: one test per behaviour, run on each.
//!
//! A failure names the behaviour and the database: `conformance::ledger::a_second_arrival_waits::postgres`. A case uses only
//! the store's public interface; time passes by moving the store's clock, never by sleeping.

mod actions;
mod alerts;
mod answers;
mod audit;
mod audit_list;
mod audit_rules;
mod batches;
mod bounds;
mod cancelling;
mod clock;
mod evidence;
mod facts;
mod groups;
mod key_seals;
pub(crate) mod ledger;
mod letters;
mod marks;
mod members;
mod nodes;
mod operator;
mod outbox;
mod races;
mod read;
mod record_in;
mod replays;
mod rescue;
mod responses;
mod search;
mod series;
mod settle;
mod settle_in;
mod success_in;
mod tokens;
mod transaction;
mod unknown;
mod wake;
mod work;
