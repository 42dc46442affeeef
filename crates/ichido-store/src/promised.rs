//! What the holder of a claim believes of its destination, as the columns of its lease have it.
//!
//! It is kept because who rescues the claim may have been told otherwise, as while a configuration changes (SPEC F2).

use std::time::Duration;

use ichido_core::retry::Guarantee;

use crate::columns::Columns;
use crate::error::StoreError;
use crate::message::ClaimTerms;
use crate::micros;

pub(crate) struct Promised {
    pub(crate) guarantee: &'static str,
    pub(crate) keeps_for: Option<i64>,
    pub(crate) travels_for: i64,
}

impl Promised {
    pub(crate) fn of(terms: &ClaimTerms) -> Self {
        let (guarantee, keeps_for) = match terms.guarantee {
            Guarantee::HonoursKeys { keeps_for } => ("honours_keys", Some(micros(keeps_for))),
            Guarantee::Repeatable => ("repeatable", None),
            Guarantee::Nothing => ("nothing", None),
        };
        Self { guarantee, keeps_for, travels_for: micros(terms.travels_for) }
    }
}

/// What the holder of a lease believed of repetitions.
pub(crate) fn guarantee(lease: &impl Columns) -> Result<Guarantee, StoreError> {
    Ok(match (lease.text("guarantee")?, lease.number_or_none("keeps_for")?) {
        ("honours_keys", Some(keeps_for)) => Guarantee::HonoursKeys { keeps_for: duration(keeps_for) },
        ("repeatable", None) => Guarantee::Repeatable,
        ("nothing", None) => Guarantee::Nothing,
        _ => {
            let detail = "an unknown guarantee of a claim's holder".to_owned();
            return Err(StoreError::Corrupt { table: "leases", detail });
        }
    })
}

/// How long the calls of a lease's holder may be travelling.
pub(crate) fn travels_for(lease: &impl Columns) -> Result<Duration, StoreError> {
    Ok(duration(lease.number("travels_for")?))
}

fn duration(micros: i64) -> Duration {
    Duration::from_micros(micros.unsigned_abs())
}
