//! Hides values from people: those at a queue's JSON pointers, and the same values wherever else they appear.
//!
//! Guarantee: what is shown has no value at a pointer, in any document, and no text with a value that the message's request has
//! at a pointer, also as URLs and HTML write it. What cannot be searched (a request that is not JSON, an incomplete document) is hidden as a whole. Numbers keep
//! their spelling, and a text without anything to hide is returned as it is.
//!
//! [`Redaction`] has the pointers. [`Redaction::of_request`] makes the [`Redactor`] of one message.

use std::borrow::Cow;

use super::value::array_index;
use super::{Document, JsonValue, Kind, Pointer, PointerError, string};
use crate::text::percent_encoded;

/// Stands for what is hidden.
pub const REDACTED: &str = "[redacted]";

/// The maximum number of pointers to redacted values.
pub const MAX_REDACTED: usize = 64;

/// The maximum number of values that are searched for in texts. If a request has more, its texts are hidden as a whole.
const MAX_SECRETS: usize = 1_000;

/// A shorter value is hidden in a text only where it stands alone: a part of a word is there by chance.
const MIN_PART_BYTES: usize = 6;

/// A step that is any member of an object, or any element of an array.
const ANY: &str = "*";

/// JSON pointers to the values that people do not see. The step `*` is any member or element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redaction(Vec<Pointer>); // Invariant: MAX_REDACTED pointers at most.

/// Why pointers are not a [`Redaction`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedactionError {
    /// A text is not a pointer.
    #[error("`{text}` is not a JSON pointer: {error}")]
    Pointer {
        /// The text.
        text: String,
        /// What is wrong with it.
        error: PointerError,
    },
    /// There are more than [`MAX_REDACTED`].
    #[error("{count} pointers; name at most {MAX_REDACTED}, or one object that contains the values")]
    TooMany {
        /// The number of pointers.
        count: usize,
    },
}

/// The edited document has a hidden value where the original has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a value is {REDACTED}, and the original has none there; write the value itself")]
pub struct NothingToRestore;

/// Redacts the texts and documents of one message.
#[derive(Clone)]
pub struct Redactor<'r> {
    redaction: &'r Redaction,
    secrets: Secrets,
}

/// The values that a request has at the pointers.
#[derive(Clone)]
enum Secrets {
    /// Its strings and numbers.
    Values(Vec<String>),
    /// The request is not JSON, or has too many.
    Unknown,
}

impl Redaction {
    /// Hides nothing.
    pub const NONE: Self = Self(Vec::new());

    /// Parses pointers.
    pub fn parse<T: AsRef<str>>(texts: &[T]) -> Result<Self, RedactionError> {
        if MAX_REDACTED < texts.len() {
            return Err(RedactionError::TooMany { count: texts.len() });
        }
        let parse = |text: &T| {
            Pointer::parse(text.as_ref())
                .map_err(|error| RedactionError::Pointer { text: text.as_ref().to_owned(), error })
        };
        texts.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether nothing is hidden.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the value at a pointer is hidden, is inside a hidden one, or contains one.
    pub fn overlaps(&self, pointer: &Pointer) -> bool {
        let is_same = |(one, other): (&str, &str)| one == other || one == ANY || other == ANY;
        self.0.iter().any(|hidden| hidden.tokens().zip(pointer.tokens()).all(is_same))
    }

    /// Returns the values that a request has at the pointers.
    fn secrets(&self, request: &[u8]) -> Secrets {
        if self.is_empty() {
            return Secrets::Values(Vec::new());
        }
        let Ok(document) = Document::parse(request, request.len()) else { return Secrets::Unknown };
        let mut secrets = Vec::new();
        collect(document.root(), &self.steps(), false, &mut secrets);
        if MAX_SECRETS < secrets.len() {
            return Secrets::Unknown;
        }
        let spellings: Vec<String> = secrets.iter().flat_map(|secret| spellings(secret)).collect();
        secrets.extend(spellings);
        // A longer one first: it may contain a shorter one.
        secrets.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        secrets.dedup();
        Secrets::Values(secrets)
    }

    /// Returns the redactor of a message, by its request.
    pub fn of_request(&self, request: &[u8]) -> Redactor<'_> {
        Redactor { redaction: self, secrets: self.secrets(request) }
    }

    /// Returns the redactor of texts that were redacted before they were stored, whose request is not at hand.
    pub fn of_stored(&self) -> Redactor<'_> {
        Redactor { redaction: self, secrets: Secrets::Values(Vec::new()) }
    }

    /// Returns a request as people see it.
    pub fn request<'a>(&self, request: &'a [u8]) -> Cow<'a, [u8]> {
        if self.is_empty() {
            return Cow::Borrowed(request);
        }
        match Document::parse(request, request.len()) {
            Ok(document) => self.rewritten(&document, &[]).map_or(Cow::Borrowed(request), Cow::Owned),
            Err(_) => Cow::Borrowed(REDACTED.as_bytes()),
        }
    }

    /// Puts back what [`Redaction::request`] hid of the original, in a document that a person has edited.
    ///
    /// A value at a pointer that still is [`REDACTED`] becomes the original's. A text that is not JSON stays as it is.
    pub fn restore<'a>(&self, edited: &'a [u8], original: &[u8]) -> Result<Cow<'a, [u8]>, NothingToRestore> {
        let (Ok(document), false) = (Document::parse(edited, edited.len()), self.is_empty()) else {
            return Ok(Cow::Borrowed(edited));
        };
        let original = Document::parse(original, original.len()).ok();
        let mut rewriter =
            Rewriter { purpose: Purpose::Restore, out: Vec::new(), is_changed: false, is_missing: false };
        rewriter.value(document.root(), &self.steps(), original.as_ref().map(Document::root));
        match rewriter {
            Rewriter { is_missing: true, .. } => Err(NothingToRestore),
            Rewriter { is_changed: true, out, .. } => Ok(Cow::Owned(out)),
            Rewriter { .. } => Ok(Cow::Borrowed(edited)),
        }
    }

    fn steps(&self) -> Vec<Vec<&str>> {
        self.0.iter().map(|pointer| pointer.tokens().collect()).collect()
    }

    /// Returns a document without what is hidden, unless it has nothing to hide.
    fn rewritten(&self, document: &Document<'_>, secrets: &[String]) -> Option<Vec<u8>> {
        let purpose = Purpose::Hide(secrets);
        let mut rewriter = Rewriter { purpose, out: Vec::new(), is_changed: false, is_missing: false };
        rewriter.value(document.root(), &self.steps(), None);
        rewriter.is_changed.then_some(rewriter.out)
    }
}

impl Redactor<'_> {
    /// Returns a receiver's response, or its start, as people see it.
    pub fn response<'a>(&self, body: &'a [u8]) -> Cow<'a, [u8]> {
        if self.redaction.is_empty() {
            return Cow::Borrowed(body);
        }
        let Ok(text) = std::str::from_utf8(body) else { return Cow::Borrowed(REDACTED.as_bytes()) };
        match self.text(text) {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        }
    }

    /// Returns a digest as people see it: with the digest and all other values, a short hidden value can be guessed.
    pub fn digest(&self, digest: String) -> String {
        if self.redaction.is_empty() { digest } else { REDACTED.to_owned() }
    }

    /// Returns a text, such as an error, as people see it. It may end with a JSON document.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.redaction.is_empty() {
            return Cow::Borrowed(text);
        }
        let Secrets::Values(secrets) = &self.secrets else { return Cow::Borrowed(REDACTED) };
        let mut brackets = text.match_indices(['{', '[']);
        let begin = brackets.find(|(at, _)| !text[*at..].starts_with(REDACTED)).map(|(at, _)| at);
        let Some((before, json)) = begin.and_then(|at| text.split_at_checked(at)) else {
            return hide(text, secrets);
        };
        let shown = match Document::parse(json.as_bytes(), json.len()) {
            Ok(document) => self.redaction.rewritten(&document, secrets).map(String::from_utf8),
            // A pointer leads nowhere in a document that was cut.
            Err(_) => Some(Ok(REDACTED.to_owned())),
        };
        match (hide(before, secrets), shown) {
            (Cow::Borrowed(_), None) => Cow::Borrowed(text),
            (before, None) => Cow::Owned(format!("{before}{json}")),
            (before, Some(shown)) => Cow::Owned(format!("{before}{}", shown.as_deref().unwrap_or(REDACTED))),
        }
    }
}

/// The steps of each pointer that leads on from a value. One without steps ends there.
type Steps<'s> = [Vec<&'s str>];

/// Returns the steps that lead on into a member or element.
fn inside<'s>(steps: &Steps<'s>, is_there: impl Fn(&str) -> bool) -> Vec<Vec<&'s str>> {
    let leads = |steps: &Vec<&'s str>| {
        let (first, rest) = steps.split_first()?;
        (*first == ANY || is_there(first)).then(|| rest.to_vec())
    };
    steps.iter().filter_map(leads).collect()
}

/// Collects the strings and numbers of hidden values, and one more than the maximum at most.
fn collect(value: JsonValue<'_, '_>, steps: &Steps<'_>, is_inside: bool, secrets: &mut Vec<String>) {
    let is_hidden = is_inside || steps.iter().any(Vec::is_empty);
    if MAX_SECRETS < secrets.len() || (steps.is_empty() && !is_hidden) {
        return;
    }
    if is_hidden && let Some(text) = value.as_str().or_else(|| value.as_number_text().map(Cow::Borrowed)) {
        secrets.extend((!text.is_empty()).then(|| text.into_owned()));
    }
    for (index, element) in value.elements().enumerate() {
        collect(element, &inside(steps, |step| array_index(step) == Some(index)), is_hidden, secrets);
    }
    for (name, member) in value.members() {
        collect(member, &inside(steps, |step| step == name), is_hidden, secrets);
    }
}

/// The marks that only some encoders of a URL leave as they are.
const PLAIN_IN_URL: [&[u8]; 3] = [b"-_.~", b"-_.!~*'()", b"-_.*"];
/// How pages write a double and a single quote.
const QUOTES_IN_HTML: [(&str, &str); 5] =
    [("\"", "'"), ("&quot;", "&#39;"), ("&#34;", "&#39;"), ("&quot;", "&#x27;"), ("&quot;", "&#039;")];

/// Returns how a value is written in a URL and in a page, where that differs: receivers repeat what they got.
fn spellings(secret: &str) -> Vec<String> {
    let mut spellings = Vec::new();
    for plain in PLAIN_IN_URL {
        let upper = percent_encoded(secret, plain);
        let lower = secret.bytes().fold(String::new(), |text, byte| {
            let is_plain = byte.is_ascii_alphanumeric() || plain.contains(&byte);
            if is_plain { text + &char::from(byte).to_string() } else { text + &format!("%{byte:02x}") }
        });
        spellings.extend([upper.replace("%20", "+"), lower.replace("%20", "+"), upper, lower]);
    }
    let escaped = secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    spellings
        .extend(QUOTES_IN_HTML.map(|(double, single)| escaped.replace('"', double).replace('\'', single)));
    spellings.retain(|spelling| spelling != secret);
    spellings
}

/// Replaces every secret in a text.
fn hide<'a>(text: &'a str, secrets: &[String]) -> Cow<'a, str> {
    secrets.iter().fold(Cow::Borrowed(text), |text, secret| match replaced(&text, secret) {
        Some(replaced) => Cow::Owned(replaced),
        None => text,
    })
}

fn replaced(text: &str, secret: &str) -> Option<String> {
    let is_word = |char: Option<char>| char.is_some_and(char::is_alphanumeric);
    let (mut out, mut end) = (String::new(), 0);
    for (at, _) in text.match_indices(secret) {
        let (before, after) = (text[..at].chars().next_back(), text[at + secret.len()..].chars().next());
        if secret.len() < MIN_PART_BYTES && (is_word(before) || is_word(after)) {
            continue;
        }
        out.push_str(&text[end..at]);
        out.push_str(REDACTED);
        end = at + secret.len();
    }
    out.push_str(&text[end..]);
    (0 < end).then_some(out)
}

/// What is done to the values at the pointers.
enum Purpose<'s> {
    /// They are hidden, and so are these in all other texts.
    Hide(&'s [String]),
    /// Hidden ones become the original's.
    Restore,
}

/// Writes a document again, in its order, without white space.
struct Rewriter<'s> {
    purpose: Purpose<'s>,
    out: Vec<u8>,
    is_changed: bool,
    /// Whether a hidden value has no original.
    is_missing: bool,
}

impl Rewriter<'_> {
    /// The recursion is bounded by the depth of a document.
    fn value(&mut self, value: JsonValue<'_, '_>, steps: &Steps<'_>, original: Option<JsonValue<'_, '_>>) {
        if steps.iter().any(Vec::is_empty) && self.is_replaced(value, original) {
            return;
        }
        match value.kind() {
            Kind::Null => self.out.extend_from_slice(b"null"),
            Kind::Bool => {
                let word = if value.as_bool() == Some(true) { "true" } else { "false" };
                self.out.extend_from_slice(word.as_bytes());
            }
            Kind::Number => self.number(value.as_number_text().unwrap_or_default()),
            Kind::String => self.string(&value.as_str().unwrap_or_default()),
            Kind::Array => {
                let mut originals = original.map(JsonValue::elements);
                self.out.push(b'[');
                for (index, element) in value.elements().enumerate() {
                    self.separate(0 < index);
                    let original = originals.as_mut().and_then(Iterator::next);
                    self.value(element, &inside(steps, |step| array_index(step) == Some(index)), original);
                }
                self.out.push(b']');
            }
            Kind::Object => {
                self.out.push(b'{');
                for (index, (name, member)) in value.members().enumerate() {
                    self.separate(0 < index);
                    self.string(&name);
                    self.out.push(b':');
                    let original = original.and_then(|original| original.get(&name));
                    self.value(member, &inside(steps, |step| step == name), original);
                }
                self.out.push(b'}');
            }
        }
    }

    /// Writes what replaces the value at a pointer. Returns whether anything does.
    fn is_replaced(&mut self, value: JsonValue<'_, '_>, original: Option<JsonValue<'_, '_>>) -> bool {
        match self.purpose {
            Purpose::Hide(_) => string::write(REDACTED, &mut self.out),
            Purpose::Restore if value.as_str().as_deref() != Some(REDACTED) => return false,
            Purpose::Restore => match original {
                Some(original) => self.value(original, &[], None),
                None => self.is_missing = true,
            },
        }
        self.is_changed = true;
        true
    }

    fn string(&mut self, text: &str) {
        let shown = match self.purpose {
            Purpose::Hide(secrets) => hide(text, secrets),
            Purpose::Restore => Cow::Borrowed(text),
        };
        self.is_changed |= matches!(shown, Cow::Owned(_));
        string::write(&shown, &mut self.out);
    }

    fn number(&mut self, spelling: &str) {
        if let Purpose::Hide(secrets) = self.purpose
            && secrets.iter().any(|secret| secret == spelling)
        {
            self.is_changed = true;
            return string::write(REDACTED, &mut self.out);
        }
        self.out.extend_from_slice(spelling.as_bytes());
    }

    fn separate(&mut self, has_before: bool) {
        if has_before {
            self.out.push(b',');
        }
    }
}

crate::debug_only! {
    /// Shows no secret.
    Redactor<'_> as redactor { pointers: redactor.redaction.0.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redaction(pointers: &[&str]) -> Redaction {
        Redaction::parse(pointers).unwrap()
    }

    fn shown(pointers: &[&str], request: &str) -> String {
        String::from_utf8(redaction(pointers).request(request.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn request_is_shown_without_the_values_at_the_pointers() {
        let order = r#"{"card":{"number":"4111","cvv":123},"to":[{"email":"a@x"},{"email":"b@x","name":"Bo"}],"qty":1}"#;
        for (pointers, request, expected) in [
            (
                &["/card/number"][..],
                order,
                r#"{"card":{"number":"[redacted]","cvv":123},"to":[{"email":"a@x"},{"email":"b@x","name":"Bo"}],"qty":1}"#,
            ),
            (
                &["/card"],
                order,
                r#"{"card":"[redacted]","to":[{"email":"a@x"},{"email":"b@x","name":"Bo"}],"qty":1}"#,
            ),
            (
                &["/to/*/email"],
                order,
                r#"{"card":{"number":"4111","cvv":123},"to":[{"email":"[redacted]"},{"email":"[redacted]","name":"Bo"}],"qty":1}"#,
            ),
            (
                &["/to/1/email", "/card/*"],
                order,
                r#"{"card":{"number":"[redacted]","cvv":"[redacted]"},"to":[{"email":"a@x"},{"email":"[redacted]","name":"Bo"}],"qty":1}"#,
            ),
            // Numbers keep their digits, and members their order.
            (
                &["/a"],
                r#"{ "z": 9007199254740993, "n": 1.10e5, "a": null }"#,
                r#"{"z":9007199254740993,"n":1.10e5,"a":"[redacted]"}"#,
            ),
            (&["/a~1b"], r#"{"a/b":1,"a":{"b":2}}"#, r#"{"a/b":"[redacted]","a":{"b":2}}"#),
            // A document without anything to hide keeps its bytes.
            (&["/b", "/a/0"], "{ \"a\": {\"0x\": 1} }", "{ \"a\": {\"0x\": 1} }"),
            (&[], "not JSON", "not JSON"),
            // What is not JSON, or ambiguous, cannot be searched.
            (&["/a"], "card=4111", "[redacted]"),
            (&["/a"], r#"{"a":1,"a":2}"#, "[redacted]"),
        ] {
            assert_eq!(shown(pointers, request), expected, "{pointers:?} {request}");
        }
    }

    #[test]
    fn text_is_shown_without_the_values_of_the_request() {
        let pointers = ["/name", "/card/number", "/card/cvv", "/email"];
        let request = r#"{"name":"ann","card":{"number":4111111111111111,"cvv":"12"},"email":"ann@example.com","qty":12}"#;
        for (text, expected) in [
            ("402: no card 4111111111111111!", "402: no card [redacted]!"),
            ("card41111111111111110", "card[redacted]0"),
            ("line 12 of 120, x12", "line [redacted] of 120, x12"),
            ("ann@example.com, ann@example.com", "[redacted], [redacted]"),
            (r#"402: {"email":"x@y","qty":3}"#, r#"402: {"email":"[redacted]","qty":3}"#),
            (
                r#"402: {"error":"ann@example.com is unknown","n":[4111111111111111]}"#,
                r#"402: {"error":"[redacted] is unknown","n":["[redacted]"]}"#,
            ),
            (r#"402: {"qty":3}"#, r#"402: {"qty":3}"#),
            (r#"402 ann@example.com: {"qty":3}"#, r#"402 [redacted]: {"qty":3}"#),
            (r#"402: {"email":"x@y","erro"#, "402: [redacted]"),
            ("ann@example.com, ann", "[redacted], [redacted]"),
            ("nothing to hide", "nothing to hide"),
        ] {
            let redaction = redaction(&pointers);
            let redactor = redaction.of_request(request.as_bytes());
            let once = redactor.text(text);
            assert_eq!(once, expected, "{text}");
            assert_eq!(redactor.text(&once), expected, "again");
        }
    }

    #[test]
    fn hidden_values_are_hidden_as_urls_and_html_write_them() {
        let redaction = redaction(&["/email", "/name"]);
        let redactor = redaction.of_request(br#"{"email":"a+b@example.com","name":"O'Neil & \"Sons\" <x>"}"#);
        for text in [
            "GET /?to=a%2Bb%40example.com",
            "GET /?to=a%2bb%40example.com",
            "GET /?by=O%27Neil%20%26%20%22Sons%22%20%3Cx%3E",
            "GET /?by=O'Neil%20%26%20%22Sons%22%20%3Cx%3E",
            "GET /?by=O%27Neil+%26+%22Sons%22+%3Cx%3E",
            "GET /?by=o: O&#39;Neil &amp; &quot;Sons&quot; &lt;x&gt;",
            "GET /?by=o: O'Neil &amp; \"Sons\" &lt;x&gt;",
            "GET /?by=o: O&#x27;Neil &amp; &quot;Sons&quot; &lt;x&gt;",
        ] {
            let shown = redactor.text(text);
            assert!(
                shown.ends_with(REDACTED) && !shown.contains("Sons") && !shown.contains("example"),
                "{shown}"
            );
        }
    }

    #[test]
    fn digest_of_a_redacted_request_is_hidden() {
        let digest = || "sha256:00".to_owned();
        assert_eq!(redaction(&["/a"]).of_stored().digest(digest()), REDACTED);
        assert_eq!(Redaction::NONE.of_stored().digest(digest()), digest());
    }

    #[test]
    fn what_cannot_be_searched_is_hidden() {
        let redaction = redaction(&["/a"]);
        assert_eq!(redaction.of_request(b"a=1").text("1 is wrong"), REDACTED);
        let many: Vec<String> = (0..=MAX_SECRETS).map(|number| number.to_string()).collect();
        let many = format!(r#"{{"a":[{}]}}"#, many.join(","));
        assert_eq!(redaction.of_request(many.as_bytes()).text("ok"), REDACTED);
        assert_eq!(*redaction.of_stored().response(&[0xff, b'a']), *REDACTED.as_bytes());
        assert_eq!(*redaction.of_stored().response(br#"{"a":1}"#), *br#"{"a":"[redacted]"}"#);
        assert_eq!(Redaction::NONE.of_request(b"a=1").text("1 is wrong"), "1 is wrong");
    }

    #[test]
    fn edited_request_gets_its_hidden_values_back() {
        let redaction = redaction(&["/card/number", "/to/*/email"]);
        let original =
            br#"{"card":{"number":9007199254740993},"to":[{"email":"a@x"},{"email":"b@x"}],"qty":1}"#;
        let hidden = String::from_utf8(redaction.request(original).into_owned()).unwrap();
        let edited = hidden.replace(r#""qty":1"#, r#""qty":2"#);
        let restored = redaction.restore(edited.as_bytes(), original).unwrap();
        let expected =
            br#"{"card":{"number":9007199254740993},"to":[{"email":"a@x"},{"email":"b@x"}],"qty":2}"#;
        assert_eq!(*restored, *expected);
        let new = br#"{ "card": {"number":7}, "note":"[redacted]" }"#;
        assert_eq!(*redaction.restore(new, original).unwrap(), *new, "nothing at a pointer is hidden");
        let third = br#"{"to":[{},{},{"email":"[redacted]"}]}"#;
        assert_eq!(redaction.restore(third, original), Err(NothingToRestore));
        assert_eq!(*redaction.restore(b"text", original).unwrap(), *b"text");
    }

    #[test]
    fn pointer_overlaps_what_it_contains_and_what_contains_it() {
        let redaction = redaction(&["/card/number", "/to/*/email"]);
        for (pointer, expected) in [
            ("/card/number", true),
            ("/card", true),
            ("/card/number/0", true),
            ("/to/3/email", true),
            ("/to", true),
            ("/card/cvv", false),
            ("/to/3/name", false),
            ("/qty", false),
        ] {
            assert_eq!(redaction.overlaps(&Pointer::parse(pointer).unwrap()), expected, "{pointer}");
        }
    }

    #[test]
    fn wrong_pointers_are_refused_by_name() {
        let error = Redaction::parse(&["/a", "card"]).unwrap_err();
        assert_eq!(error.to_string(), "`card` is not a JSON pointer: a pointer must begin with `/`");
        let many = vec!["/a"; MAX_REDACTED + 1];
        assert_eq!(Redaction::parse(&many), Err(RedactionError::TooMany { count: 65 }));
    }

    #[test]
    fn secrets_are_not_in_debug_output() {
        let redaction = redaction(&["/a"]);
        let redactor = redaction.of_request(br#"{"a":"s3cret"}"#);
        assert!(!format!("{redactor:?}").contains("s3cret"));
    }
}
