//! The labels of a message: values in its body by which people find and recognize it.
//!
//! Guarantee: a label never stops a message. A correlation id is visible text of bounded length, or is left out; the store cuts an
//! item.

// Spec: D13, E3.

use std::borrow::Cow;

use ichido_core::json::{Document, JsonValue, Pointer, Redaction};
use ichido_core::text;
use ichido_store::message::limits::MAX_TRACE_ID_BYTES;

/// Where a body has its correlation id, unless the queue says otherwise.
const TRACE_ID_DEFAULT: &str = "/trace_id";
/// Where a body names its item, unless the queue says otherwise; the first that is there.
const ITEM_DEFAULTS: [&str; 2] = ["/title", "/url"];

/// Where the bodies of a queue have their labels. The default applies to a queue without settings.
#[derive(Debug)]
pub(crate) struct LabelPointers {
    trace_id: Option<Pointer>,
    item: Vec<Pointer>,
}

/// The labels of one message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels {
    pub(crate) trace_id: Option<String>,
    pub(crate) item: Option<String>,
}

impl Default for LabelPointers {
    fn default() -> Self {
        Self::new(Pointer::parse(TRACE_ID_DEFAULT).ok(), None)
    }
}

impl LabelPointers {
    /// Creates pointers; without one for the item, the defaults.
    pub(crate) fn new(trace_id: Option<Pointer>, item: Option<Pointer>) -> Self {
        let defaults = || ITEM_DEFAULTS.iter().filter_map(|text| Pointer::parse(text).ok()).collect();
        Self { trace_id, item: item.map_or_else(defaults, |item| vec![item]) }
    }

    /// Removes pointers to redacted values: labels are shown.
    pub(crate) fn without(mut self, redact: &Redaction) -> Self {
        self.trace_id = self.trace_id.filter(|pointer| !redact.overlaps(pointer));
        self.item.retain(|pointer| !redact.overlaps(pointer));
        self
    }

    /// Reads the labels of a body. One that is not JSON has none.
    pub(crate) fn read(&self, document: Option<&Document<'_>>) -> Labels {
        let Some(document) = document else { return Labels::default() };
        let trace_id = self.trace_id.as_ref().and_then(|pointer| scalar(document.at(pointer)?));
        let mut items = self.item.iter().filter_map(|pointer| scalar(document.at(pointer)?));
        Labels {
            trace_id: trace_id.filter(|text| is_trace_id(text)).map(Cow::into_owned),
            item: items.next().map(Cow::into_owned),
        }
    }
}

fn is_trace_id(text: &str) -> bool {
    text.len() <= MAX_TRACE_ID_BYTES && text::visible(text) == text
}

/// Returns the text of a string or a number, unless it is empty.
fn scalar<'a>(value: JsonValue<'_, 'a>) -> Option<Cow<'a, str>> {
    let text = value.as_str().or_else(|| value.as_number_text().map(Cow::Borrowed))?;
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pointers: &LabelPointers, body: &str) -> (Option<String>, Option<String>) {
        let document = Document::parse(body.as_bytes(), body.len()).ok();
        let Labels { trace_id, item } = pointers.read(document.as_ref());
        (trace_id, item)
    }

    #[test]
    fn labels_are_read_at_their_pointers() {
        let some = |text: &str| Some(text.to_owned());
        let default = LabelPointers::default();
        let body = r#"{"trace_id":"do-outbox-01JB4A","url":"https://a.test/","title":"A title","id":7}"#;
        assert_eq!(labels(&default, body), (some("do-outbox-01JB4A"), some("A title")));
        let untitled = r#"{"title":"","url":"https://a.test/"}"#;
        assert_eq!(labels(&default, untitled), (None, some("https://a.test/")));
        for without in ["{}", "not JSON", r#"{"trace_id":null,"title":[]}"#] {
            assert_eq!(labels(&default, without), (None, None), "{without}");
        }
        let own = LabelPointers::new(Pointer::parse("/id").ok(), Pointer::parse("/id").ok());
        assert_eq!(labels(&own, body), (some("7"), some("7")));
    }

    #[test]
    fn invisible_or_long_trace_ids_are_left_out() {
        let default = LabelPointers::default();
        let long = "x".repeat(MAX_TRACE_ID_BYTES + 1);
        for trace_id in ["a\\nb", "\\u202e", &long] {
            let body = format!(r#"{{"trace_id":"{trace_id}"}}"#);
            assert_eq!(labels(&default, &body).0, None, "{body}");
        }
    }
}
