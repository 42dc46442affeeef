//! Counts messages in the contestant's own tables, so nobody gets a number for work that was not done.

use sqlx::Row as _;

use super::contestant::Contestant;
use super::counters::DatabaseProbe;
use super::protocol::Part;

/// Returns how many messages wait or run, where the harness can look.
pub(super) async fn unfinished(contestant: &Contestant, probe: Option<&DatabaseProbe>) -> Option<i64> {
    let (sql, probe) = contestant.unfinished.zip(probe)?;
    Some(sqlx::query(sql).fetch_one(&probe.pool).await.expect("its tables exist").get(0))
}

/// Refuses a part that lost, repeated or left messages.
pub(super) fn check(part: Part, count: usize, before: i64, after: i64) -> Result<(), String> {
    let count = i64::try_from(count).expect("a small number");
    let (expected_before, expected_after) = match part {
        Part::EnqueueOne | Part::EnqueueBulk => (before, before + count),
        Part::Drain => (count, 0),
        // Its handlers have started; completions may still be on their way.
        Part::Pickup | Part::Serve => return Ok(()),
    };
    if (before, after) == (expected_before, expected_after) {
        return Ok(());
    }
    Err(format!(
        "its tables had {before} unfinished messages before and {after} after, instead of {expected_before} and {expected_after}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_and_left_messages_are_refused() {
        assert_eq!(check(Part::EnqueueBulk, 10, 5, 15), Ok(()));
        assert!(check(Part::EnqueueOne, 10, 5, 14).is_err());
        assert_eq!(check(Part::Drain, 10, 10, 0), Ok(()));
        assert!(check(Part::Drain, 10, 10, 1).is_err());
        assert!(check(Part::Drain, 10, 9, 0).is_err());
        assert_eq!(check(Part::Pickup, 10, 0, 3), Ok(()));
    }
}
