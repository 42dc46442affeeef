//! Parses a file's bytes into a [`Boundary`], or into all its errors, each with its line and column.

use ichido_core::json::{Document, JsonError, JsonErrorKind, LineColumn};

use super::member::{FromJson, InvalidValue, LocatedValue, MisspelledMember, ReadContext, Schema};
use super::model::{Crossing, Members, Name, Party, Traffic, applies, malformed_names, traffic};

/// The largest file that is read: a boundary file has a few kilobytes.
pub const MAX_BYTES: usize = 1 << 20;

/// One parsed boundary file.
#[derive(Clone, PartialEq, Eq)]
pub struct Boundary {
    file: String,
    text: String,
    name: Name,
    members: Members,
    unknown: Vec<String>,
    misspelled: Vec<MisspelledMember>,
}

/// The location of a value, or of a missing value, in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The file, as named in [`Boundary::read`].
    pub file: String,
    /// The line and column of the value, or of the nearest one around it if it is missing.
    pub at: LineColumn,
    /// The JSON pointer to the value, whether it exists or not.
    pub pointer: String,
}

/// A file that is not a valid boundary file, displayed as `file:line:column: what is wrong`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{at}: {kind}")]
pub struct ReadError {
    /// The file, as named in [`Boundary::read`].
    pub file: String,
    /// Where it is wrong.
    pub at: LineColumn,
    /// What is wrong.
    pub kind: ReadErrorKind,
}

/// Everything that is wrong with a file that is not a valid boundary file, from its beginning on; at least one error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadErrors(Vec<ReadError>);

impl ReadErrors {
    /// Returns the errors.
    pub fn iter(&self) -> std::slice::Iter<'_, ReadError> {
        self.0.iter()
    }
}

impl IntoIterator for ReadErrors {
    type Item = ReadError;
    type IntoIter = std::vec::IntoIter<ReadError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a ReadErrors {
    type Item = &'a ReadError;
    type IntoIter = std::slice::Iter<'a, ReadError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Writes one error on each line.
impl std::fmt::Display for ReadErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for ReadErrors {}

/// Why a file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadErrorKind {
    /// Larger than [`MAX_BYTES`].
    #[error("the file is larger than {MAX_BYTES} bytes; a boundary file has a few kilobytes")]
    TooLarge,
    /// Not JSON, nested too deep, or with a repeated member.
    #[error("{0}")]
    NotJson(JsonErrorKind),
    /// A value that its member does not accept.
    #[error("{}: {what}", render_pointer(.pointer))]
    InvalidValue {
        /// The JSON pointer to it.
        pointer: String,
        /// What is wrong with it.
        what: String,
    },
    /// `boundary` is missing.
    #[error("the member `boundary` is missing; add \"boundary\" with one of {}", Name::WORDS.join(", "))]
    NoName,
}

impl ReadErrorKind {
    /// Returns the JSON pointer to the invalid value; empty for the whole file.
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
    /// Parses a file that messages call `file`.
    ///
    /// It reads at most [`MAX_BYTES`] bytes.
    pub fn read(file: &str, bytes: &[u8]) -> Result<Self, ReadErrors> {
        let refuse = |position: usize, kind: ReadErrorKind| ReadError {
            file: file.to_owned(),
            at: LineColumn::new(bytes, position),
            kind,
        };
        let document = Document::parse(bytes, MAX_BYTES).map_err(|JsonError { position, fault }| {
            let is_too_large = matches!(fault, JsonErrorKind::TooLarge { .. });
            let kind = if is_too_large { ReadErrorKind::TooLarge } else { ReadErrorKind::NotJson(fault) };
            ReadErrors(vec![refuse(position, kind)])
        })?;
        let (members, ReadContext { unknown, misspelled, mut invalid }) = read_members(&document);
        // By position, because people read a file from its beginning on.
        invalid.sort_by_key(|one| one.position);
        let has_invalid_name = invalid.iter().any(|one| one.pointer.is_empty() || one.pointer == "/boundary");
        let mut errors: Vec<ReadError> = invalid
            .into_iter()
            .map(|InvalidValue { position, pointer, what }| {
                refuse(position, ReadErrorKind::InvalidValue { pointer, what })
            })
            .collect();
        match members.boundary {
            Some(name) if errors.is_empty() => {
                // It was parsed as UTF-8, so nothing is replaced.
                let text = String::from_utf8_lossy(bytes).into_owned();
                return Ok(Self { file: file.to_owned(), text, name, members, unknown, misspelled });
            }
            None if !has_invalid_name => {
                errors.insert(0, refuse(document.root().position(), ReadErrorKind::NoName));
            }
            Some(_) | None => (),
        }
        Err(ReadErrors(errors))
    }

    /// Returns the file's name in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the file's text, including unknown members.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns which boundary it is about.
    pub const fn name(&self) -> Name {
        self.name
    }

    /// Returns JSON pointers to unknown members, which nothing reads.
    pub fn unknown_members(&self) -> &[String] {
        &self.unknown
    }

    /// Returns the unknown members whose names are almost known ones.
    pub fn misspelled_members(&self) -> &[MisspelledMember] {
        &self.misspelled
    }

    /// Returns whether `party` passes a header of a request or a response.
    ///
    /// A header passes if no list covers it.
    ///
    /// For responses the crossing makes no difference.
    pub fn passes(&self, party: Party, crossing: Crossing, of: Traffic, header: &str) -> bool {
        // Both ends of a boundary drop these.
        let is_hop_by_hop = self.headers.drop_hop_by_hop.drops(header);
        let lists = self.headers.directions.iter();
        !is_hop_by_hop
            && lists
                .filter(|(direction, _)| traffic(direction, self.name) == of)
                .filter(|(direction, _)| match of {
                    Traffic::Requests => applies(direction, self.name, party, crossing),
                    Traffic::Responses => {
                        let arrives = applies(direction, self.name, party, Crossing::Arriving);
                        arrives || applies(direction, self.name, party, Crossing::Leaving)
                    }
                })
                .all(|(_, lists)| lists.passes(header))
    }
}

/// Returns every member of the dialect, `boundary` first.
pub fn schema() -> Schema {
    Members::schema()
}

/// Gives access to the file's members as if the boundary were the members: `boundary.http.retry`.
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

/// Reads all members, with everything that is wrong in the context.
fn read_members(document: &Document<'_>) -> (Members, ReadContext) {
    let mut context = ReadContext::default();
    let root = LocatedValue::root(document.root());
    let mut members = Members::read(root, &mut context).unwrap_or_else(|invalid| {
        context.refuse(invalid);
        Members::default()
    });
    members.derive_methods();
    let list = |pointer: &str| pointer.rsplit_once('/').map(|(list, _)| list.to_owned());
    // An entry that could not be read would shift the indices of those after it.
    let unread: Vec<_> = context.invalid.iter().map(|one| list(&one.pointer)).collect();
    for (pointer, what) in malformed_names(&members) {
        if !unread.contains(&list(&pointer)) {
            context.refuse(InvalidValue { position: position(document, &pointer), pointer, what });
        }
    }
    (members, context)
}

/// Returns the position of the value at the pointer, or of the nearest one around it.
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

/// Finds locations in one file.
pub(super) struct Locator<'a> {
    boundary: &'a Boundary,
    /// Never `None`: the text was parsed before.
    document: Option<Document<'a>>,
}

impl<'a> Locator<'a> {
    pub(super) fn new(boundary: &'a Boundary) -> Self {
        Self { boundary, document: Document::parse(boundary.text.as_bytes(), MAX_BYTES).ok() }
    }

    /// Returns the location of the pointer, whether its value exists or not.
    pub(super) fn find(&self, pointer: &str) -> Location {
        let position = self.document.as_ref().map_or(0, |document| position(document, pointer));
        Location {
            file: self.boundary.file.clone(),
            at: LineColumn::new(self.boundary.text.as_bytes(), position),
            pointer: pointer.to_owned(),
        }
    }
}

impl Boundary {
    /// Returns the location of the value at the JSON pointer, whether it exists or not.
    pub fn place(&self, pointer: &str) -> Location {
        Locator::new(self).find(pointer)
    }
}
