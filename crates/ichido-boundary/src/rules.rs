//! The rules: what must hold on the key's way, why, and how it is mended.
//!
//! One file for each group; [`rules()`] lists them all in the order of their ids. A check takes a whole [`Way`], so that a rule
//! about one file and a rule about several look alike.

mod adapter;
mod exchange;
mod fingerprint;
mod headers;
mod key;
mod observability;
mod outcome;
mod owner;
mod refusal;
mod retention;
mod retry;
mod time;
mod unreadable;

pub(super) use key::SAFE_METHODS;
pub use unreadable::UNREADABLE;

use super::read::{Boundary, Place, Places, ReadError};
use super::way::{Way, ways};

/// One rule.
pub struct Rule {
    /// Its name, such as `ICH-B020`. It never changes its meaning.
    pub id: &'static str,
    /// How bad it is to break it.
    pub severity: Severity,
    /// The requirements it stands for.
    pub spec: &'static str,
    /// What must hold, in one sentence.
    pub title: &'static str,
    /// What goes wrong otherwise.
    pub why: &'static str,
    /// What to write instead.
    pub mend: &'static str,
    /// A change to the starting set that breaks it, and one that does not.
    pub example: Example,
    check: for<'a> fn(&Way<'a>) -> Vec<Found<'a>>,
}

/// How bad it is to break a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The work could be done twice, or the key get lost: a proxy does not start.
    Error,
    /// Something is harder to see or to use than it should be.
    Warning,
}

/// What to put where in the starting set, to break a rule and to keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// The file.
    pub file: &'static str,
    /// The JSON pointer to the value that is replaced; empty for the whole file.
    pub pointer: &'static str,
    /// A value that breaks the rule.
    pub failing: &'static str,
    /// A value that keeps it.
    pub mended: &'static str,
    /// Files of the starting set that are not given in either case.
    pub without: &'static [&'static str],
}

/// A rule that is broken, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// Where it is broken.
    pub place: Place,
    /// What is wrong there.
    pub what: String,
    /// How it is mended: as the rule says, or, where a change is judged, by putting back what was there.
    pub mend: String,
}

/// What a check found, before its place is looked up.
struct Found<'a> {
    file: &'a Boundary,
    pointer: String,
    what: String,
}

impl<'a> Found<'a> {
    fn at(file: &'a Boundary, pointer: impl Into<String>, what: impl Into<String>) -> Self {
        Self { file, pointer: pointer.into(), what: what.into() }
    }
}

/// A rule and its examples, which stand in files named for it.
macro_rules! declare {
    (
        $id:literal, $severity:ident, $spec:literal, $title:literal,
        why: $why:literal, mend: $mend:literal, example: $file:literal at $pointer:literal
        $(without $without:literal)*, check: $check:expr $(,)?
    ) => {
        $crate::rules::Rule {
            id: $id,
            severity: $crate::rules::Severity::$severity,
            spec: $spec,
            title: $title,
            why: $why,
            mend: $mend,
            example: $crate::rules::Example {
                file: $file,
                pointer: $pointer,
                failing: include_str!(concat!("examples/", $id, ".failing.json")),
                mended: include_str!(concat!("examples/", $id, ".mended.json")),
                without: &[$($without),*],
            },
            check: $check,
        }
    };
}
use declare;

/// All rules but [`UNREADABLE`], group by group in the order of their ids.
const GROUPS: [&[Rule]; 10] = [
    key::RULES,
    headers::RULES,
    retry::RULES,
    fingerprint::RULES,
    outcome::RULES,
    retention::RULES,
    time::RULES,
    owner::RULES,
    adapter::RULES,
    observability::RULES,
];

/// Every rule in the order of its id, [`UNREADABLE`] first.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    std::iter::once(&UNREADABLE).chain(GROUPS.into_iter().flatten())
}

/// The rule of this id; case does not matter.
pub fn rule(id: &str) -> Option<&'static Rule> {
    rules().find(|rule| rule.id.eq_ignore_ascii_case(id))
}

/// Everything that is wrong with these files, alone and together: errors first, and then in the order of file, line,
/// column and rule.
pub fn check(files: &[Boundary]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = ways(files).iter().flat_map(check_way).collect();
    findings.sort_by(|a, b| a.order().cmp(&b.order()));
    findings
}

fn check_way(way: &Way<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in rules() {
        findings.extend((rule.check)(way).into_iter().map(|found| (rule, found)));
    }
    if findings.is_empty() {
        return Vec::new();
    }
    // A file is looked through once, however many findings there are in it.
    let places: Vec<(&Boundary, Places<'_>)> = way.files().map(|file| (file, Places::of(file))).collect();
    let find = |found: &Found<'_>| {
        let file = places.iter().find(|(file, _)| std::ptr::eq(*file, found.file));
        file.map_or_else(|| found.file.place(&found.pointer), |(_, places)| places.find(&found.pointer))
    };
    findings.into_iter().map(|(rule, found)| Finding::new(rule, find(&found), &found.what)).collect()
}

/// The longest that a finding's own words may be: they quote words of the file, which may be of any length.
const WHAT_CHARS_MAX: usize = 400;

impl Finding {
    /// Keeps only words that a terminal may show: no control characters, and not endless.
    pub(super) fn new(rule: &'static Rule, place: Place, what: &str) -> Self {
        let shown = what.chars().take(WHAT_CHARS_MAX);
        let plain = |one: char| if one.is_control() { char::REPLACEMENT_CHARACTER } else { one };
        Self { rule, place, what: shown.map(plain).collect(), mend: rule.mend.to_owned() }
    }

    /// By what findings are sorted.
    pub(super) fn order(&self) -> (Severity, &Place, &'static str, &str) {
        (self.rule.severity, &self.place, self.rule.id, &self.what)
    }
}

/// Two rules are one if they have the same id.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Rule {}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rule({})", self.id)
    }
}

impl From<ReadError> for Finding {
    fn from(error: ReadError) -> Self {
        let ReadError { file, at, fault } = error;
        let pointer = fault.pointer().to_owned();
        Self::new(&UNREADABLE, Place { file, at, pointer }, &fault.to_string())
    }
}
