//! What a bulk operation does, and to which messages: as the address of its preview, as the body for the API, and in words.
//!
//! Guarantee: the three mean the same messages, because all are made from the same pairs. The API checks the values.

use std::fmt;

use form_urlencoded::Serializer;
use serde_json::{Map, Value, json};

use super::super::operations::OperationFilter;
use super::bulk_texts::Texts as BulkTexts;
use super::group_names::GroupNames;
use super::marks;
use super::message_texts::Fact;
use super::moments;
use super::texts::Texts;

/// The parameters that select dead letters, on the pages and in the API.
pub(super) const FILTER: [&str; 10] = [
    "state",
    "disposition",
    "queue",
    "code",
    "effect",
    "identity",
    "group",
    "since_from",
    "since_before",
    "text",
];

/// What is done to the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BulkStep {
    Requeue,
    Discard,
    /// `None` while the person has not said what was found.
    Decide(Option<Finding>),
}

/// What a person found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    Done,
    NotDone,
    GiveUp,
}

impl Finding {
    pub(super) const ALL: [Self; 3] = [Self::Done, Self::NotDone, Self::GiveUp];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::NotDone => "not_done",
            Self::GiveUp => "give_up",
        }
    }
}

impl BulkStep {
    const fn action(self) -> &'static str {
        match self {
            Self::Requeue => "requeue",
            Self::Discard => "discard",
            Self::Decide(_) => "decide",
        }
    }

    /// Returns the step of an operation's `action`, whether it had a canary or not.
    pub(super) fn of_operation(action: &str) -> Option<Self> {
        match action.strip_suffix("_canary").unwrap_or(action) {
            "requeue" => Some(Self::Requeue),
            "discard" => Some(Self::Discard),
            decide => {
                let finding = decide.strip_prefix("decide_")?;
                Finding::ALL
                    .into_iter()
                    .find(|known| known.as_str() == finding)
                    .map(|known| Self::Decide(Some(known)))
            }
        }
    }

    /// Returns what happens to a message, in the past tense.
    pub(super) const fn done(self, b: &BulkTexts) -> &'static str {
        match self {
            Self::Requeue => b.done_requeue,
            Self::Discard => b.done_discard,
            Self::Decide(_) => b.done_decide,
        }
    }
}

/// A bulk operation before it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BulkPlan {
    pub(super) step: BulkStep,
    filter: Vec<(&'static str, String)>,
}

impl BulkPlan {
    pub(super) fn new(step: BulkStep, filter: Vec<(&'static str, String)>) -> Self {
        Self { step, filter }
    }

    /// Reads a plan from the parameters of an address, or the fields of a form.
    pub(super) fn parse<'p>(get: impl Fn(&str) -> Option<&'p str>) -> Option<Self> {
        let step = match get("action")? {
            "requeue" => BulkStep::Requeue,
            "discard" => BulkStep::Discard,
            "decide" => {
                let finding = get("decision").filter(|finding| !finding.is_empty());
                let known = |finding| Finding::ALL.into_iter().find(|known| known.as_str() == finding);
                BulkStep::Decide(match finding {
                    Some(finding) => Some(known(finding)?),
                    None => None,
                })
            }
            _ => return None,
        };
        Some(Self { step, filter: filter_of(get) })
    }

    /// Returns the plan that continues an operation with what it left.
    pub(super) fn rest_of(action: &str, filter: &OperationFilter) -> Option<Self> {
        let text = |value: &Option<String>| value.clone();
        let disposition = match (filter.discarded, filter.replaced) {
            (true, _) => Some("discarded".to_owned()),
            (false, true) => Some("replaced".to_owned()),
            (false, false) => None,
        };
        let values = FILTER.map(|name| {
            let value = match name {
                "state" => Some(filter.state.clone()),
                "disposition" => disposition.clone(),
                "queue" => text(&filter.queue),
                "code" => text(&filter.code),
                "effect" => text(&filter.effect),
                "identity" => text(&filter.identity),
                "group" => text(&filter.group),
                "since_from" => text(&filter.since_from),
                "since_before" => text(&filter.since_before),
                _ => text(&filter.text),
            };
            value.map(|value| (name, value))
        });
        Some(Self { step: BulkStep::of_operation(action)?, filter: values.into_iter().flatten().collect() })
    }

    /// Whether the messages are parked.
    pub(super) fn is_parked(&self) -> bool {
        let state = self.get("state");
        state == Some("parked") || state.is_none() && matches!(self.step, BulkStep::Decide(_))
    }

    /// Whether it sends messages, so that a canary can watch the first ones.
    pub(super) fn sends(&self) -> bool {
        match self.step {
            BulkStep::Requeue => true,
            BulkStep::Decide(Some(Finding::NotDone)) => self.is_parked(),
            BulkStep::Discard | BulkStep::Decide(_) => false,
        }
    }

    /// Whether the API wants a reason.
    pub(super) fn needs_reason(&self) -> bool {
        self.step == BulkStep::Discard
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.filter.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// Returns this plan with another finding.
    pub(super) fn with(&self, finding: Finding) -> Self {
        Self { step: BulkStep::Decide(Some(finding)), ..self.clone() }
    }

    /// Returns the parameters of its address, and the fields of its form.
    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = vec![("action", self.step.action().to_owned())];
        if let BulkStep::Decide(Some(finding)) = self.step {
            pairs.push(("decision", finding.as_str().to_owned()));
        }
        pairs.extend(self.filter.iter().cloned());
        pairs
    }

    /// Returns the address of its preview.
    pub(super) fn href(&self) -> String {
        address("/operations/new", &self.pairs())
    }

    /// Returns the address of the messages that it is about.
    pub(super) fn rows_href(&self) -> String {
        let mut filter = self.filter.clone();
        if self.get("state").is_none() {
            filter.push(("state", if self.is_parked() { "parked" } else { "dead" }.to_owned()));
        }
        address("/dead-letters", &filter)
    }

    /// Returns the filter of what died after the operation was counted; `None` if it is not about dead letters that are open.
    pub(super) fn later_filter(&self) -> Option<Vec<(&'static str, String)>> {
        let before = self.get("since_before")?;
        if self.is_parked() || self.get("disposition").is_some() {
            return None;
        }
        let others = |(name, _): &&(&'static str, String)| !matches!(*name, "since_from" | "since_before");
        let mut filter: Vec<_> = self.filter.iter().filter(others).cloned().collect();
        filter.push(("since_from", before.to_owned()));
        Some(filter)
    }

    /// Returns the body for the API, without what a person confirms.
    pub(super) fn to_body(&self) -> Map<String, Value> {
        let mut filter = Map::new();
        for (name, value) in &self.filter {
            match (*name, value.as_str()) {
                ("disposition", closed @ ("discarded" | "replaced")) => {
                    filter.insert(closed.to_owned(), Value::Bool(true));
                }
                ("disposition", _) => (),
                (name, value) => {
                    filter.insert(name.to_owned(), value.into());
                }
            }
        }
        let mut body = Map::new();
        body.insert("action".to_owned(), self.step.action().into());
        if let BulkStep::Decide(Some(finding)) = self.step {
            body.insert("decision".to_owned(), finding.as_str().into());
        }
        if filter.is_empty() {
            body.insert("all".to_owned(), json!(true));
        } else {
            body.insert("filter".to_owned(), Value::Object(filter));
        }
        body
    }

    /// Returns what it does, as a heading.
    pub(super) fn title(&self, b: &BulkTexts) -> &'static str {
        match self.step {
            BulkStep::Requeue if self.is_parked() => b.requeue_parked,
            BulkStep::Requeue => b.requeue_dead,
            BulkStep::Discard => b.discard_dead,
            BulkStep::Decide(None) => b.decide_any,
            BulkStep::Decide(Some(Finding::Done)) => b.decide_as_done,
            BulkStep::Decide(Some(Finding::NotDone)) => b.decide_as_not_done,
            BulkStep::Decide(Some(Finding::GiveUp)) => b.decide_as_give_up,
        }
    }

    /// Returns what happens to each message.
    pub(super) fn effect(&self, b: &BulkTexts) -> &'static str {
        match self.step {
            BulkStep::Requeue if self.is_parked() => b.requeue_parked_effect,
            BulkStep::Requeue => b.requeue_dead_effect,
            BulkStep::Discard => b.discard_dead_effect,
            BulkStep::Decide(None) => b.choose_decision,
            BulkStep::Decide(Some(Finding::Done)) => b.decide_done_effect,
            BulkStep::Decide(Some(Finding::NotDone)) => b.decide_not_done_effect,
            BulkStep::Decide(Some(Finding::GiveUp)) => b.decide_give_up_effect,
        }
    }

    /// Returns the filter in words.
    pub(super) fn scope(&self, t: &'static Texts, b: &BulkTexts, names: &GroupNames) -> Vec<Fact> {
        let state = if self.is_parked() { "parked" } else { "dead" };
        let mut facts = vec![Fact::text(b.f_state, marks::state_name(t, state))];
        for (name, value) in &self.filter {
            facts.push(match *name {
                "queue" => Fact::text(t.queue, value.as_str()),
                "code" => Fact::code(t.last_error, value.as_str()),
                "effect" => Fact::text(t.effect, marks::effect_name(t, value)),
                "identity" => Fact::text(t.identity, value.as_str()),
                "group" => {
                    let short = || Fact::code(b.f_group, value.chars().take(8).collect::<String>());
                    let fact = names.get(value).map(|cause| Fact::text(b.f_group, cause.as_str()));
                    let href = Some(format!("/dead-letters/groups/{value}"));
                    Fact { href, ..fact.unwrap_or_else(short) }
                }
                "since_from" => Fact::text(b.f_from, moments::full(value)),
                "since_before" => Fact::text(b.f_before, moments::full(value)),
                "text" => Fact::text(b.f_text, value.as_str()),
                "disposition" if value == "discarded" => Fact::text(b.f_standing, t.letters_discarded),
                _ => continue,
            });
        }
        facts
    }
}

/// Reads the members of a filter; empty ones select everything.
pub(super) fn filter_of<'p>(get: impl Fn(&str) -> Option<&'p str>) -> Vec<(&'static str, String)> {
    let value = |name: &'static str| {
        get(name).filter(|value| !value.is_empty()).map(|value| (name, value.to_owned()))
    };
    FILTER.into_iter().filter_map(value).collect()
}

/// Returns a path with parameters.
pub(super) fn address(path: &str, pairs: &[(&'static str, String)]) -> String {
    let mut address = Serializer::for_suffix(format!("{path}?"), path.len() + 1);
    address.extend_pairs(pairs);
    address.finish()
}

/// What a person confirms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confirmed {
    /// At most so many messages.
    Number(u64),
    /// All that match: there are more than are counted.
    All,
}

impl Confirmed {
    /// Parses what people type: `5,000`, `5 000` and full-width digits are 5000, and `all` is `ALL`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let marks = text.trim().chars().filter(|mark| !matches!(mark, ',' | '_' | ' ' | '\u{a0}' | '，'));
        // Full-width forms are in the order of ASCII.
        let plain = marks.map(|mark| match mark {
            '！'..='～' => {
                char::from_u32(u32::from(mark) - u32::from('！') + u32::from('!')).unwrap_or(mark)
            }
            mark => mark,
        });
        let plain: String = plain.collect();
        if plain.eq_ignore_ascii_case("ALL") { Some(Self::All) } else { plain.parse().ok().map(Self::Number) }
    }

    pub(super) const fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::All => None,
        }
    }
}

impl fmt::Display for Confirmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::All => f.write_str("ALL"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(query: &str) -> Option<BulkPlan> {
        let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        BulkPlan::parse(|name| pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str()))
    }

    #[test]
    fn a_plan_is_the_same_as_an_address_and_as_a_body() {
        for (query, body) in [
            (
                "action=requeue&state=dead&queue=orders&code=BROKER_5XX",
                json!({"action": "requeue", "filter": {"state": "dead", "queue": "orders", "code": "BROKER_5XX"}}),
            ),
            (
                "action=discard&disposition=open&text=a+b",
                json!({"action": "discard", "filter": {"text": "a b"}}),
            ),
            (
                "action=requeue&state=dead&disposition=discarded",
                json!({"action": "requeue", "filter": {"state": "dead", "discarded": true}}),
            ),
            ("action=requeue", json!({"action": "requeue", "all": true})),
            (
                "action=decide&decision=not_done&state=parked&group=g",
                json!({"action": "decide", "decision": "not_done", "filter": {"state": "parked", "group": "g"}}),
            ),
        ] {
            let read = plan(query).expect("a plan");
            assert_eq!(Value::Object(read.to_body()), body, "{query}");
            let again = read.href();
            assert_eq!(plan(again.split_once('?').expect("a query").1), Some(read), "{query}");
        }
        for query in ["", "action=delete", "action=decide&decision=perhaps"] {
            assert_eq!(plan(query), None, "{query}");
        }
        assert_eq!(plan("action=decide&decision=").map(|plan| plan.step), Some(BulkStep::Decide(None)));
    }

    #[test]
    fn only_what_sends_can_have_a_canary() {
        for (query, sends) in [
            ("action=requeue", true),
            ("action=requeue&state=parked", true),
            ("action=discard", false),
            ("action=decide", false),
            ("action=decide&decision=not_done", true),
            ("action=decide&decision=not_done&state=dead", false),
            ("action=decide&decision=done", false),
            ("action=decide&decision=give_up", false),
        ] {
            assert_eq!(plan(query).expect("a plan").sends(), sends, "{query}");
        }
    }

    #[test]
    fn the_rest_of_an_operation_is_what_it_was_about() {
        let filter = OperationFilter {
            state: "dead".to_owned(),
            queue: Some("orders".to_owned()),
            since_before: Some("2026-11-18T00:00:00Z".to_owned()),
            ..OperationFilter::default()
        };
        for (action, expected) in [
            ("requeue_canary", "action=requeue"),
            ("discard", "action=discard"),
            ("decide_give_up", "action=decide&decision=give_up"),
        ] {
            let expected =
                plan(&format!("{expected}&state=dead&queue=orders&since_before=2026-11-18T00:00:00Z"));
            assert_eq!(BulkPlan::rest_of(action, &filter), expected, "{action}");
        }
        assert_eq!(BulkPlan::rest_of("burn", &filter), None, "an action of a later release");
        let discarded = OperationFilter { discarded: true, ..filter };
        let rest = BulkPlan::rest_of("requeue", &discarded).expect("a plan");
        assert_eq!(rest.to_body()["filter"]["discarded"], json!(true));
    }

    #[test]
    fn what_died_later_is_not_part_of_the_rest() {
        let filter = |query: &str| {
            let later = plan(query).expect("a plan").later_filter()?;
            Some(address("", &later))
        };
        let since = "since_from=2026-11-18T00%3A00%3A00Z";
        let before = "since_before=2026-11-18T00:00:00Z";
        assert_eq!(
            filter(&format!("action=requeue&state=dead&queue=orders&{before}")),
            Some(format!("?state=dead&queue=orders&{since}"))
        );
        assert_eq!(filter("action=requeue&state=dead"), None, "it was not counted yet");
        assert_eq!(filter(&format!("action=requeue&state=parked&{before}")), None);
    }

    #[test]
    fn a_confirmation_is_read_as_people_type_it() {
        let number = |number| Some(Confirmed::Number(number));
        for (text, confirmed) in [
            ("5000", number(5_000)),
            (" 5,000 ", number(5_000)),
            ("5 000", number(5_000)),
            ("５０００", number(5_000)),
            ("ALL", Some(Confirmed::All)),
            (" all", Some(Confirmed::All)),
            ("Ａｌｌ", Some(Confirmed::All)),
            ("", None),
            ("-1", None),
            ("5000.0", None),
            ("ALL 5", None),
        ] {
            assert_eq!(Confirmed::parse(text), confirmed, "{text}");
        }
    }
}
