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
mod request_id;
mod retention;
mod retry;
mod time;

pub(super) use key::SAFE_METHODS;

use ichido_core::key::NAMES;
use ichido_rules::Severity;

use super::hop_chain::{HopChain, hop_chains};
use super::page::BoundaryRule;
use super::read::{Boundary, Location, Locator, ReadError};
use super::{Enabled, HOPS_HEADER, Traffic};

/// A broken rule and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: &'static BoundaryRule,
    /// Where it is broken.
    pub place: Location,
    /// What is wrong there.
    pub what: String,
    /// How to fix it.
    ///
    /// As the rule says or, if a change is judged, by reverting it.
    pub help: String,
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
        BoundaryRule::new(include_str!(concat!("../../../docs/rules/", $id, ".md")), $check)
    };
}

/// The rule that a file must be readable; [`Boundary::read`] checks it.
// SPEC C8.
pub static UNREADABLE: BoundaryRule = rule!("ICH-B000", |_| Vec::new());

/// All other rules, in the order of their ids.
static RULES: [BoundaryRule; 62] = [
    rule!("ICH-B001", key::mode_is_declared),            // SPEC C2, C8
    rule!("ICH-B002", key::key_is_required),             // SPEC A1, C1, C2, C8
    rule!("ICH-B003", key::missing_key_is_refused),      // SPEC A1, C1
    rule!("ICH-B004", key::unsafe_methods_change_state), // SPEC C4, C8
    rule!("ICH-B005", key::safe_methods_change_nothing), // SPEC C11
    rule!("ICH-B006", key::members_are_spelled_right),   // SPEC C8
    rule!("ICH-B007", key::requirement_is_kept),         // SPEC C3, C8
    rule!("ICH-B010", |chain| headers::stopped(chain, Traffic::Requests, &NAMES)), // SPEC C1, C8
    rule!("ICH-B011", headers::key_passes_cors),         // SPEC C1, C8
    rule!("ICH-B012", headers::one_spelling_passes_all), // SPEC C1, C8
    rule!("ICH-B013", |chain| headers::stopped(chain, Traffic::Requests, &[HOPS_HEADER])), // SPEC F1
    rule!("ICH-B014", headers::trace_passes),            // SPEC C5, F1
    rule!("ICH-B015", headers::lists_name_headers),      // SPEC C8
    rule!("ICH-B016", headers::answers::pass),           // SPEC C5, C6, A8
    rule!("ICH-B017", headers::answers::are_exposed),    // SPEC C5, C6, A8
    rule!("ICH-B018", headers::type_passes),             // SPEC C8, C9
    rule!("ICH-B019", headers::order::is_kept),          // SPEC C3, C8
    rule!("ICH-B020", retry::retries_need_the_key),      // SPEC C4
    rule!("ICH-B021", retry::hops_retry_post_alone),     // SPEC C4
    rule!("ICH-B022", retry::statuses_are_repeatable),   // SPEC C4, A8
    rule!("ICH-B023", retry::retries_are_bounded),       // SPEC C8
    rule!("ICH-B024", retry::unguarded_calls_are_not_repeated), // SPEC C4, F2
    rule!("ICH-B025", retry::waits_are_used),            // SPEC C8
    rule!("ICH-B030", fingerprint::inputs_are_there),    // SPEC C3, C8, C12
    rule!("ICH-B031", fingerprint::inputs_are_stable),   // SPEC C3, C12
    rule!("ICH-B032", fingerprint::hash_is_strong),      // SPEC C9
    rule!("ICH-B033", fingerprint::normal_form_is_declared), // SPEC C8, C9
    rule!("ICH-B034", fingerprint::numbers_are_exact),   // SPEC C9
    rule!("ICH-B035", fingerprint::large_bodies_are_refused), // SPEC C8, C9
    rule!("ICH-B036", fingerprint::inputs_are_read),     // SPEC C3
    rule!("ICH-B040", outcome::conflicts_are_refused),   // SPEC A4, C8
    rule!("ICH-B041", outcome::duplicates_are_replayed), // SPEC A3, C5, C8
    rule!("ICH-B042", outcome::in_flight_is_reported),   // SPEC C6, C8
    rule!("ICH-B043", outcome::statuses_differ),         // SPEC A4, C6
    rule!("ICH-B044", outcome::replayed_headers_are_declared), // SPEC C5, C8
    rule!("ICH-B045", outcome::replayed_headers_are_lasting), // SPEC C5
    rule!("ICH-B050", retention::ttl_is_declared),       // SPEC A2, C7, C8
    rule!("ICH-B051", retention::ttl_covers_a_day),      // SPEC C7, C12
    rule!("ICH-B052", retention::ttl_covers_retries),    // SPEC C7, C12
    rule!("ICH-B060", time::timeouts_are_declared),      // SPEC C8
    rule!("ICH-B061", time::attempts_fit_total),         // SPEC C8
    rule!("ICH-B062", time::attempts_fit_above),         // SPEC C8
    rule!("ICH-B063", time::wait_fits_above),            // SPEC C6, C8
    rule!("ICH-B070", owner::only_the_adapter_owns),     // SPEC C2, C8, C12
    rule!("ICH-B071", owner::the_owner_is_named),        // SPEC C2
    rule!("ICH-B072", owner::somebody_owns),             // SPEC C2, C8
    rule!("ICH-B073", owner::echo_is_the_same),          // SPEC C5, C8
    rule!("ICH-B074", owner::one_file_each),             // SPEC C8
    rule!("ICH-B075", owner::no_gap),                    // SPEC C8
    rule!("ICH-B076", owner::methods_agree),             // SPEC C8
    rule!("ICH-B077", owner::guarantees::agree),         // SPEC C2, C8
    rule!("ICH-B078", owner::guarantees::are_in_the_right_member), // SPEC C2, C8
    rule!("ICH-B079", owner::the_owner_is_among_them),   // SPEC C2, C8
    rule!("ICH-B080", adapter::identity::is_declared),   // SPEC C3
    rule!("ICH-B081", adapter::operation::are_declared), // SPEC C10, F2
    rule!("ICH-B082", adapter::operation::can_be_kept),  // SPEC C7, C10
    rule!("ICH-B083", adapter::identity::is_not_forged), // SPEC C3
    rule!("ICH-B084", adapter::identity::arrives),       // SPEC C3, C8
    rule!("ICH-B085", adapter::path::differ),            // SPEC C3
    rule!("ICH-B086", adapter::operation::reads_are_safe), // SPEC C10, C11
    rule!("ICH-B090", observability::key_is_recorded_and_credentials_are_not), // SPEC C5
    rule!("ICH-B091", request_id::is_handled),           // SPEC C3, C5
];

/// Returns every rule in the order of its id, [`UNREADABLE`] first.
pub fn rules() -> impl Iterator<Item = &'static BoundaryRule> {
    std::iter::once(&UNREADABLE).chain(&RULES)
}

/// Returns the rule with this id, in any case.
pub fn rule(id: &str) -> Option<&'static BoundaryRule> {
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
const MAX_WHAT_CHARS: usize = 400;

impl Finding {
    /// Creates a finding whose text is safe for a terminal: no control characters, and a limited length.
    pub(super) fn new(rule: &'static BoundaryRule, place: Location, what: &str) -> Self {
        let cut = what.chars().take(MAX_WHAT_CHARS);
        let plain = |one: char| if one.is_control() { char::REPLACEMENT_CHARACTER } else { one };
        Self { rule, place, what: cut.map(plain).collect(), help: rule.help.to_owned() }
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
