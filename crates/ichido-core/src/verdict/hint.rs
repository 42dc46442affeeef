//! Reads how long a server asks the caller to wait.

use std::time::{Duration, UNIX_EPOCH};

use crate::time::Timestamp;

/// The longest wait of any schedule or hint: 30 days, so sums of waits stay far from overflow.
pub const MAX_WAIT: Duration = Duration::from_hours(30 * 24);
/// Headers with a wait in milliseconds; they are finer than `Retry-After` and take precedence.
const MILLISECOND_HEADERS: [&str; 3] = ["retry-after-ms", "x-ms-retry-after-ms", "x-amz-retry-after"];

/// Returns the wait that a response's headers ask for; unreadable values are ignored.
pub fn hint_of<N, V>(headers: impl IntoIterator<Item = (N, V)>, now: Timestamp) -> Option<Duration>
where
    N: AsRef<str>,
    V: AsRef<[u8]>,
{
    let (mut exact, mut plain) = (None, None);
    for (name, value) in headers {
        let name = name.as_ref();
        let Ok(value) = std::str::from_utf8(value.as_ref()) else {
            continue;
        };
        // The longest of several waits counts: the component that added it wants to be left alone that long.
        if name.eq_ignore_ascii_case("retry-after") {
            plain = plain.max(retry_after(value, now));
        } else if MILLISECOND_HEADERS.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            exact = exact.max(decimal(value.trim(), 1_000));
        }
    }
    exact.or(plain)
}

/// Parses `Retry-After`: seconds, or an HTTP date (a past one means now).
///
/// Returns `None` if it is neither.
///
/// Some servers send a fraction of a second. It is accepted, although the standard allows only whole seconds.
pub fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    decimal(value, 1).or_else(|| {
        let date = httpdate::parse_http_date(value).ok()?;
        let since_epoch = date.duration_since(UNIX_EPOCH).ok()?;
        Some(Timestamp::EPOCH.plus(since_epoch).since(now).min(MAX_WAIT))
    })
}

/// Parses `12` or `12.5` in units of which `per_second` make a second.
///
/// Values too large are [`MAX_WAIT`].
fn decimal(value: &str, per_second: u32) -> Option<Duration> {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, "0"));
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let units = value.parse::<f64>().ok()?;
    let wait = Duration::try_from_secs_f64(units / f64::from(per_second)).unwrap_or(MAX_WAIT);
    Some(wait.min(MAX_WAIT))
}
