//! JSON, written: just enough for a report.

use ichido_core::json::write_string;

/// A value to be written.
pub(super) enum Json {
    Text(String),
    Whole(usize),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<usize> for Json {
    fn from(whole: usize) -> Self {
        Self::Whole(whole)
    }
}

impl Json {
    /// The text, indented by two spaces a level, with a line feed at its end.
    pub(super) fn text(&self) -> String {
        let mut out = Vec::new();
        self.write(0, &mut out);
        out.push(b'\n');
        // Strings were UTF-8 and stay so.
        String::from_utf8_lossy(&out).into_owned()
    }

    fn write(&self, depth: usize, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => write_string(text, out),
            Self::Whole(whole) => out.extend_from_slice(whole.to_string().as_bytes()),
            Self::List(values) => {
                write_all(*b"[]", values, depth, out, |value, out| value.write(depth + 1, out));
            }
            Self::Object(members) => write_all(*b"{}", members, depth, out, |(name, value), out| {
                write_string(name, out);
                out.extend_from_slice(b": ");
                value.write(depth + 1, out);
            }),
        }
    }
}

fn write_all<T>(
    [open, close]: [u8; 2],
    all: &[T],
    depth: usize,
    out: &mut Vec<u8>,
    write: impl Fn(&T, &mut Vec<u8>),
) {
    let line = |depth: usize, out: &mut Vec<u8>| {
        out.push(b'\n');
        out.resize(out.len() + 2 * depth, b' ');
    };
    out.push(open);
    for (index, one) in all.iter().enumerate() {
        if index != 0 {
            out.push(b',');
        }
        line(depth + 1, out);
        write(one, out);
    }
    if !all.is_empty() {
        line(depth, out);
    }
    out.push(close);
}
