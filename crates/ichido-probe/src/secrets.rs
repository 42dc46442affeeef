//! The credentials of a target, which no output shows.
//!
//! Guarantee: a value that may be a credential (any header but those that never are, a token in a query) is a shell variable
//! in every text that went through [`Secrets`], also where the target spells it with escapes; so a transcript can be passed
//! on, and runs where the variables are set. The body is shown as it was given.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::target::{Counter, MARKER, Target, UNIQUE};

/// Headers whose values are never credentials; also those that begin with `ichido-`.
const HARMLESS: [&str; 10] = [
    "accept",
    "accept-language",
    "content-language",
    "content-length",
    "content-type",
    "host",
    "idempotency-key",
    "traceparent",
    "user-agent",
    "x-idempotency-key",
];
/// Parts of the names of parameters whose values are credentials, with a hyphen for any other sign.
const NAMES: [&str; 15] = [
    "auth",
    "cookie",
    "token",
    "secret",
    "passw",
    "session",
    "credential",
    "api-key",
    "apikey",
    "access-key",
    "accesskey",
    "subscription-key",
    "signature",
    "jwt",
    "bearer",
];
/// Whole names of parameters whose values are credentials.
const PARAMETERS: [&str; 8] = ["key", "sig", "code", "pass", "pwd", "sid", "otp", "pin"];
/// A shorter credential is hidden where it is sent, but not wherever its letters occur.
const MIN_BYTES: usize = 5;
/// The same for the value of a header that may well be no credential, such as `slow`.
const MIN_OTHER_BYTES: usize = 8;

/// The credentials of a target, the longest first.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Vec<Secret>);

#[derive(Clone)]
struct Secret {
    variable: String,
    value: String,
    /// What it is, for the person who has to set the variable.
    meaning: String,
    /// Whether it is hidden wherever it occurs, not only where it is sent.
    is_everywhere: bool,
}

// The value is left out.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.variable)
    }
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(&'a [u8]),
    Variable(&'a str),
}

impl Secrets {
    /// Finds the credentials of a target.
    pub fn of(target: &Target) -> Self {
        let mut secrets = Self::default();
        let named = target.headers.iter().chain(target.provoke.iter().map(|(_, line)| line));
        let named = named.filter(|(name, _)| !is_harmless(name));
        let identities = target.second_identity.iter().chain(&target.fresh_credential);
        for (name, value) in named.chain(identities) {
            secrets.add_header(name, value);
        }
        let counted = match &target.counter {
            Some(Counter::Get { path, .. }) => Some(path),
            Some(Counter::Command(_)) | None => None,
        };
        let others = counted.into_iter().chain(target.other_operation.as_ref().map(|(_, path)| path));
        for path in others.chain([&target.path]) {
            let query = path.split_once('?').map_or("", |(_, query)| query);
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            for (name, value) in pairs.filter(|(name, _)| is_credential(name)) {
                secrets.add(name, value, format!("the parameter {name}"));
            }
        }
        secrets.0.sort_by_key(|secret| std::cmp::Reverse(secret.value.len()));
        secrets
    }

    fn add_header(&mut self, name: &str, value: &str) {
        let value = credential(name, value);
        self.add(name, value, format!("the value of the header {name}, without its scheme"));
        // A target may quote the password of a user.
        let decoded = STANDARD.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        if let Some((_, password)) = decoded.as_ref().and_then(|pair| pair.split_once(':')) {
            self.add(&format!("{name}_password"), password, format!("the password in the header {name}"));
        }
    }

    fn add(&mut self, name: &str, value: &str, meaning: String) {
        // What changes from rule to rule is not a credential, but what is around it may be.
        if let Some((before, after)) = value.split_once(MARKER).or_else(|| value.split_once(UNIQUE)) {
            for part in [before, after].into_iter().filter(|part| MIN_BYTES <= part.len()) {
                self.add(name, part, format!("a part of {meaning}"));
            }
            return;
        }
        if value.is_empty() || self.0.iter().any(|secret| secret.value == value) {
            return;
        }
        let upper = |one: char| if one.is_ascii_alphanumeric() { one.to_ascii_uppercase() } else { '_' };
        let min = if is_credential(name) { MIN_BYTES } else { MIN_OTHER_BYTES };
        let name = format!("PROBE_{}", name.chars().map(upper).collect::<String>());
        let mut names = std::iter::once(name.clone()).chain((2..).map(|number| format!("{name}_{number}")));
        let is_free = |name: &String| self.0.iter().all(|secret| secret.variable != *name);
        let variable = names.find(is_free).unwrap_or(name);
        let (value, is_everywhere) = (value.to_owned(), min <= value.len());
        self.0.push(Secret { variable, value, meaning, is_everywhere });
    }

    /// Returns the text with the name of a variable for each credential, however it is escaped.
    pub fn redacted(&self, text: &str) -> String {
        let mut shown = String::new();
        let mut rest = text;
        while let Some(one) = rest.chars().next() {
            let mut long = self.0.iter().filter(|secret| secret.is_everywhere);
            // The longest is the first.
            let found = long.find_map(|secret| Some((spelled(rest, &secret.value)?, secret)));
            if let Some((length, secret)) = found {
                shown.extend(["$", &secret.variable]);
                rest = &rest[length..];
            } else {
                shown.push(one);
                rest = &rest[one.len_utf8()..];
            }
        }
        shown
    }

    /// Splits a URL at its credentials, of which a short one is hidden as well.
    pub(crate) fn url_pieces<'a>(&'a self, url: &'a [u8]) -> Vec<Piece<'a>> {
        let mut pieces = Vec::new();
        for part in url.split_inclusive(|byte| matches!(byte, b'?' | b'&')) {
            let end = part.len() - usize::from(part.ends_with(b"&") || part.ends_with(b"?"));
            let value = part.iter().position(|byte| *byte == b'=').map_or(end, |at| at + 1);
            let is_secret = is_credential(&String::from_utf8_lossy(&part[..value.saturating_sub(1)]));
            let known =
                self.0.iter().find(|secret| is_secret && secret.value.as_bytes() == &part[value..end]);
            match known {
                Some(secret) => {
                    pieces.push(Piece::Text(&part[..value]));
                    pieces.push(Piece::Variable(&secret.variable));
                    pieces.extend((end < part.len()).then(|| Piece::Text(&part[end..])));
                }
                None => pieces.extend(self.pieces(part, false)),
            }
        }
        pieces
    }

    /// Returns a URL with the name of a variable for each credential.
    pub(crate) fn redacted_url(&self, url: &str) -> String {
        let text = |piece: &Piece<'_>| match piece {
            Piece::Text(text) => String::from_utf8_lossy(text).into_owned(),
            Piece::Variable(name) => format!("${name}"),
        };
        self.url_pieces(url.as_bytes()).iter().map(text).collect()
    }

    /// Splits a text at its credentials; `is_sent` if it is the value of a header, where even a short one is hidden.
    pub(crate) fn pieces<'a>(&'a self, mut text: &'a [u8], is_sent: bool) -> Vec<Piece<'a>> {
        let mut pieces = Vec::new();
        let is_whole = |secret: &&Secret| {
            let scheme = text.strip_suffix(secret.value.as_bytes());
            scheme.is_some_and(|scheme| scheme.is_empty() || scheme.ends_with(b" "))
        };
        if let Some(secret) = self.0.iter().find(|secret| is_sent && is_whole(secret)) {
            let scheme = &text[..text.len() - secret.value.len()];
            pieces.extend((!scheme.is_empty()).then_some(Piece::Text(scheme)));
            pieces.push(Piece::Variable(&secret.variable));
            return pieces;
        }
        loop {
            let known = self.0.iter().filter(|secret| secret.is_everywhere);
            let found = known.filter_map(|secret| Some((find(text, secret.value.as_bytes())?, secret)));
            // The longest of those at one place is the first.
            let Some((at, secret)) = found.min_by_key(|(at, _)| *at) else { break };
            pieces.extend((0 < at).then_some(Piece::Text(&text[..at])));
            pieces.push(Piece::Variable(&secret.variable));
            text = &text[at + secret.value.len()..];
        }
        pieces.extend((!text.is_empty()).then_some(Piece::Text(text)));
        pieces
    }

    /// Returns the meaning of a variable.
    pub(crate) fn meaning(&self, variable: &str) -> &str {
        self.0.iter().find(|secret| secret.variable == variable).map_or("", |secret| &secret.meaning)
    }
}

/// Whether the values of such a parameter are credentials.
fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace(|one: char| !one.is_ascii_alphanumeric(), "-");
    NAMES.iter().any(|part| name.contains(part)) || PARAMETERS.contains(&&*name)
}

/// Whether the values of such a header are never credentials.
fn is_harmless(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    HARMLESS.contains(&&*name) || name.starts_with("ichido-")
}

/// Returns the length of a credential at the beginning of a text, whose characters may be escaped as JSON or a URL does; also of
/// one that is cut off by `…`.
fn spelled(text: &str, value: &str) -> Option<usize> {
    let (mut rest, mut matched) = (text, 0);
    for one in value.chars() {
        if MIN_BYTES <= matched && is_cut(rest) {
            return Some(text.len() - rest.len() + rest.find('…').unwrap_or(0));
        }
        rest = escaped(rest, one)?;
        matched += one.len_utf8();
    }
    Some(text.len() - rest.len())
}

/// Whether a text is cut off here, or inside an escape.
fn is_cut(rest: &str) -> bool {
    const MAX_ESCAPE_CHARS: usize = 6;
    let start = rest.split('…').next().unwrap_or_default();
    start.is_empty() && rest.starts_with('…')
        || (start.len() < rest.len() && start.len() < MAX_ESCAPE_CHARS && start.starts_with(['\\', '%']))
}

/// Returns the text after this character, which may be escaped.
fn escaped(text: &str, one: char) -> Option<&str> {
    let plain = text.strip_prefix(one);
    let quoted = || text.strip_prefix('\\')?.strip_prefix(one);
    let unicode = || {
        let (mut rest, mut units) = (text, [0; 2]);
        for unit in one.encode_utf16(&mut units) {
            let digits = rest.strip_prefix("\\u")?;
            let is_same = u16::from_str_radix(digits.get(..4)?, 16) == Ok(*unit);
            rest = is_same.then(|| &digits[4..])?;
        }
        Some(rest)
    };
    let percent = || {
        let (mut rest, mut bytes) = (text, [0; 4]);
        for byte in one.encode_utf8(&mut bytes).bytes() {
            let digits = rest.strip_prefix('%')?;
            let is_same = u8::from_str_radix(digits.get(..2)?, 16) == Ok(byte);
            rest = is_same.then(|| &digits[2..])?;
        }
        Some(rest)
    };
    plain.or_else(quoted).or_else(unicode).or_else(percent)
}

/// Returns the part of a header's value that is secret: the scheme is not.
fn credential<'a>(name: &str, value: &'a str) -> &'a str {
    let has_scheme = name.to_ascii_lowercase().ends_with("authorization");
    value.split_once(' ').filter(|_| has_scheme).map_or(value, |(_, rest)| rest.trim_start())
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(headers: &[(&str, &str)], query: &str) -> Secrets {
        let mut secrets = Secrets::default();
        for (name, value) in headers.iter().filter(|(name, _)| !is_harmless(name)) {
            secrets.add_header(name, value);
        }
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            secrets.add(name, value, String::new());
        }
        secrets.0.sort_by_key(|secret| std::cmp::Reverse(secret.value.len()));
        secrets
    }

    #[test]
    fn each_credential_is_a_variable_wherever_it_occurs() {
        let secrets = secrets(
            &[
                ("Authorization", "Bearer abcdef"),
                ("X-Api-Key", "abcdefgh"),
                ("X-User", "ann"),
                ("Cookie", "s=1"),
                ("X-Anything", "any/thing+\u{e9}"),
                ("Content-Type", "application/json"),
            ],
            "token=t0ken-1",
        );
        let text = "401 {\"key\":\"abcdefgh\",\"token\":\"abcdef\"} at ?token=t0ken-1, s=1, ann";
        let expected = "401 {\"key\":\"$PROBE_X_API_KEY\",\"token\":\"$PROBE_AUTHORIZATION\"} at \
                        ?token=$PROBE_TOKEN, s=1, ann";
        assert_eq!(secrets.redacted(text), expected);
        assert_eq!(
            secrets.pieces(b"s=1", true),
            [Piece::Variable("PROBE_COOKIE")],
            "a short one is hidden where it is sent"
        );
        assert_eq!(secrets.redacted("a t0ken…, an abc…"), "a $PROBE_TOKEN…, an abc…");
        assert!(!format!("{secrets:?}").contains("abcdef"));
        for echo in ["any\\/thing\\u002B\\u00e9", "any%2Fthing%2b%C3%A9", "any/thi…", "any/thing\\u00…"] {
            let shown = secrets.redacted(echo);
            assert!(shown.starts_with("$PROBE_X_ANYTHING"), "{echo}: {shown}");
            assert_eq!(shown.trim_end_matches('…'), "$PROBE_X_ANYTHING", "{echo}");
        }
        assert_eq!(secrets.redacted("application/json"), "application/json");
    }

    #[test]
    fn a_password_and_the_text_around_a_marker_are_credentials() {
        let headers = [("Authorization", "Basic YW5uOnBhc3N3MHJk"), ("X-Api-Key", "s3cret-{marker}-more")];
        let secrets = secrets(&headers, "");
        let shown = secrets.redacted("passw0rd, YW5uOnBhc3N3MHJk, s3cret-probe-1");
        assert_eq!(shown, "$PROBE_AUTHORIZATION_PASSWORD, $PROBE_AUTHORIZATION, $PROBE_X_API_KEYprobe-1");
    }

    #[test]
    fn parameters_that_are_commonly_secret_are_hidden() {
        let names = [
            "subscription-key",
            "X-Amz-Signature",
            "x-goog-signature",
            "pass",
            "pwd",
            "passwd",
            "jwt",
            "sid",
            "otp",
            "sig",
            "code",
            "api_key",
            "access_token",
        ];
        for name in names {
            assert!(is_credential(name), "{name}");
            let mut secrets = Secrets::default();
            secrets.add(name, "1234", String::new());
            let shown = secrets.redacted_url(&format!("http://a/?{name}=1234&n=1234"));
            assert!(!shown.contains(&format!("{name}=1234")) && shown.ends_with("&n=1234"), "{shown}");
        }
        assert!(!is_credential("ref") && !is_credential("passenger"));
    }

    #[test]
    fn two_values_of_one_name_have_two_variables() {
        let secrets = secrets(&[("Authorization", "Bearer first1"), ("authorization", "second")], "");
        assert_eq!(secrets.redacted("first1 second"), "$PROBE_AUTHORIZATION $PROBE_AUTHORIZATION_2");
    }
}
