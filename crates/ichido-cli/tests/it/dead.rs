//! `ichido dead` as a process: what an operator does with dead and parked letters.
// Spec: A11, D17, E3, E4, F2.

mod bulk;
mod closed;
pub(crate) mod fixture;
mod guide;
mod missing;
mod one;
