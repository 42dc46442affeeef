//! The canonical writer: one spelling for every value.
//!
//! Guarantee: it writes JSON that reads as the same value, and writing that again in the same form changes nothing.

use std::borrow::Cow;

use super::tape::{Escaping, TapeNode, TextSpan};
use super::{
    CanonicalForm, Document, JsonError, JsonErrorKind, MAX_GROWTH, MAX_NUMBER_DIGITS, Numbers, Unicode,
};
use super::{names, number, string};

/// Returns the canonical bytes of the value at `node` of `document`, in `form`.
pub(super) fn canonical(
    document: &Document<'_>,
    node: u32,
    form: &CanonicalForm,
) -> Result<Vec<u8>, JsonError> {
    let mut writer = Writer {
        document,
        form,
        left_out: form.leave_out.names(document, form.unicode),
        out: Vec::with_capacity(document.text.len()),
        max_out_bytes: document.max_bytes.saturating_mul(MAX_GROWTH).saturating_add(MAX_NUMBER_DIGITS),
    };
    writer.value(node)?;
    // Checked again at the end, so the result depends on the form alone, not on which numbers were rewritten.
    writer.check_growth(document.text.len())?;
    Ok(writer.out)
}

struct Writer<'d, 'a> {
    document: &'d Document<'a>,
    form: &'d CanonicalForm,
    /// The names of members that are not written, in ascending order.
    left_out: Vec<u32>,
    out: Vec<u8>,
    max_out_bytes: usize,
}

impl Writer<'_, '_> {
    fn value(&mut self, node: u32) -> Result<(), JsonError> {
        match self.document.tape.node(node) {
            TapeNode::Null => self.out.extend_from_slice(b"null"),
            TapeNode::Bool(true) => self.out.extend_from_slice(b"true"),
            TapeNode::Bool(false) => self.out.extend_from_slice(b"false"),
            TapeNode::Number { span, normal } => return self.number(span, normal),
            TapeNode::String { span, escaping } => self.string(node, span, escaping),
            TapeNode::Array { after } => return self.array(node, after),
            TapeNode::Object { order, .. } => return self.object(order),
        }
        Ok(())
    }

    fn array(&mut self, node: u32, after: u32) -> Result<(), JsonError> {
        self.out.push(b'[');
        let mut element = node + 1;
        while element < after {
            if element != node + 1 {
                self.out.push(b',');
            }
            self.value(element)?;
            element = self.document.tape.after(element);
        }
        self.out.push(b']');
        Ok(())
    }

    fn object(&mut self, order: u32) -> Result<(), JsonError> {
        let names = self.document.tape.names(order);
        match self.form.unicode {
            Unicode::AsWritten => self.members(names),
            Unicode::Nfc => {
                let names = self.sorted_in_nfc(names)?;
                self.members(&names)
            }
        }
    }

    fn members(&mut self, names: &[u32]) -> Result<(), JsonError> {
        self.out.push(b'{');
        let mut is_first = true;
        for &name in names {
            if self.left_out.binary_search(&name).is_ok() {
                continue;
            }
            if !is_first {
                self.out.push(b',');
            }
            is_first = false;
            self.value(name)?;
            self.out.push(b':');
            self.value(name + 1)?;
        }
        self.out.push(b'}');
        Ok(())
    }

    /// Returns `names`, which are sorted as written, in the order of their normal form.
    fn sorted_in_nfc<'n>(&self, names: &'n [u32]) -> Result<Cow<'n, [u32]>, JsonError> {
        let document = self.document;
        let is_ascii = |&name: &u32| {
            let name = document.text_at(name);
            !name.is_escaped() && name.raw().is_ascii()
        };
        if names.iter().all(is_ascii) {
            return Ok(Cow::Borrowed(names));
        }
        let mut sorted = names.to_vec();
        match names::sort_as(&mut sorted, |name| string::nfc(document.text_at(name).decode())) {
            Ok(()) => Ok(Cow::Owned(sorted)),
            Err(repeat) => JsonErrorKind::DuplicateAfterNfc.at(document.tape.position(repeat)),
        }
    }

    fn string(&mut self, node: u32, span: TextSpan, escaping: Escaping) {
        let spelling = span.slice(self.document.text);
        let is_canonical = match self.form.unicode {
            Unicode::AsWritten => escaping != Escaping::Escaped,
            Unicode::Nfc => escaping != Escaping::Escaped && spelling.is_ascii(),
        };
        if is_canonical {
            self.out.extend_from_slice(spelling.as_bytes());
            return;
        }
        let text = self.document.text_at(node).decode();
        match self.form.unicode {
            Unicode::AsWritten => string::write(&text, &mut self.out),
            Unicode::Nfc => string::write(&string::nfc(text), &mut self.out),
        }
    }

    fn number(&mut self, span: TextSpan, normal: bool) -> Result<(), JsonError> {
        let text = span.slice(self.document.text);
        let position = span.start as usize;
        if normal && (self.form.numbers != Numbers::Double || number::is_short_integer(text)) {
            self.out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        match self.form.numbers {
            Numbers::Exact => number::write_exact(text, position, &mut self.out)?,
            Numbers::ExactNoExponent => {
                number::refuse_exponent(text, position)?;
                number::write_exact(text, position, &mut self.out)?;
            }
            Numbers::Double => number::write_double(text, position, &mut self.out)?,
        }
        self.check_growth(position)
    }

    fn check_growth(&self, position: usize) -> Result<(), JsonError> {
        if self.max_out_bytes < self.out.len() {
            return JsonErrorKind::GrowsTooLong.at(position);
        }
        Ok(())
    }
}
