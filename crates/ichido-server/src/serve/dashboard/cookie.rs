//! Cookies: read by name, and written with the strictest attributes.

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

/// Returns the value of a cookie. A name that is sent twice counts as not sent: another host may have set one of them.
pub(super) fn get<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(known, _)| *known == name).map(|(_, value)| value);
    values.next().filter(|_| values.next().is_none())
}

/// Returns a cookie that only this host gets back, and no script reads. Without a lifetime it ends with the browser's session.
pub(super) fn set(
    name: &str,
    value: &str,
    is_secure: bool,
    max_age_seconds: Option<u64>,
) -> Option<HeaderValue> {
    let secure = if is_secure { "; Secure" } else { "" };
    let age = max_age_seconds.map(|seconds| format!("; Max-Age={seconds}")).unwrap_or_default();
    HeaderValue::try_from(format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/{secure}{age}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_read_once() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "a=1; b=2;c=3=4".parse().expect("a value"));
        headers.append(COOKIE, "b=5".parse().expect("a value"));
        assert_eq!(get(&headers, "a"), Some("1"));
        assert_eq!(get(&headers, "b"), None, "sent twice");
        assert_eq!(get(&headers, "c"), Some("3=4"));
        assert_eq!(get(&headers, "d"), None);
    }

    #[test]
    fn cookies_are_strict() {
        let plain = set("s", "1", false, None).expect("a value");
        assert_eq!(plain, "s=1; HttpOnly; SameSite=Strict; Path=/");
        let secure = set("__Host-s", "", true, Some(0)).expect("a value");
        assert_eq!(secure, "__Host-s=; HttpOnly; SameSite=Strict; Path=/; Secure; Max-Age=0");
        assert!(set("s", "a\r\nb", false, None).is_none());
    }
}
