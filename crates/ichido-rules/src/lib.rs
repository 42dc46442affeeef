//! Rules that are declared by their pages in `docs`, and reports about them.
//!
//! Guarantee: a rule's id, title, reason and help are written once, in its page; a page that lacks a part does not
//! compile. A SARIF report lists every rule, and each result points to its rule.
//!
//! Start at [`RulePage`]. `ichido check` and `ichido probe` declare their rules with it.

mod page;
pub mod sarif;

pub use page::{RulePage, Severity};
