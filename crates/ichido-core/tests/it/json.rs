//! JSON, chapter by chapter: what is refused and where, and the one spelling of everything else.

mod growth;
mod lookup;
mod members;
mod numbers;
mod properties;
mod refusals;
mod rfc8785;
mod strings;

use ichido_core::json::{
    CanonicalForm, Document, JsonError, JsonErrorKind, LeaveOut, Numbers, Pointer, Unicode,
};

const MAX_BYTES: usize = 1 << 20;

const NO_EXPONENT: CanonicalForm = CanonicalForm {
    numbers: Numbers::ExactNoExponent,
    unicode: Unicode::AsWritten,
    leave_out: LeaveOut::NONE,
};
const DOUBLE: CanonicalForm =
    CanonicalForm { numbers: Numbers::Double, unicode: Unicode::AsWritten, leave_out: LeaveOut::NONE };
const NFC: CanonicalForm =
    CanonicalForm { numbers: Numbers::Exact, unicode: Unicode::Nfc, leave_out: LeaveOut::NONE };

fn try_canonical(text: &[u8], form: &CanonicalForm) -> Result<String, JsonError> {
    let bytes = Document::parse(text, MAX_BYTES)?.canonical(form)?;
    Ok(String::from_utf8(bytes).expect("canonical JSON is UTF-8"))
}

#[track_caller]
fn canonical_in(form: &CanonicalForm, text: &str) -> String {
    try_canonical(text.as_bytes(), form).unwrap_or_else(|error| panic!("{text:.80}: {error}"))
}

#[track_caller]
fn canonical(text: &str) -> String {
    canonical_in(&CanonicalForm::default(), text)
}

/// Checks that the reader, or the default form, refuses `text` with `fault` at `position`.
#[track_caller]
fn refused(text: impl AsRef<[u8]>, position: usize, fault: JsonErrorKind) {
    refused_in(&CanonicalForm::default(), text, position, fault);
}

#[track_caller]
fn refused_in(form: &CanonicalForm, text: impl AsRef<[u8]>, position: usize, fault: JsonErrorKind) {
    let text = text.as_ref();
    let shown = String::from_utf8_lossy(&text[..text.len().min(80)]);
    assert_eq!(try_canonical(text, form), Err(JsonError { position, fault }), "{shown}");
}

fn leaving_out(pointers: &[&str]) -> CanonicalForm {
    let leave_out =
        pointers.iter().map(|text| Pointer::parse(text).expect("the test names a member")).collect();
    CanonicalForm {
        leave_out: LeaveOut::new(leave_out).expect("the test names few"),
        ..CanonicalForm::default()
    }
}
