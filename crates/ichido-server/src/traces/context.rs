//! Parses and formats `traceparent` (W3C Trace Context, level 1).

use std::fmt;

use http::HeaderMap;

/// The name of the header.
const NAME: &str = "traceparent";
/// The flag that says that the trace is recorded.
const SAMPLED: u8 = 1;

/// A position in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) trace: u128,
    pub(super) span: u64,
    flags: u8,
}

impl Context {
    /// Reads the header of a request; `None` if it is missing or invalid.
    pub(super) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all(NAME).iter();
        let (line, None) = (lines.next()?, lines.next()) else { return None };
        Self::parse(line.to_str().ok()?)
    }

    /// Parses `00-<trace>-<span>-<flags>` in lower-case hexadecimal digits; later versions may append more.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let version: u8 = hex(parts.next()?, 2)?;
        let (trace, span) = (hex(parts.next()?, 32)?, hex(parts.next()?, 16)?);
        let flags = hex(parts.next()?, 2)?;
        let ends = parts.next().is_none();
        let is_clear = version != 0xff && (ends || version != 0) && trace != 0 && span != 0;
        is_clear.then_some(Self { trace, span, flags })
    }

    /// Starts a new trace.
    pub(super) fn new_trace() -> Self {
        Self { trace: fastrand::u128(1..), span: fastrand::u64(1..), flags: SAMPLED }
    }

    /// Returns a child span in the same trace.
    pub(super) fn child(self) -> Self {
        Self { span: fastrand::u64(1..), ..self }
    }

    pub(super) const fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }
}

/// Formats the header's value.
impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace, span, flags } = self;
        write!(f, "00-{trace:032x}-{span:016x}-{flags:02x}")
    }
}

/// Parses a number with this many lower-case hexadecimal digits.
fn hex<N: TryFrom<u128>>(text: &str, digits: usize) -> Option<N> {
    let plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_clear = text.len() == digits && text.bytes().all(plain);
    u128::from_str_radix(text, 16).ok().filter(|_| is_clear)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_place_reads_back_and_a_child_stays_in_its_trace() {
        let context = Context::parse(TEXT).expect("it is one");
        assert_eq!(context.to_string(), TEXT);
        let child = context.child();
        assert_eq!((child.trace, child.is_sampled()), (context.trace, true));
        assert_ne!(child.span, context.span);
        assert!(!Context::parse(&TEXT.replace("-01", "-00")).expect("it is one").is_sampled());
        assert_eq!(Context::parse(&Context::new_trace().to_string()).map(Context::is_sampled), Some(true));
    }

    #[test]
    fn invalid_trace_contexts_are_ignored() {
        let later = TEXT.replacen("00", "01", 1) + "-more";
        assert!(Context::parse(&later).is_some());
        for wrong in [
            "",
            "00",
            &TEXT.to_uppercase(),
            &TEXT.replacen("00", "ff", 1),
            &format!("{TEXT}-more"),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
        ] {
            assert_eq!(Context::parse(wrong), None, "{wrong}");
        }
    }
}
