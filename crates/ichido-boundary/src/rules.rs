//! The rules for hop chains: what must hold, why, and how to fix it.
//!
//! Each group of rules has its own file; [`rules()`] lists them all in the order of their ids. A check takes a whole
//! [`HopChain`], so a rule about one file and a rule about several look alike.

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

pub(super) use key::SAFE_METHODS;

use ichido_core::key::NAMES;

use super::hop_chain::{HopChain, hop_chains};
use super::page::{Rule, Severity};
use super::read::{Boundary, Location, Locator, ReadError};
use super::{Enabled, HOPS_HEADER, Traffic};

/// A broken rule and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// Where it is broken.
    pub place: Location,
    /// What is wrong there.
    pub what: String,
    /// How to fix it.
    ///
    /// As the rule says or, if a change is judged, by reverting it.
    pub mend: String,
}

/// What a check found, before its location is looked up.
pub(super) struct Violation<'a> {
    file: &'a Boundary,
    pointer: String,
    what: String,
}

impl<'a> Violation<'a> {
    fn new(file: &'a Boundary, pointer: impl Into<String>, what: impl Into<String>) -> Self {
        Self { file, pointer: pointer.into(), what: what.into() }
    }
}

/// Collects violations in each owner's guarantees: the pointer within them, and what is wrong.
fn in_guarantees<'a, P: std::fmt::Display, W: Into<String>, F: IntoIterator<Item = (P, W)>>(
    chain: &HopChain<'a>,
    find: impl Fn(&'a Enabled) -> F,
) -> Vec<Violation<'a>> {
    let found = |(file, guarantees, base): (&'a Boundary, &'a Enabled, &str)| {
        let found = find(guarantees).into_iter();
        found.map(|(place, what)| Violation::new(file, format!("{base}/{place}"), what)).collect::<Vec<_>>()
    };
    chain.owners().flat_map(found).collect()
}

/// Finds where a rule is broken.
pub(super) type RuleCheck = for<'a> fn(&HopChain<'a>) -> Vec<Violation<'a>>;

/// Declares a rule from its page in `docs/rules` and its check.
macro_rules! rule {
    ($id:literal, $check:expr) => {
        Rule::new(include_str!(concat!("../../../docs/rules/", $id, ".md")), $check)
    };
}

/// The rule that a file must be readable; [`Boundary::read`] checks it.
pub static UNREADABLE: Rule = rule!("ICH-B000", |_| Vec::new());

/// All other rules, in the order of their ids.
static RULES: [Rule; 58] = [
    rule!("ICH-B001", key::mode_is_declared),
    rule!("ICH-B002", key::key_is_required),
    rule!("ICH-B003", key::missing_key_is_refused),
    rule!("ICH-B004", key::unsafe_methods_change_state),
    rule!("ICH-B005", key::safe_methods_change_nothing),
    rule!("ICH-B006", key::members_are_spelled_right),
    rule!("ICH-B010", |chain| headers::stopped(chain, Traffic::Requests, &NAMES)),
    rule!("ICH-B011", headers::key_passes_cors),
    rule!("ICH-B012", headers::one_spelling_passes_all),
    rule!("ICH-B013", |chain| headers::stopped(chain, Traffic::Requests, &[HOPS_HEADER])),
    rule!("ICH-B014", headers::trace_passes),
    rule!("ICH-B015", headers::lists_name_headers),
    rule!("ICH-B016", headers::answers::pass),
    rule!("ICH-B017", headers::answers::are_exposed),
    rule!("ICH-B018", headers::type_passes),
    rule!("ICH-B020", retry::retries_need_the_key),
    rule!("ICH-B021", retry::hops_retry_post_alone),
    rule!("ICH-B022", retry::statuses_are_repeatable),
    rule!("ICH-B023", retry::retries_are_bounded),
    rule!("ICH-B024", retry::opaque_calls_are_not_repeated),
    rule!("ICH-B030", fingerprint::inputs_are_there),
    rule!("ICH-B031", fingerprint::inputs_are_stable),
    rule!("ICH-B032", fingerprint::hash_is_strong),
    rule!("ICH-B033", fingerprint::normal_form_is_declared),
    rule!("ICH-B034", fingerprint::numbers_are_exact),
    rule!("ICH-B035", fingerprint::large_bodies_are_refused),
    rule!("ICH-B036", fingerprint::inputs_are_read),
    rule!("ICH-B040", outcome::conflicts_are_refused),
    rule!("ICH-B041", outcome::duplicates_are_replayed),
    rule!("ICH-B042", outcome::in_flight_is_reported),
    rule!("ICH-B043", outcome::statuses_differ),
    rule!("ICH-B044", outcome::replayed_headers_are_declared),
    rule!("ICH-B045", outcome::replayed_headers_are_lasting),
    rule!("ICH-B050", retention::ttl_is_declared),
    rule!("ICH-B051", retention::ttl_covers_a_day),
    rule!("ICH-B052", retention::ttl_covers_retries),
    rule!("ICH-B060", time::timeouts_are_declared),
    rule!("ICH-B061", time::attempts_fit_total),
    rule!("ICH-B062", time::attempts_fit_above),
    rule!("ICH-B063", time::wait_fits_above),
    rule!("ICH-B070", owner::only_the_adapter_owns),
    rule!("ICH-B071", owner::the_owner_is_named),
    rule!("ICH-B072", owner::somebody_owns),
    rule!("ICH-B073", owner::echo_is_the_same),
    rule!("ICH-B074", owner::one_file_each),
    rule!("ICH-B075", owner::no_gap),
    rule!("ICH-B076", owner::methods_agree),
    rule!("ICH-B077", owner::guarantees::agree),
    rule!("ICH-B078", owner::guarantees::are_in_the_right_member),
    rule!("ICH-B079", owner::the_owner_is_among_them),
    rule!("ICH-B080", adapter::identity::is_declared),
    rule!("ICH-B081", adapter::operation::are_declared),
    rule!("ICH-B082", adapter::operation::can_be_kept),
    rule!("ICH-B083", adapter::identity::is_not_forged),
    rule!("ICH-B084", adapter::identity::arrives),
    rule!("ICH-B085", adapter::path::differ),
    rule!("ICH-B086", adapter::operation::reads_are_safe),
    rule!("ICH-B090", observability::keys_are_redacted),
];

/// Returns every rule in the order of its id, [`UNREADABLE`] first.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    std::iter::once(&UNREADABLE).chain(&RULES)
}

/// Returns the rule with this id, in any case.
pub fn rule(id: &str) -> Option<&'static Rule> {
    rules().find(|rule| rule.id.eq_ignore_ascii_case(id))
}

/// Returns everything that is wrong with these files, alone and together.
///
/// Errors come first; findings are sorted by file, line, column and rule.
pub fn check(files: &[Boundary]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = hop_chains(files).iter().flat_map(check_chain).collect();
    findings.sort_by(|a, b| a.order().cmp(&b.order()));
    findings
}

fn check_chain(chain: &HopChain<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in rules() {
        findings.extend((rule.check)(chain).into_iter().map(|found| (rule, found)));
    }
    if findings.is_empty() {
        return Vec::new();
    }
    // A file is searched once, however many findings it has.
    let locators: Vec<(&Boundary, Locator<'_>)> =
        chain.files().map(|file| (file, Locator::new(file))).collect();
    let find = |found: &Violation<'_>| {
        let file = locators.iter().find(|(file, _)| std::ptr::eq(*file, found.file));
        file.map_or_else(|| found.file.place(&found.pointer), |(_, locator)| locator.find(&found.pointer))
    };
    findings.into_iter().map(|(rule, found)| Finding::new(rule, find(&found), &found.what)).collect()
}

/// The maximum length of a finding's text, which quotes words of the file of any length.
const WHAT_CHARS_MAX: usize = 400;

impl Finding {
    /// Creates a finding whose text is safe for a terminal: no control characters, and a limited length.
    pub(super) fn new(rule: &'static Rule, place: Location, what: &str) -> Self {
        let cut = what.chars().take(WHAT_CHARS_MAX);
        let plain = |one: char| if one.is_control() { char::REPLACEMENT_CHARACTER } else { one };
        Self { rule, place, what: cut.map(plain).collect(), mend: rule.mend.to_owned() }
    }

    /// Returns the sort key of findings.
    pub(super) fn order(&self) -> (Severity, &Location, &'static str, &str) {
        (self.rule.severity, &self.place, self.rule.id, &self.what)
    }
}

impl From<ReadError> for Finding {
    fn from(error: ReadError) -> Self {
        let ReadError { file, at, kind } = error;
        let pointer = kind.pointer().to_owned();
        Self::new(&UNREADABLE, Location { file, at, pointer }, &kind.to_string())
    }
}
