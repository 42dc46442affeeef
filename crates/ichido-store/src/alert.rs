//! Incidents of alerts, kept with what is sent about them.
//!
//! Guarantee: of one rule and one subject there is one open incident at a time, whoever opens it. An incident and the messages that
//! tell of its opening or its end are one transaction: neither is there without the other, and they are put in once.
//!
//! ```
//! use ichido_core::alert::{About, Reading, Rule};
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
//! let (rule, about) = (Rule::DeadLetters, About::Queue("orders".to_owned()));
//! let (reading, terms) = (Reading::of_count(11), rule.terms());
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

use ichido_core::alert::{About, Reading, Rule, Terms};
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::check;
use crate::columns::Columns;
use crate::error::StoreError;

/// The bounds of alerts.
pub mod limits {
    /// The longest text that says what an alert is about, in bytes.
    pub const ABOUT_BYTES_MAX: usize = 512;
    /// The most open incidents that are read at once.
    pub const FIRING_MAX: u32 = 10_000;
    /// The most destinations whose paces are read at once.
    pub const PACES_MAX: u32 = 10_000;
    /// The most dead letters of a queue that are counted, of each kind: beyond it an alert has long fired.
    pub const LETTERS_COUNTED_MAX: u32 = 10_000;
}

/// An incident to be opened.
#[derive(Clone, Debug, PartialEq)]
pub struct NewAlert {
    /// Its id.
    pub id: Uuid,
    /// Which alert it is.
    pub rule: Rule,
    /// What it is about.
    pub about: About,
    /// When it opens, by the store's clock.
    pub opened_at: Timestamp,
    /// What was measured.
    pub reading: Reading,
    /// The terms that it broke.
    pub terms: Terms,
}

impl NewAlert {
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        check::text("what the alert is about", &self.about.to_string(), limits::ABOUT_BYTES_MAX)
    }
}

/// An incident as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    /// As it was opened.
    pub opened: NewAlert,
    /// Since when it is clear.
    pub clear_since: Option<Timestamp>,
    /// When it was over.
    pub resolved_at: Option<Timestamp>,
}

/// What it was opened as is read as if it were the incident's own: `alert.rule`.
impl std::ops::Deref for Alert {
    type Target = NewAlert;

    fn deref(&self) -> &NewAlert {
        &self.opened
    }
}

/// The incidents of rows. What a later release watches for is not told of here.
pub(crate) fn alerts<R: Columns>(rows: &[R]) -> Result<Vec<Alert>, StoreError> {
    rows.iter().filter_map(|row| alert(row).transpose()).collect()
}

fn alert(row: &impl Columns) -> Result<Option<Alert>, StoreError> {
    let known = (Rule::parse(row.text("rule")?), About::parse(row.text("about")?));
    let (Some(rule), Some(about)) = known else { return Ok(None) };
    let corrupt = |detail: &str| StoreError::Corrupt { table: "alerts", detail: detail.to_owned() };
    let samples = u64::try_from(row.number("samples")?).map_err(|_| corrupt("a count is negative"))?;
    let window = row.number_or_none("window_for")?.map(u64::try_from).transpose();
    let window = window.map_err(|_| corrupt("a window is negative"))?.map(Duration::from_micros);
    // How many were asked for is not kept: an incident that is open had enough.
    let terms = Terms { window, least: 0, above: row.real("above")? };
    let reading = Reading { value: row.real("value")?, samples };
    let opened_at = row.timestamp("opened_at")?;
    Ok(Some(Alert {
        opened: NewAlert { id: row.uuid("id")?, rule, about, opened_at, reading, terms },
        clear_since: row.timestamp_or_none("clear_since")?,
        resolved_at: row.timestamp_or_none("resolved_at")?,
    }))
}
