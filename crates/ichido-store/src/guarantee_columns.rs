//! Columns for a node's view of a destination's guarantee, in leases and in published facts.
//!
//! A lease stores it because the rescuer may be configured differently, for example during a configuration change.
// SPEC F2.

use std::time::Duration;

use ichido_core::retry::Guarantee;

use crate::columns::Columns;
use crate::error::StoreError;
use crate::message::ClaimOptions;
use crate::micros;

pub(crate) struct GuaranteeColumns {
    pub(crate) guarantee: &'static str,
    pub(crate) keeps_for: Option<i64>,
    pub(crate) max_time_in_flight: i64,
}

impl GuaranteeColumns {
    pub(crate) fn new(terms: &ClaimOptions) -> Self {
        let (guarantee, keeps_for) = columns(terms.guarantee);
        Self { guarantee, keeps_for, max_time_in_flight: micros(terms.max_time_in_flight) }
    }
}

/// Converts a guarantee to the columns `guarantee` and `keeps_for`.
pub(crate) fn columns(guarantee: Guarantee) -> (&'static str, Option<i64>) {
    let keeps_for =
        if let Guarantee::Keyed { keeps_for } = guarantee { Some(micros(keeps_for)) } else { None };
    (guarantee.as_str(), keeps_for)
}

/// Reads the guarantee from a row of a table.
pub(crate) fn guarantee(row: &impl Columns, table: &'static str) -> Result<Guarantee, StoreError> {
    Ok(match (row.text("guarantee")?, row.number_or_none("keeps_for")?) {
        ("keyed", Some(keeps_for)) => Guarantee::Keyed { keeps_for: duration(keeps_for) },
        ("idempotent", None) => Guarantee::Idempotent,
        ("transactional", None) => Guarantee::Transactional,
        ("none", None) => Guarantee::None,
        _ => return Err(StoreError::Corrupt { table, detail: "unknown guarantee".to_owned() }),
    })
}

/// Reads how long calls of the lease's holder may be in flight.
pub(crate) fn max_time_in_flight(lease: &impl Columns) -> Result<Duration, StoreError> {
    Ok(duration(lease.number("max_time_in_flight")?))
}

/// Converts a column's microseconds to a duration.
pub(crate) fn duration(micros: i64) -> Duration {
    Duration::from_micros(micros.unsigned_abs())
}
