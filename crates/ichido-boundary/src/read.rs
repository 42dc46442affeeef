//! From a file's bytes to a [`Boundary`], or to one error with its line and column.

use ichido_core::json::{Document, JsonError, JsonErrorKind, LineColumn};

use super::member::{
    FromJson, InvalidValue, LocatedValue, MisspelledMember, NamedValues, ReadContext, Schema,
};
use super::model::{Crossing, Members, Name, Party, Traffic, applies, malformed_name, traffic};

/// The largest file that is read: a boundary file has a few kilobytes.
pub const BYTES_MAX: usize = 1 << 20;

/// One boundary file, read.
#[derive(Clone, PartialEq, Eq)]
pub struct Boundary {
    file: String,
    text: String,
    name: Name,
    members: Members,
    unknown: Vec<String>,
    misspelled: Vec<MisspelledMember>,
}

/// Where something stands, or should stand, in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file, as it was named to [`Boundary::read`].
    pub file: String,
    /// The line and column of the value, or of the nearest one around the place where it is missing.
    pub at: LineColumn,
    /// The JSON pointer to the value, there or missing.
    pub pointer: String,
}

/// A file that is no boundary file. Shown as `file:line:column: what is wrong`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{at}: {kind}")]
pub struct ReadError {
    /// The file, as it was named to [`Boundary::read`].
    pub file: String,
    /// Where it is wrong.
    pub at: LineColumn,
    /// What is wrong.
    pub kind: ReadErrorKind,
}

/// Why a file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadErrorKind {
    /// Over [`BYTES_MAX`].
    #[error("the file is larger than {BYTES_MAX} bytes; a boundary file has a few thousand")]
    TooLarge,
    /// Not JSON, nested too deep, or with a member twice.
    #[error("{0}")]
    NotJson(JsonErrorKind),
    /// A value that does not fit its place.
    #[error("{}: {what}", render_pointer(.pointer))]
    InvalidValue {
        /// The JSON pointer to it.
        pointer: String,
        /// What is wrong with it.
        what: String,
    },
    /// No `boundary`.
    #[error("the file does not say which boundary it is about; add \"boundary\": one of {}", Name::WORDS.join(", "))]
    NoName,
}

impl ReadErrorKind {
    /// The JSON pointer to the value at fault; empty for the whole file.
    pub fn pointer(&self) -> &str {
        match self {
            Self::InvalidValue { pointer, .. } => pointer,
            Self::TooLarge | Self::NotJson(_) | Self::NoName => "",
        }
    }
}

fn render_pointer(pointer: &str) -> String {
    if pointer.is_empty() { "the file".to_owned() } else { pointer.escape_debug().to_string() }
}

impl Boundary {
    /// Reads a file that is called `file` in messages.
    ///
    /// It takes bytes, and looks at no more than [`BYTES_MAX`] of them.
    pub fn read(file: &str, bytes: &[u8]) -> Result<Self, ReadError> {
        let refuse = |position: usize, kind: ReadErrorKind| ReadError {
            file: file.to_owned(),
            at: LineColumn::of(bytes, position),
            kind,
        };
        let document = Document::parse(bytes, BYTES_MAX).map_err(|JsonError { position, fault }| {
            let is_too_large = matches!(fault, JsonErrorKind::TooLarge { .. });
            refuse(
                position,
                if is_too_large { ReadErrorKind::TooLarge } else { ReadErrorKind::NotJson(fault) },
            )
        })?;
        let mut context = ReadContext::default();
        let members = Members::read(LocatedValue::root(document.root()), &mut context).map_err(
            |InvalidValue { position, pointer, what }| {
                refuse(position, ReadErrorKind::InvalidValue { pointer, what })
            },
        )?;
        let name =
            members.boundary.ok_or_else(|| refuse(document.root().position(), ReadErrorKind::NoName))?;
        if let Some((pointer, what)) = malformed_name(&members) {
            return Err(refuse(position(&document, &pointer), ReadErrorKind::InvalidValue { pointer, what }));
        }
        // It was read as UTF-8, so nothing is replaced.
        let text = String::from_utf8_lossy(bytes).into_owned();
        let ReadContext { unknown, misspelled } = context;
        Ok(Self { file: file.to_owned(), text, name, members, unknown, misspelled })
    }

    /// The file's name in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The file's text, with all that the dialect does not know.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Which boundary it is about.
    pub const fn name(&self) -> Name {
        self.name
    }

    /// JSON pointers to members that the dialect does not know and nothing reads.
    pub fn unknown_members(&self) -> &[String] {
        &self.unknown
    }

    /// The unknown members that are spelled almost like one that is known.
    pub fn misspelled_members(&self) -> &[MisspelledMember] {
        &self.misspelled
    }

    /// Whether `party` lets a header of a request or an answer cross. What no list is about, passes.
    ///
    /// For answers the crossing makes no difference.
    pub fn passes(&self, party: Party, crossing: Crossing, of: Traffic, header: &str) -> bool {
        let lists = self.headers.iter().flat_map(NamedValues::iter);
        lists
            .filter(|(direction, _)| traffic(direction) == of)
            .filter(|(direction, _)| match of {
                Traffic::Requests => applies(direction, self.name, party, crossing),
                Traffic::Answers => {
                    let arrives = applies(direction, self.name, party, Crossing::Arriving);
                    arrives || applies(direction, self.name, party, Crossing::Leaving)
                }
            })
            .all(|(_, lists)| lists.passes(header))
    }
}

/// Every member of the dialect, `boundary` first.
pub fn schema() -> Schema {
    Members::schema()
}

/// What the file says is read as if the boundary were its members: `boundary.http.retry`.
impl std::ops::Deref for Boundary {
    type Target = Members;

    fn deref(&self) -> &Members {
        &self.members
    }
}

ichido_core::debug_only! {
    /// Without the text, which would hide the rest.
    Boundary as boundary { file, name, members, unknown }
}

/// Where the value stands that the pointer leads to, or the nearest one around it.
fn position(document: &Document<'_>, pointer: &str) -> usize {
    let mut value = document.root();
    for token in pointer.split('/').skip(1) {
        let name = token.replace("~1", "/").replace("~0", "~");
        let next = value.get(&name).or_else(|| value.elements().nth(token.parse().ok()?));
        let Some(next) = next else { break };
        value = next;
    }
    value.position()
}

/// Finds places in one file.
pub(super) struct Locator<'a> {
    boundary: &'a Boundary,
    /// `None` never: the text was read before.
    document: Option<Document<'a>>,
}

impl<'a> Locator<'a> {
    pub(super) fn new(boundary: &'a Boundary) -> Self {
        Self { boundary, document: Document::parse(boundary.text.as_bytes(), BYTES_MAX).ok() }
    }

    /// The place that the pointer leads to, or would lead to if the member were there.
    pub(super) fn find(&self, pointer: &str) -> Place {
        let position = self.document.as_ref().map_or(0, |document| position(document, pointer));
        Place {
            file: self.boundary.file.clone(),
            at: LineColumn::of(self.boundary.text.as_bytes(), position),
            pointer: pointer.to_owned(),
        }
    }
}

impl Boundary {
    /// Where the value that the JSON pointer leads to stands, or would stand if it were there.
    pub fn place(&self, pointer: &str) -> Place {
        Locator::new(self).find(pointer)
    }
}
