//! The strict reader: the grammar of RFC 8259; anything ambiguous is refused.
//!
//! Guarantee: a text that passes has one value, whatever library reads it afterwards. The tape holds the members of
//! every object sorted and without repeats.

use super::tape::{Tape, TapeNode, TextSpan};
use super::{JsonError, JsonErrorKind, MAX_DEPTH, names, number, string};

/// Reads one value that spans the whole text.
pub(super) fn read(text: &str) -> Result<Tape, JsonError> {
    let mut parser = Parser { text, bytes: text.as_bytes(), at: 0, tape: Tape::default(), names: Vec::new() };
    parser.value(0)?;
    parser.skip_space();
    match parser.peek() {
        None => Ok(parser.tape),
        Some(_) => JsonErrorKind::TrailingContent.at(parser.at),
    }
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// The next byte to read.
    at: usize,
    tape: Tape,
    /// The names seen so far in every open object, the outermost first.
    names: Vec<u32>,
}

impl Parser<'_> {
    /// Reads a value nested in `depth` arrays and objects.
    fn value(&mut self, depth: usize) -> Result<(), JsonError> {
        self.skip_space();
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b't') => self.literal("true", TapeNode::Bool(true)),
            Some(b'f') => self.literal("false", TapeNode::Bool(false)),
            Some(b'n') => self.literal("null", TapeNode::Null),
            Some(b'N' | b'I') if number::is_not_finite(&self.bytes[self.at..]) => {
                JsonErrorKind::NotFinite.at(self.at)
            }
            Some(b'.') => JsonErrorKind::ExpectedDigit.at(self.at),
            Some(_) => JsonErrorKind::ExpectedValue.at(self.at),
            None if depth == 0 => JsonErrorKind::Empty.at(self.at),
            None => JsonErrorKind::UnexpectedEnd.at(self.at),
        }
    }

    fn array(&mut self, depth: usize) -> Result<(), JsonError> {
        let array = self.open(depth)?;
        self.list(b']', JsonErrorKind::ExpectedCommaOrBracket, |parser| parser.value(depth + 1))?;
        self.tape.close_array(array);
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<(), JsonError> {
        let object = self.open(depth)?;
        let names_start = self.names.len();
        self.list(b'}', JsonErrorKind::ExpectedCommaOrBrace, |parser| parser.member(depth))?;
        let names = &mut self.names[names_start..];
        if let Err(repeat) = names::sort(self.text, &self.tape, names) {
            return JsonErrorKind::DuplicateMember.at(self.tape.position(repeat));
        }
        self.tape.close_object(object, names);
        self.names.truncate(names_start);
        Ok(())
    }

    /// Reads the contents of an opened bracket and the closing one.
    ///
    /// `fault` is the error for anything else after an item.
    fn list(
        &mut self,
        close: u8,
        fault: JsonErrorKind,
        item: impl Fn(&mut Self) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        self.skip_space();
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(());
        }
        loop {
            item(self)?;
            self.skip_space();
            if self.peek() == Some(close) {
                self.at += 1;
                return Ok(());
            }
            self.expect(b',', fault)?;
        }
    }

    fn member(&mut self, depth: usize) -> Result<(), JsonError> {
        self.skip_space();
        if self.peek() != Some(b'"') {
            return self.expect(b'"', JsonErrorKind::ExpectedName);
        }
        let name = self.string()?;
        self.names.push(name);
        self.skip_space();
        self.expect(b':', JsonErrorKind::ExpectedColon)?;
        self.value(depth + 1)
    }

    /// Consumes this byte, or returns an error.
    fn expect(&mut self, byte: u8, fault: JsonErrorKind) -> Result<(), JsonError> {
        match self.peek() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            Some(_) => fault.at(self.at),
            None => JsonErrorKind::UnexpectedEnd.at(self.at),
        }
    }

    /// Consumes an opening bracket and reserves a node on the tape for it.
    fn open(&mut self, depth: usize) -> Result<u32, JsonError> {
        if depth == MAX_DEPTH {
            return JsonErrorKind::TooDeep.at(self.at);
        }
        self.at += 1;
        Ok(self.tape.push(TapeNode::Null))
    }

    fn string(&mut self) -> Result<u32, JsonError> {
        let start = self.at;
        let (end, escaping) = string::scan(self.bytes, start)?;
        self.at = end;
        Ok(self.tape.push(TapeNode::String { span: TextSpan::new(start, end), escaping }))
    }

    fn number(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        let (end, normal) = number::scan(self.bytes, start)?;
        self.at = end;
        self.tape.push(TapeNode::Number { span: TextSpan::new(start, end), normal });
        Ok(())
    }

    fn literal(&mut self, word: &str, node: TapeNode) -> Result<(), JsonError> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return JsonErrorKind::ExpectedValue.at(self.at);
        }
        self.at += word.len();
        self.tape.push(node);
        Ok(())
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}
