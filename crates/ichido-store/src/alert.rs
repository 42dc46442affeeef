//! Alert incidents, stored together with the messages about them.
//!
//! Guarantee: each rule and subject has at most one open incident, whichever node opens it. An incident and the messages that
//! announce its opening or its end commit in one transaction: neither exists without the other, and each message is enqueued
//! once.
//!
//! ```
//! use ichido_core::alert::{AlertSubject, Measurement, AlertRule};
//! use ichido_core::key::IdempotencyKey;
//! use ichido_store::Store;
//! use ichido_store::alert::NewAlert;
//! use ichido_store::message::{NewMessage, QueueName};
//! use uuid::Uuid;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let file = ichido_store::testing::sqlite::fresh_file();
//! # let store = Store::open(&file.url, 4).await?;
//! let at = store.now().await?;
//! let (rule, about) = (AlertRule::DeadLetters, AlertSubject::Queue("orders".to_owned()));
//! let (reading, terms) = (Measurement::of_count(11), rule.terms());
//! let alert = NewAlert { id: Uuid::now_v7(), rule, about, opened_at: at, reading, terms };
//! let queue = QueueName::parse("alerts").ok_or("a name")?;
//! let key = IdempotencyKey::derived("alert", &[alert.id.as_bytes(), b"opened"]);
//! let message = NewMessage::new(queue, "ichido", key, b"too many dead letters".to_vec());
//! assert!(store.alerts().open(&alert, vec![message.clone()]).await?);
//! let another = NewAlert { id: Uuid::now_v7(), ..alert.clone() };
//! assert!(!store.alerts().open(&another, vec![message]).await?, "there is one already");
//! assert_eq!(store.alerts().firing().await?[0].id, alert.id);
//!
//! store.alerts().clear(alert.id, Some(at)).await?;
//! assert!(store.alerts().resolve(alert.id, at, store.now().await?, Vec::new()).await?);
//! assert!(store.alerts().firing().await?.is_empty());
//! # Ok(())
//! # }
//! ```
// SPEC A15.

use std::time::Duration;

use ichido_core::alert::{AlertRule, AlertSubject, AlertTerms, Measurement};
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::check;
use crate::columns::Columns;
use crate::error::StoreError;

/// Limits of alerts.
pub mod limits {
    /// The maximum length of an alert's subject, in bytes.
    pub const MAX_ABOUT_BYTES: usize = 512;
    /// The maximum number of open incidents read at once.
    pub const MAX_FIRING: u32 = 10_000;
    /// The maximum number of destinations whose paces are read at once.
    pub const MAX_PACES: u32 = 10_000;
    /// The maximum number of dead letters of a queue that are counted, of each kind. Beyond it an alert has long fired.
    pub const MAX_LETTERS_COUNTED: u32 = 10_000;
}

/// An incident to open.
#[derive(Clone, Debug, PartialEq)]
pub struct NewAlert {
    /// Its id.
    pub id: Uuid,
    /// The rule that fired.
    pub rule: AlertRule,
    /// The subject.
    pub about: AlertSubject,
    /// When it opens, on the store's clock.
    pub opened_at: Timestamp,
    /// The measurement.
    pub reading: Measurement,
    /// The threshold that it exceeded.
    pub terms: AlertTerms,
}

impl NewAlert {
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        check::text("the subject of the alert", &self.about.to_string(), limits::MAX_ABOUT_BYTES)
    }
}

/// A stored incident.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    /// The incident as it was opened.
    pub opened: NewAlert,
    /// When the condition cleared, if it is clear now.
    pub clear_since: Option<Timestamp>,
    /// When the incident was resolved.
    pub resolved_at: Option<Timestamp>,
}

/// Gives direct access to the fields of the opened incident: `alert.rule`.
impl std::ops::Deref for Alert {
    type Target = NewAlert;

    fn deref(&self) -> &NewAlert {
        &self.opened
    }
}

/// Reads incidents from rows. Rules of a later release are skipped.
pub(crate) fn alerts<R: Columns>(rows: &[R]) -> Result<Vec<Alert>, StoreError> {
    rows.iter().filter_map(|row| alert(row).transpose()).collect()
}

fn alert(row: &impl Columns) -> Result<Option<Alert>, StoreError> {
    let known = (AlertRule::parse(row.text("rule")?), AlertSubject::parse(row.text("about")?));
    let (Some(rule), Some(about)) = known else { return Ok(None) };
    let corrupt = |detail: &str| StoreError::Corrupt { table: "alerts", detail: detail.to_owned() };
    let samples = u64::try_from(row.number("samples")?).map_err(|_| corrupt("a count is negative"))?;
    let window = row.number_or_none("window_for")?.map(u64::try_from).transpose();
    let window = window.map_err(|_| corrupt("a window is negative"))?.map(Duration::from_micros);
    // The minimum sample count is not stored: an open incident had enough samples.
    let terms = AlertTerms { window, min_samples: 0, above: row.real("above")? };
    let reading = Measurement { value: row.real("value")?, samples };
    let opened_at = row.timestamp("opened_at")?;
    Ok(Some(Alert {
        opened: NewAlert { id: row.uuid("id")?, rule, about, opened_at, reading, terms },
        clear_since: row.timestamp_or_none("clear_since")?,
        resolved_at: row.timestamp_or_none("resolved_at")?,
    }))
}
