//! What the audit trail says of a bulk operation, as text that people and programs read.
//!
//! Guarantee: what is formatted here is parsed here. A detail that was cut off, or written by an earlier release, is `None` and never
//! half of the truth.
// Spec: D17, E4.

use std::collections::BTreeMap;
use std::fmt;

use ichido_core::time::Timestamp;
use ichido_core::verdict::{Effect, ErrorCode};
use ichido_store::dead_letter::{DeadLetterFilter, Disposition};
use ichido_store::message::limits::MAX_EXCERPT_BYTES;
use ichido_store::message::{DeadLetterState, QueueName};
use uuid::Uuid;

use super::bulk::{BulkEnd, BulkReport};
use super::canary::CanaryCounts;
use super::policy::RequeueRefusal;
use super::preflight::format_counts;

/// The longest character: a text is cut off between two.
const MAX_CHAR_BYTES: usize = 4;

/// What the start of a bulk operation records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedStart {
    /// The filter, with the time before which a letter had to be dead: later ones are not part of the operation.
    pub filter: DeadLetterFilter,
    /// How many letters were eligible.
    pub eligible: u64,
    /// How many letters matched.
    pub matched: u64,
    /// Whether more letters matched than were counted.
    pub has_more: bool,
    /// The reason, if one was given.
    pub reason: Option<String>,
}

impl RecordedStart {
    /// Parses the detail of the first entry.
    pub fn parse(detail: &str) -> Option<Self> {
        let (filter, rest) = parse_filter(detail)?;
        let rest = rest.strip_prefix("; ")?;
        let (counts, reason) =
            rest.split_once("; ").map_or((rest, None), |(counts, reason)| (counts, Some(reason.to_owned())));
        let (has_more, counts) = match counts.strip_prefix("at least ") {
            Some(counts) => (true, counts),
            None => (false, counts),
        };
        let (eligible, matched) = counts.split_once(if has_more { " of more than " } else { " of " })?;
        // The last digits may be missing.
        let is_cut_off = reason.is_none() && MAX_EXCERPT_BYTES <= detail.len() + MAX_CHAR_BYTES;
        if is_cut_off {
            return None;
        }
        let (eligible, matched) = (eligible.parse().ok()?, matched.parse().ok()?);
        Some(Self { filter, eligible, matched, has_more, reason })
    }
}

impl fmt::Display for RecordedStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { filter, eligible, matched, has_more, reason } = self;
        let counts = format_counts(*eligible, *matched, *has_more);
        write!(f, "{}; {counts}", format_filter(filter))?;
        reason.iter().try_for_each(|reason| write!(f, "; {reason}"))
    }
}

/// Formats a filter: `state=dead queue=orders`. A text is in quotes, because it may have spaces.
fn format_filter(filter: &DeadLetterFilter) -> String {
    let mut words = vec![format!("state={}", filter.state)];
    let mut add = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{name}={value}")));
    };
    add("disposition", (filter.disposition != Disposition::Open).then(|| filter.disposition.to_string()));
    add("queue", filter.queue.as_ref().map(|queue| queue.as_str().to_owned()));
    add("error", filter.code.map(|code| code.as_str().to_owned()));
    add("effect", filter.effect.map(|effect| effect.to_string()));
    add("group", filter.group.map(|group| group.to_string()));
    add("from", filter.since_from.map(|moment| moment.to_string()));
    add("before", filter.since_before.map(|moment| moment.to_string()));
    add("identity", filter.identity.as_deref().map(quoted));
    add("text", filter.text.as_deref().map(quoted));
    words.join(" ")
}

/// Parses a filter, and returns what follows it.
fn parse_filter(detail: &str) -> Option<(DeadLetterFilter, &str)> {
    let mut filter = DeadLetterFilter::default();
    let mut rest = detail;
    loop {
        let (name, after) = rest.split_once('=')?;
        let (value, after) = if let Some(after) = after.strip_prefix('"') {
            unquoted(after)?
        } else {
            let end = after.find([' ', ';']).unwrap_or(after.len());
            let (value, after) = after.split_at(end);
            (value.to_owned(), after)
        };
        match name {
            "state" => filter.state = DeadLetterState::parse(&value)?,
            "disposition" => filter.disposition = Disposition::parse(&value)?,
            "queue" => filter.queue = Some(QueueName::parse(&value)?),
            "error" => filter.code = Some(ErrorCode::parse(&value)?),
            "effect" => filter.effect = Some(Effect::parse(&value)?),
            "group" => filter.group = Some(Uuid::try_parse(&value).ok()?),
            "from" => filter.since_from = Some(Timestamp::parse(&value)?),
            "before" => filter.since_before = Some(Timestamp::parse(&value)?),
            "identity" => filter.identity = Some(value),
            "text" => filter.text = Some(value),
            _ => return None,
        }
        match after.strip_prefix(' ') {
            Some(next) => rest = next,
            None => return Some((filter, after)),
        }
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns the text up to the next quote, and what follows it.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut marks = text.char_indices();
    while let Some((at, mark)) = marks.next() {
        match mark {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => value.push(marks.next()?.1),
            mark => value.push(mark),
        }
    }
    None
}

impl BulkReport {
    /// Formats the report for the last entry: `moved=4 refused=1 gone=0 not_allowed=1`.
    pub(super) fn format_detail(&self) -> String {
        let Self { moved, refused, gone, ended, .. } = self;
        let all: u64 = refused.values().sum();
        let mut words = vec![format!("moved={moved} refused={all} gone={gone}")];
        words.extend(refused.iter().map(|(why, count)| format!("{}={count}", why.as_str())));
        if let BulkEnd::Halted { watched: CanaryCounts { pending, succeeded, failed }, failed_ids } = ended {
            words.push(format!("canary_sent={succeeded} canary_failed={failed} canary_pending={pending}"));
            words.extend(failed_ids.iter().map(|id| format!("failed_id={id}")));
        }
        words.join(" ")
    }

    /// Parses the state and the detail of the last entry; `None` if the operation has not ended.
    ///
    /// `stopped_by` is who asked it to stop.
    pub fn parse(operation: Uuid, state: &str, detail: &str, stopped_by: Option<&str>) -> Option<Self> {
        let (mut moved, mut all, mut gone, mut refused) = (None, None, None, BTreeMap::new());
        let (mut watched, mut failed_ids) = (CanaryCounts::default(), Vec::new());
        for word in detail.split(' ') {
            let (name, value) = word.split_once('=')?;
            if name == "failed_id" {
                failed_ids.push(Uuid::try_parse(value).ok()?);
                continue;
            }
            let count: u64 = value.parse().ok()?;
            match name {
                "moved" => moved = Some(count),
                "refused" => all = Some(count),
                "gone" => gone = Some(count),
                "canary_sent" => watched.succeeded = count,
                "canary_failed" => watched.failed = count,
                "canary_pending" => watched.pending = count,
                reason => {
                    refused.insert(RequeueRefusal::parse(reason)?, count);
                }
            }
        }
        // Earlier releases recorded no reasons.
        if refused.values().sum::<u64>() != all? {
            return None;
        }
        let ended = match state {
            "ended" => BulkEnd::Done,
            "stopped" => BulkEnd::Stopped { by: stopped_by.map(str::to_owned) },
            "halted" => BulkEnd::Halted { watched, failed_ids },
            "abandoned" => BulkEnd::Abandoned,
            "failed" => BulkEnd::Failed,
            _ => return None,
        };
        Some(Self { operation, moved: moved?, refused, gone: gone?, ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_start_reads_back() {
        let all = DeadLetterFilter {
            state: DeadLetterState::Dead,
            disposition: Disposition::Discarded,
            queue: QueueName::parse("orders"),
            code: Some(ErrorCode::Broker5xx),
            effect: Some(Effect::NotDone),
            identity: Some("a; 1 of 2 \"b\\\" group=x".to_owned()),
            since_from: Some(Timestamp::from_secs(5)),
            since_before: Some(Timestamp::from_micros(7_000_001)),
            text: Some("text=\"; 3 of 4".to_owned()),
            group: Some(Uuid::from_u128(9)),
        };
        let parked = DeadLetterFilter { state: DeadLetterState::Parked, ..DeadLetterFilter::default() };
        for filter in [DeadLetterFilter::default(), parked, all] {
            for reason in [None, Some("fixed; 5 of 6".to_owned())] {
                for has_more in [false, true] {
                    let (filter, reason) = (filter.clone(), reason.clone());
                    let start = RecordedStart { filter, eligible: 4, matched: 5, has_more, reason };
                    assert_eq!(RecordedStart::parse(&start.to_string()), Some(start));
                }
            }
        }
    }

    #[test]
    fn a_start_that_was_cut_off_is_not_guessed() {
        let filter = DeadLetterFilter { text: Some("a \"b\"".to_owned()), ..DeadLetterFilter::default() };
        let start = RecordedStart { filter, eligible: 400, matched: 500, has_more: false, reason: None };
        let partial = RecordedStart { has_more: true, ..start.clone() };
        let detail = r#"state=dead text="a \"b\""; 400 of 500"#;
        let partial_detail = r#"state=dead text="a \"b\""; at least 400 of more than 500"#;
        for (start, detail) in [(start, detail), (partial, partial_detail)] {
            assert_eq!(start.to_string(), detail);
            for end in 0..detail.len() - 2 {
                assert_eq!(RecordedStart::parse(&detail[..end]), None, "{}", &detail[..end]);
            }
        }
        let long = "x".repeat(MAX_EXCERPT_BYTES - r#"state=dead text=""; 1 of 1"#.len());
        assert_eq!(
            RecordedStart::parse(&format!("state=dead text=\"{long}\"; 1 of 1")),
            None,
            "of 1 or of 10"
        );
        assert_eq!(RecordedStart::parse("state=dead color=red; 1 of 1"), None);
        assert_eq!(RecordedStart::parse("state=dead effect=NotDone; 1 of 1"), None, "an earlier release");
    }

    #[test]
    fn a_recorded_end_reads_back() {
        let operation = Uuid::from_u128(1);
        let watched = CanaryCounts { pending: 1, succeeded: 38, failed: 12 };
        let refused = BTreeMap::from([(RequeueRefusal::NotAllowed, 2), (RequeueRefusal::EffectUnknown, 3)]);
        for (state, ended) in [
            ("ended", BulkEnd::Done),
            ("stopped", BulkEnd::Stopped { by: Some("ann".to_owned()) }),
            ("halted", BulkEnd::Halted { watched, failed_ids: vec![Uuid::from_u128(2), Uuid::from_u128(3)] }),
            ("abandoned", BulkEnd::Abandoned),
            ("failed", BulkEnd::Failed),
        ] {
            let report = BulkReport { operation, moved: 50, refused: refused.clone(), gone: 1, ended };
            let detail = report.format_detail();
            assert_eq!(BulkReport::parse(operation, state, &detail, Some("ann")), Some(report), "{detail}");
        }
        let parse = |detail| BulkReport::parse(operation, "ended", detail, None);
        assert_eq!(parse("moved=4 refused=1 gone=0"), None, "an earlier release recorded no reasons");
        assert!(parse("moved=4 refused=0 gone=0").is_some());
        assert_eq!(parse("moved=4 gone=0"), None);
        assert_eq!(BulkReport::parse(operation, "started", "moved=4 refused=0 gone=0", None), None);
    }

    #[test]
    fn refusals_read_back() {
        for refusal in RequeueRefusal::ALL {
            assert_eq!(RequeueRefusal::parse(refusal.as_str()), Some(refusal));
        }
        assert_eq!(RequeueRefusal::parse("moved"), None);
    }
}
