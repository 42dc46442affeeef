//! Checks that each message is where its last entry says. This reverses `placement`, which chooses the table for a state.

use ichido_core::audit::entry::EntryId;
use ichido_core::audit::verify::{Issued, Kind, Verifier};
use ichido_core::lifecycle::StateName;
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::columns::Columns;
use crate::error::StoreError;

/// The state of a message, as recorded by an entry or by the row that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedState {
    pub(crate) state: String,
    /// Only entries and dead letters record it.
    pub(crate) effect: Option<String>,
    pub(crate) attempts: i64,
    pub(crate) deaths: i64,
    pub(crate) doubt: (Option<Timestamp>, Option<Timestamp>),
}

/// The location of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessageLocation {
    pub(crate) message: Uuid,
    /// Its last entry.
    pub(crate) last: Option<(EntryId, RecordedState)>,
    /// The number of rows that hold it.
    pub(crate) rows: i64,
    /// The first of them, with its table.
    pub(crate) row: Option<(String, RecordedState)>,
}

/// Returns the tables that may hold a message in a stage.
const fn tables(stage: StateName) -> &'static [&'static str] {
    match stage {
        StateName::Queued => &["ready", "scheduled"],
        StateName::Failed => &["scheduled"],
        StateName::Parked | StateName::Dead => &["dead_letters"],
        // A message in flight is held by its lease; a finished message is only in history.
        StateName::Sending | StateName::Sent | StateName::Cancelled => &[],
    }
}

impl MessageLocation {
    /// Returns what is wrong with the message's location, if anything.
    pub(crate) fn mismatch(&self, is_sending: bool) -> Option<(Kind, &'static str)> {
        let stage = match &self.last {
            // An invalid state was already reported with its entry.
            Some((_, recorded)) => StateName::parse(&recorded.state)?,
            None => StateName::Queued,
        };
        if is_sending {
            return match (stage, self.rows) {
                (StateName::Queued | StateName::Failed | StateName::Sending, 0) => None,
                (StateName::Queued | StateName::Failed | StateName::Sending, _) => {
                    Some((Kind::StateChanged, "a worker holds it, but it can be claimed again"))
                }
                _ => Some((Kind::StateChanged, "a lease names it, but its last entry says otherwise")),
            };
        }
        match (&self.row, self.rows) {
            (None, _) => Self::missing(stage).map(|why| (Kind::StateRemoved, why)),
            (Some((table, recorded)), 1) if tables(stage).contains(&table.as_str()) => {
                let differs = !self.agrees(recorded);
                differs.then_some((Kind::StateChanged, "its row differs from its last entry"))
            }
            (Some(_), 1) => Some((Kind::StateChanged, "its row has a different state than its last entry")),
            (Some(_), _) => Some((Kind::StateChanged, "it is in more than one state at once")),
        }
    }

    const fn missing(stage: StateName) -> Option<&'static str> {
        match stage {
            StateName::Sent | StateName::Cancelled => None,
            StateName::Queued => Some("it waits to be sent, but its row is missing"),
            StateName::Failed => {
                Some("it waits for its next attempt, but its row of scheduled messages is missing")
            }
            StateName::Parked => Some("it is parked, but its row of parked messages is missing"),
            StateName::Dead => Some("it is dead, but its row of dead letters is missing"),
            StateName::Sending => Some("it is being sent, but its lease is missing"),
        }
    }

    fn agrees(&self, row: &RecordedState) -> bool {
        let Some((_, last)) = &self.last else {
            return (row.state.as_str(), row.attempts, row.deaths, row.doubt)
                == (StateName::Queued.as_str(), 0, 0, (None, None));
        };
        let effect = row.effect.is_none() || row.effect == last.effect;
        effect
            && RecordedState { effect: None, ..row.clone() } == RecordedState { effect: None, ..last.clone() }
    }
}

/// Checks a page of messages. Returns the last of them, after which the next page begins.
pub(crate) fn check_page<C: Columns>(
    verifier: &mut Verifier<'_>,
    page: &[C],
    issued: &Issued,
) -> Result<Option<Uuid>, StoreError> {
    let mut last = None;
    for row in page {
        let location = location(row)?;
        last = Some(location.message);
        let is_sending = issued.is_sending(location.message, location.last.as_ref().map(|(id, _)| *id));
        if let Some((kind, why)) = location.mismatch(is_sending) {
            verifier.misplaced(location.message, kind, why);
        }
    }
    Ok(last)
}

/// Reports rows that hold a message that does not exist.
pub(crate) fn check_orphans<C: Columns>(verifier: &mut Verifier<'_>, rows: &[C]) -> Result<(), StoreError> {
    for row in rows {
        let why = "a row names it, but the message does not exist";
        verifier.misplaced(row.uuid("message_id")?, Kind::StateChanged, why);
    }
    Ok(())
}

fn location(row: &impl Columns) -> Result<MessageLocation, StoreError> {
    let message = row.uuid("message_id")?;
    let last = match row.number_or_none("fence")? {
        Some(fence) => {
            let step = row.small_or_none("step")?.unwrap_or_default();
            Some((EntryId { message, fence, step }, recorded_state(row, "")?))
        }
        None => None,
    };
    let rows = row.number("places")?;
    let held = || Ok::<_, StoreError>((row.text("place")?.to_owned(), recorded_state(row, "place_")?));
    Ok(MessageLocation { message, last, rows, row: (0 < rows).then(held).transpose()? })
}

fn recorded_state(row: &impl Columns, prefix: &str) -> Result<RecordedState, StoreError> {
    let state = if prefix.is_empty() { "to_state".to_owned() } else { format!("{prefix}state") };
    let moment = |name: &str| row.timestamp_or_none(&format!("{prefix}{name}"));
    Ok(RecordedState {
        state: row.text(&state)?.to_owned(),
        effect: row.text_or_none(&format!("{prefix}effect"))?,
        attempts: row.number_or_none(&format!("{prefix}attempts"))?.unwrap_or_default(),
        deaths: row.number_or_none(&format!("{prefix}deaths"))?.unwrap_or_default(),
        doubt: (moment("doubt_since")?, moment("in_flight_until")?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded_state(state: &str, effect: Option<&str>, attempts: i64) -> RecordedState {
        let effect = effect.map(str::to_owned);
        RecordedState { state: state.to_owned(), effect, attempts, deaths: 0, doubt: (None, None) }
    }

    fn location(last: Option<&str>, rows: &[(&str, &str)]) -> MessageLocation {
        let message = Uuid::from_u128(1);
        let attempts = i64::from(last.is_some());
        let row = rows.first().map(|(table, state)| {
            let effect = (*table == "dead_letters").then_some("not_done");
            ((*table).to_owned(), recorded_state(state, effect, attempts))
        });
        let id = EntryId { message, fence: 4, step: 0 };
        let last = last.map(|state| (id, recorded_state(state, Some("not_done"), attempts)));
        MessageLocation { message, last, rows: i64::try_from(rows.len()).unwrap(), row }
    }

    #[test]
    fn a_message_is_where_its_last_entry_left_it() {
        for (last, rows) in [
            (None, &[("ready", "queued")][..]),
            (None, &[("scheduled", "queued")]),
            (Some("queued"), &[("ready", "queued")]),
            (Some("queued"), &[("scheduled", "queued")]),
            (Some("failed"), &[("scheduled", "failed")]),
            (Some("parked"), &[("dead_letters", "parked")]),
            (Some("dead"), &[("dead_letters", "dead")]),
            (Some("sent"), &[]),
            (Some("cancelled"), &[]),
        ] {
            assert_eq!(location(last, rows).mismatch(false), None, "{last:?} {rows:?}");
        }
        for last in [None, Some("queued"), Some("failed"), Some("sending")] {
            assert_eq!(location(last, &[]).mismatch(true), None, "{last:?} in a worker's hands");
        }
    }

    #[test]
    fn missing_row_is_reported() {
        for last in [None, Some("queued"), Some("failed"), Some("parked"), Some("dead"), Some("sending")] {
            let mismatch = location(last, &[]).mismatch(false);
            assert!(matches!(mismatch, Some((Kind::StateRemoved, _))), "{last:?}: {mismatch:?}");
        }
    }

    #[test]
    fn row_that_differs_from_its_entry_is_reported() {
        for (last, rows, is_sending) in [
            (Some("sent"), &[("ready", "queued")][..], false),
            (Some("cancelled"), &[("scheduled", "queued")], false),
            (Some("dead"), &[("ready", "queued")], false),
            (Some("dead"), &[("dead_letters", "parked")], false),
            (Some("dead"), &[("dead_letters", "dead"), ("ready", "queued")], false),
            (Some("failed"), &[("scheduled", "queued")], false),
            (Some("failed"), &[("ready", "queued")], false),
            (Some("queued"), &[("dead_letters", "dead")], false),
            (None, &[("dead_letters", "dead")], false),
            (Some("queued"), &[("ready", "queued")], true),
            (Some("dead"), &[("dead_letters", "dead")], true),
            (Some("sent"), &[], true),
        ] {
            let mismatch = location(last, rows).mismatch(is_sending);
            assert!(matches!(mismatch, Some((Kind::StateChanged, _))), "{last:?} {rows:?}: {mismatch:?}");
        }
        let mut known = location(Some("dead"), &[("dead_letters", "dead")]);
        if let Some((_, recorded)) = &mut known.row {
            recorded.effect = Some("done".to_owned());
        }
        assert!(known.mismatch(false).is_some(), "what is known of its effect");
        let mut counted = location(None, &[("ready", "queued")]);
        if let Some((_, recorded)) = &mut counted.row {
            recorded.attempts = 1;
        }
        assert!(counted.mismatch(false).is_some(), "its number of attempts");
    }
}
