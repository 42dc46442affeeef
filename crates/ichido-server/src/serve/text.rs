//! Texts and numbers in parameters and bodies: their parsers and their schemas.
//!
//! Guarantee: a parser accepts every value that matches its schema; both use the same constants.

use std::time::Duration;

use ichido_core::json::{MAX_DEPTH, Pointer};
use ichido_core::key::{IdempotencyKey as Key, KeyHash as StoredKeyHash};
use ichido_core::lifecycle::StateName;
use ichido_core::pace::PerSecond;
use ichido_core::series::{SeriesStep, SeriesSubject};
use ichido_core::settings::duration;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{self, Effect as StoredEffect};
use ichido_store::dead_letter::Disposition as StoredStanding;
use ichido_store::ledger::limits::MAX_OPERATION_BYTES;
use ichido_store::message::limits::{
    MAX_CONTENT_TYPE_BYTES, MAX_EXCERPT_BYTES, MAX_IDENTITY_BYTES, MAX_QUEUE_BYTES, MAX_TRACE_ID_BYTES,
};
use ichido_store::message::{DeadLetterState as StoredLetterState, IdPrefix, QueueName as StoredQueueName};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

use crate::accept;
use crate::limits::{MAX_LIST, MAX_UNKNOWN, MAX_WAIT};
use crate::schedule;

/// The number of entries on a page if the caller gives no limit.
pub(super) const PAGE_DEFAULT: u32 = 50;

/// Declares types with a schema of their own.
///
/// With `as T = reader`, the text is also parsed into a `T`.
macro_rules! texts {
    ($($(#[doc = $doc:literal])+ $name:ident $(as $inner:ty = $read:expr)?, $schema:expr;)+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub(super) struct $name $((pub(super) $inner))?;

            $(
                impl $name {
                    /// Parses a text, or returns what it should be.
                    pub(super) fn read(text: &str) -> Result<$inner, String> {
                        let read: fn(&str) -> Result<$inner, String> = $read;
                        read(text)
                    }
                }

                impl<'de> Deserialize<'de> for $name {
                    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                        Self::read(&String::deserialize(deserializer)?).map(Self).map_err(D::Error::custom)
                    }
                }
            )?

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    $schema.description(Some(concat!($($doc),+).trim())).into()
                }
            }

            impl ToSchema for $name {}
        )+

        /// Returns every schema with its name.
        pub(super) fn schemas() -> impl Iterator<Item = (String, RefOr<Schema>)> {
            vec![$(($name::name().into_owned(), $name::schema()),)+].into_iter()
        }
    };
}

texts! {
    /// The name of a queue.
    QueueName as StoredQueueName = |text: &str| accept::queue_name(text).map_err(str::to_owned),
        string("^[A-Za-z0-9._:-]+$", 1, MAX_QUEUE_BYTES);
    /// The id of a failure group.
    GroupId as Uuid = |text: &str| Uuid::try_parse(text).map_err(|_| "must be the id of a failure group".to_owned()),
        text("^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$");
    /// The id of a message.
    MessageId as Uuid = |text: &str| Uuid::try_parse(text).map_err(|_| "must be the id of a message".to_owned()),
        text("^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$");
    /// The first digits of a message's id, with or without dashes.
    MessageIdPrefix as IdPrefix = |text: &str| IdPrefix::parse(text).ok_or_else(|| {
        format!("must be the first {} to {} hexadecimal digits of an id", IdPrefix::MIN_DIGITS, IdPrefix::MAX_DIGITS)
    }), text("^([0-9A-Fa-f]-?){4,32}$");
    /// An idempotency key: visible ASCII characters.
    IdempotencyKey, string("^[!-~]+$", 1, Key::MAX_LEN);
    /// An idempotency key of the ledger: visible ASCII characters and, in the profile `ietf`, spaces.
    LedgerKey, string("^[ -~]+$", 1, Key::MAX_LEN);
    /// The hash of an idempotency key, as in logs: the first 16 hex digits of its SHA-256.
    KeyHash as StoredKeyHash = |text: &str| StoredKeyHash::parse(text).ok_or_else(|| "must be 16 hex digits, as in the logs".to_owned()),
        text("^[0-9A-Fa-f]{16}$");
    /// An idempotency key, bare. A value that begins with a quote is read as a quoted string (RFC 9651).
    IdempotencyKeyField, string("^[!#-~][!-~]*$", 1, Key::MAX_LEN);
    /// The party that a message belongs to.
    Identity as String = |text: &str| Ok(text.to_owned()), string(NO_NUL, 0, MAX_IDENTITY_BYTES);
    /// A correlation id.
    TraceId as String = |text: &str| Ok(text.to_owned()), string(NO_NUL, 0, MAX_TRACE_ID_BYTES);
    /// An identity in a header field: visible ASCII characters, and spaces between them.
    IdentityField, string("^[!-~]([ -~]*[!-~])?$", 1, MAX_IDENTITY_BYTES);
    /// The name of an operation in the ledger.
    OperationName as String = |text: &str| Ok(text.to_owned()), string(NO_NUL, 0, MAX_OPERATION_BYTES);
    /// The name of an actor in the audit trail.
    Actor as String = parse_short, string(NO_NUL, 0, MAX_EXCERPT_BYTES);
    /// The kind of an action in the audit trail.
    ActionKind as String = parse_short, string(NO_NUL, 0, MAX_EXCERPT_BYTES);
    /// The id of a subject of the audit trail, such as a message's id.
    SubjectId as Uuid = |text: &str| Uuid::try_parse(text).map_err(|_| "must be an id, as in the entries' `subject`".to_owned()),
        text("^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$");
    /// The reason for an action.
    Reason as String = parse_short, string(NO_NUL, 0, MAX_EXCERPT_BYTES);
    /// A receiver's own id for what it did, such as a broker's order id.
    Receipt as String = parse_short, string(NO_NUL, 0, MAX_EXCERPT_BYTES);
    /// Part of an error's text.
    ErrorText as String = parse_error_text, string(NO_NUL, 1, MAX_EXCERPT_BYTES);
    /// A time in UTC (RFC 3339), such as `2026-11-15T03:00:00Z`, with at most six fractional digits.
    Moment as Timestamp = schedule::parse_run_at,
        text("^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?Z$")
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)));
    /// The opaque cursor of a page: `next` of the previous page.
    PageCursor, text("^[A-Za-z0-9_-]+$");
    /// Maximum entries on a page.
    Limit as u32 = |text: &str| whole_number(text, MAX_LIST), number(MAX_LIST);
    /// Maximum records on a page.
    RecordLimit as u32 = |text: &str| whole_number(text, MAX_UNKNOWN), number(MAX_UNKNOWN);
    /// The code of an error.
    ErrorCode as verdict::ErrorCode = |text: &str| verdict::ErrorCode::parse_any_case(text).ok_or_else(|| {
        format!("is not an error code; use one of: {}", verdict::ErrorCode::WORDS.join(", "))
    }), one_of(&verdict::ErrorCode::WORDS);
    /// The state of a message.
    MessageState as StateName = |text: &str| StateName::parse(text).ok_or_else(|| none_of(&StateName::WORDS)), one_of(&StateName::WORDS);
    /// The state of a dead letter.
    LetterState as StoredLetterState = |text: &str| StoredLetterState::parse(text).ok_or_else(|| none_of(&StoredLetterState::WORDS)), one_of(&StoredLetterState::WORDS);
    /// Whether a dead letter waits for a person.
    LetterStanding as StoredStanding = |text: &str| StoredStanding::parse(text).ok_or_else(|| none_of(&StoredStanding::WORDS)), one_of(&StoredStanding::WORDS);
    /// What is known of an effect.
    Effect as StoredEffect = |text: &str| StoredEffect::parse(text).ok_or_else(|| none_of(&StoredEffect::WORDS)), one_of(&StoredEffect::WORDS);
    /// The state of an alert's incident.
    AlertState as () = |text: &str| (text == FIRING).then_some(()).ok_or_else(|| format!("must be {FIRING}, or left out for all")),
        one_of(&[FIRING]);
    /// The subject of a series.
    SeriesSubjectName as SeriesSubject = parse_subject,
        string(r"^(queues|operations|models|(queue|destination|operation|model):[^\x00]+)$", 1, MAX_SUBJECT_CHARS);
    /// The length of a point: a whole number of `m`, `h` or `d`, at most 90 days.
    SeriesStepText as SeriesStep = parse_step, text("^([1-9][0-9]{0,4}m|[1-9][0-9]{0,2}h|([1-9]|[1-8][0-9]|90)d)$");
    /// How long to wait: a whole number of `ms` or `s`, at most 30 seconds.
    Wait as Duration = parse_wait,
        text("^(([0-9]{1,4}|[12][0-9]{4}|30000)ms|([0-9]|[12][0-9]|30)s)$");
    /// Which messages of a queue are sent first: 0 is first, 255 last, and 2 the default.
    Priority as u8 = schedule::parse_priority, ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).maximum(Some(u32::from(u8::MAX)));
    /// How long to wait before the first attempt: a whole number of `ms`, `s`, `m`, `h` or `d`, at most 366 days.
    Delay as Duration = schedule::parse_delay,
        text("^([0-9]{1,10}ms|[0-9]{1,7}s|[0-9]{1,5}m|[0-7]?[0-9]{1,3}h|([0-9]{1,2}|[12][0-9]{2}|3[0-5][0-9]|36[0-6])d)$");
    /// How long a call may still arrive: a whole number of `s`, `m`, `h` or `d`, above 0 and at most a week.
    SettleGrace, text("^([1-9][0-9]{0,4}s|[1-9][0-9]{0,3}m|([1-9][0-9]?|1[0-5][0-9]|16[0-8])h|[1-7]d)$");
    /// A JSON pointer (RFC 6901) to a member.
    JsonPointer, string(&format!("^(/([^~/]|~[01])*){{1,{MAX_DEPTH}}}$"), 1, MAX_POINTER_CHARS);
    /// A media type, with or without parameters.
    MediaType, string("^[A-Za-z0-9!#$%&'*+.^_`|~-]+/[A-Za-z0-9!#$%&'*+.^_`|~-]+( *;[ -~]*)?$", 3, MAX_CONTENT_TYPE_BYTES);
    /// Bytes in base64 (RFC 4648), padded.
    Base64, text("^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$")
        .content_encoding("base64");
    /// True, or left out.
    True, ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([true]));
    /// Calls per second.
    Rate, ObjectBuilder::new().schema_type(Type::Number).minimum(Some(PerSecond::MIN.get())).maximum(Some(PerSecond::MAX.get()));
}

/// Both databases accept every text without a NUL.
const NO_NUL: &str = r"^[^\x00]*$";
/// A pointer is limited in bytes, and a character has at most four.
const MAX_POINTER_CHARS: usize = Pointer::MAX_BYTES / 4;
const FIRING: &str = "firing";
/// The longest subject of a series: an operation, which is the longest name.
const MAX_SUBJECT_CHARS: usize = "operation:".len() + MAX_OPERATION_BYTES;

fn text(pattern: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::String)).pattern(Some(pattern))
}

fn string(pattern: &str, min: usize, max: usize) -> ObjectBuilder {
    text(pattern).min_length(Some(min).filter(|min| 0 < *min)).max_length(Some(max))
}

fn number(max: u32) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)))
        .minimum(Some(1))
        .maximum(Some(max))
}

fn one_of(words: &[&'static str]) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words.iter().copied()))
}

fn none_of(names: &[&str]) -> String {
    format!("is not known; use one of: {}", names.join(", "))
}

/// Reads a member that may be absent, but not null.
pub(super) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Reads a member that is `true` or absent.
pub(super) fn only_true<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let is_true = bool::deserialize(deserializer)?;
    is_true.then_some(true).ok_or_else(|| D::Error::custom("must be true, or left out"))
}

/// An empty text is part of every error, so as a filter it would select everything.
fn parse_error_text(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("is empty; leave it out to select all".to_owned()) } else { Ok(text.to_owned()) }
}

/// Checks the length in characters, as the schema does; the store limits it in bytes.
fn parse_short(text: &str) -> Result<String, String> {
    if text.contains('\0') {
        Err("has a NUL character, which cannot be stored; remove it".to_owned())
    } else if MAX_EXCERPT_BYTES < text.chars().count() {
        Err(format!("has more than {MAX_EXCERPT_BYTES} characters; shorten it"))
    } else {
        Ok(text.to_owned())
    }
}

fn whole_number(text: &str, max: u32) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=max).contains(number));
    number.ok_or_else(|| format!("must be a whole number from 1 to {max}"))
}

fn parse_subject(text: &str) -> Result<SeriesSubject, String> {
    let is_short = text.chars().count() <= MAX_SUBJECT_CHARS;
    SeriesSubject::parse(text).filter(|_| is_short && !text.contains('\0')).ok_or_else(|| {
        "must be queue:NAME, destination:NAME, operation:NAME, model:NAME, queues, operations or models"
            .to_owned()
    })
}

fn parse_step(text: &str) -> Result<SeriesStep, String> {
    duration::parse(text).ok().and_then(SeriesStep::new).ok_or_else(|| {
        format!(
            "must be a whole number of minutes, such as 1m, 5m, 1h or 1d, at most {}",
            duration::format(SeriesStep::MAX)
        )
    })
}

fn parse_wait(text: &str) -> Result<Duration, String> {
    match duration::parse(text) {
        Ok(wait) if wait <= MAX_WAIT => Ok(wait),
        Ok(_) => Err(format!(
            "is longer than {}; shorten it, and send the request again to wait longer",
            duration::format(MAX_WAIT)
        )),
        Err(_) => Err("is not a duration; write a whole number and a unit, such as 250ms or 5s".to_owned()),
    }
}
