//! The kinds of values that settings take: validation and parsing.

use std::time::Duration;

use ichido_core::settings::{duration, size};
use toml::de::DeValue;

use super::document::{Section, did_you_mean, kind_of};
use super::setting::{Presets, SettingTable};

/// The kind of value that a setting takes.
#[derive(Debug)]
pub(super) enum Kind {
    /// A text of at least one character.
    Text,
    /// A text, or a reference to one: `env:NAME`, `file:PATH`.
    Reference,
    /// A reference to a text that must not be in the file.
    Secret,
    /// The path of a file.
    Path,
    /// An IP address and a port.
    Address,
    /// One of several keywords.
    Word(&'static [&'static str]),
    Flag,
    Count(u32, u32),
    Number(f64, f64),
    /// A number from 0, below 1.
    Share,
    Time(Duration, Duration),
    /// Bytes.
    Size(usize, usize),
    Texts,
    References,
    Secrets,
    /// A table of texts with user-chosen names.
    Fields,
    Table(SettingTable),
    /// One of several keywords, or a table.
    WordOr(&'static [&'static str], SettingTable),
    /// `true`, `false` or a table.
    FlagOr(SettingTable),
    /// A list of tables.
    Rows(SettingTable),
    /// Tables with user-chosen names.
    Named(NamedTables),
}

/// Tables with user-chosen names.
#[derive(Debug)]
pub(super) struct NamedTables {
    /// The variants by the value of `kind`. There is one without a word if there are no kinds.
    pub(super) variants: &'static [Variant],
    /// The table that provides what these leave out.
    pub(super) fallback: Option<&'static str>,
    /// Whether absent settings have no default of their own.
    pub(super) has_no_defaults: bool,
}

#[derive(Debug)]
pub(super) struct Variant {
    pub(super) word: &'static str,
    pub(super) table: SettingTable,
    /// Computes the defaults that depend on the table's other settings.
    pub(super) presets: Option<fn(&Section<'_>) -> Presets>,
}

/// Any duration.
pub(super) const ANY_TIME: Kind = Kind::Time(Duration::ZERO, Duration::MAX);
/// Any duration above zero.
pub(super) const SOME_TIME: Kind = Kind::Time(Duration::from_millis(1), Duration::MAX);

/// Returns the keywords of a list of keywords and their meanings.
pub(super) const fn words<T, const N: usize>(list: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut words = [""; N];
    let mut index = 0;
    while index < N {
        words[index] = list[index].0;
        index += 1;
    }
    words
}

impl Kind {
    /// Describes the accepted values, for errors and the documentation.
    pub(super) fn expected(&self) -> String {
        match self {
            Self::Text | Self::Reference => "a quoted string".to_owned(),
            Self::Secret => "a reference, \"env:NAME\" or \"file:PATH\"".to_owned(),
            Self::Path => "a quoted string, the path of a file".to_owned(),
            Self::Address => "an IP address and a port, such as \"127.0.0.1:4180\"".to_owned(),
            Self::Word(words) => format!("one of: {}", words.join(", ")),
            Self::Flag => "true or false".to_owned(),
            Self::Count(min, max) => format!("a whole number from {min} to {max}"),
            Self::Number(min, f64::MAX) => format!("a number, {min} or more"),
            Self::Number(min, max) => format!("a number from {min} to {max}"),
            Self::Share => "a number below 1, such as 0.05 for 5 %".to_owned(),
            Self::Time(Duration::ZERO, Duration::MAX) => "a duration, such as \"3s\"".to_owned(),
            Self::Time(min, Duration::MAX) => format!("a duration, {} or more", duration::format(*min)),
            Self::Time(min, max) => {
                format!("a duration from {} to {}", duration::format(*min), duration::format(*max))
            }
            Self::Size(min, max) => {
                format!("a size from {} to {}", size::format_in_text(*min), size::format_in_text(*max))
            }
            Self::Texts | Self::References => "a list of strings, such as [\"one\", \"two\"]".to_owned(),
            Self::Secrets => "a list of references, such as [\"env:NAME\"]".to_owned(),
            Self::Fields | Self::Table(_) => "a table, such as { name = value }".to_owned(),
            Self::WordOr(words, _) => format!("one of: {}; or a table of its members", words.join(", ")),
            Self::FlagOr(_) => {
                "a table of thresholds, such as { above = 20 }, or false to switch it off".to_owned()
            }
            Self::Rows(_) => "a list of tables, such as [{ name = value }]".to_owned(),
            Self::Named(_) => "tables, such as [queues.orders]".to_owned(),
        }
    }

    /// Returns what is wrong with a value. Members of tables are checked separately.
    pub(super) fn reject(&self, value: &DeValue<'_>) -> Option<String> {
        let instead = |is: &str| Some(format!("{is}; write {}", self.expected()));
        let taken = match self {
            Self::Text | Self::Reference | Self::Secret | Self::Path => value.is_str(),
            Self::Address => match value.as_str() {
                Some(text) if text.parse::<std::net::SocketAddr>().is_err() => {
                    return instead("is not an address");
                }
                text => text.is_some(),
            },
            Self::Word(words) | Self::WordOr(words, _) if value.is_str() => {
                return unknown_word(value.as_str()?, words, self);
            }
            Self::Word(_) => false,
            Self::Flag => value.is_bool(),
            Self::Count(min, max) => u32::read(value).is_some_and(|count| (*min..=*max).contains(&count)),
            Self::Number(min, max) => decimal(value).is_some_and(|number| (*min..=*max).contains(&number)),
            Self::Share => match decimal(value) {
                Some(share) if 1.0 <= share => return instead("is a share that is never exceeded"),
                share => share.is_some_and(|share| 0.0 <= share),
            },
            Self::Time(min, max) => match value.as_str().map(duration::parse) {
                Some(Err(error)) => return Some(error.to_string()),
                Some(Ok(time)) if !(*min..=*max).contains(&time) => {
                    return instead(&format!("is {}", duration::format(time)));
                }
                time => time.is_some(),
            },
            Self::Size(min, max) => match bytes(value) {
                Some(Err(error)) => return Some(error.to_string()),
                Some(Ok(bytes)) if !(*min as u64..=*max as u64).contains(&bytes) => {
                    return instead(&format!("is {}", size::format(bytes)));
                }
                bytes => bytes.is_some(),
            },
            Self::Texts | Self::References | Self::Secrets => Vec::<String>::read(value).is_some(),
            Self::Fields | Self::Table(_) | Self::WordOr(..) | Self::Named(_) => value.is_table(),
            Self::FlagOr(_) => value.is_bool() || value.is_table(),
            Self::Rows(_) => {
                value.as_array().is_some_and(|items| items.iter().all(|item| item.get_ref().is_table()))
            }
        };
        if taken { None } else { instead(&format!("is {}", kind_of(value))) }
    }
}

fn unknown_word(given: &str, words: &[&'static str], kind: &Kind) -> Option<String> {
    if words.contains(&given) {
        return None;
    }
    let meant = did_you_mean(given, words.iter().copied(), &format!("write {}", kind.expected()));
    Some(format!("unknown value {given:?}{meant}"))
}

fn bytes(value: &DeValue<'_>) -> Option<Result<u64, size::SizeError>> {
    match value {
        DeValue::String(text) => Some(size::parse(text)),
        DeValue::Integer(whole) if whole.radix() == 10 => Some(size::parse(whole.as_str())),
        _ => None,
    }
}

/// A type that settings are parsed into.
pub(super) trait FromSetting: Sized {
    fn read(value: &DeValue<'_>) -> Option<Self>;
}

macro_rules! read {
    ($($kind:ty: |$value:ident| $read:expr;)*) => { $(impl FromSetting for $kind {
        fn read($value: &DeValue<'_>) -> Option<Self> { $read }
    })* };
}
read! {
    String: |value| value.as_str().map(str::to_owned);
    bool: |value| value.as_bool();
    f64: |value| decimal(value);
    u32: |value| u32::from_str_radix(value.as_integer()?.as_str(), value.as_integer()?.radix()).ok();
    // A size, or a count.
    usize: |value| usize::try_from(u32::read(value).map_or_else(|| bytes(value)?.ok(), |count| Some(count.into()))?).ok();
    Duration: |value| duration::parse(value.as_str()?).ok();
    Vec<String>: |value| value.as_array()?.iter().map(|item| String::read(item.get_ref())).collect();
}

/// Parses a decimal number.
fn decimal(value: &DeValue<'_>) -> Option<f64> {
    let text = match value {
        DeValue::Integer(whole) if whole.radix() == 10 => whole.as_str(),
        DeValue::Float(float) => float.as_str(),
        _ => return None,
    };
    text.parse().ok().filter(|number: &f64| number.is_finite())
}
