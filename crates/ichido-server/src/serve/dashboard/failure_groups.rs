//! The pages of failure groups: each cause once, who takes care of it, and its messages.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::{Method, StatusCode, Uri};
use ichido_core::text::visible;
use uuid::Uuid;

use super::super::failure_groups::{FailureGroup, FailureGroupDetail, FailureGroups};
use super::super::problem::{Code, Problem};
use super::super::request::query_pairs;
use super::bulk_plan::{BulkPlan, BulkStep, address};
use super::bulk_texts::Texts as BulkTexts;
use super::condition::total;
use super::dead_letters::{BulkOffer, FoundLetters, LetterLine, chips, offers};
use super::marks::{self, StateMark};
use super::message::Notice;
use super::messages::FilterChip;
use super::moments::{ShownTime, grouped};
use super::sampler::MAX_COUNTED;
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::texts::fill;
use super::{Dashboard, see_other};

/// Maximum groups on a page.
const PAGE: u32 = 20;
/// Maximum messages of each state on the page of a group; the list has them all.
const MAX_ROWS: usize = 20;

#[derive(Template)]
#[template(path = "failure_groups.html")]
struct GroupsPage {
    shell: Shell,
    b: &'static BulkTexts,
    chips: Vec<FilterChip>,
    groups: Vec<GroupLine>,
    empty: String,
    newest: Option<&'static str>,
    next: Option<String>,
    can_act: bool,
}

#[derive(Template)]
#[template(path = "failure_group.html")]
struct GroupPage {
    shell: Shell,
    b: &'static BulkTexts,
    notice: Option<Notice>,
    group: GroupLine,
    about: &'static str,
    /// The newest error as it was stored, if it says more than the title.
    latest: Option<String>,
    parts: Vec<GroupPart>,
    can_act: bool,
}

/// A failure group.
struct GroupLine {
    id: String,
    mark: &'static str,
    class: &'static str,
    state: &'static str,
    since: ShownTime,
    who: Option<String>,
    queue: String,
    code: Option<String>,
    template: String,
    count: String,
    rows_href: String,
    /// The preview of requeueing its dead messages, if it may have some.
    requeue_href: Option<String>,
    first_seen: ShownTime,
    last_seen: ShownTime,
    /// Whether somebody can still say that he works on it.
    is_unclaimed: bool,
    is_unresolved: bool,
}

/// The dead or the parked messages of a group.
struct GroupPart {
    id: &'static str,
    name: &'static str,
    rows: Vec<LetterLine>,
    all_href: String,
    has_more: bool,
    /// Whether a message that is shown may have taken effect.
    has_unknown: bool,
    offers: Vec<BulkOffer>,
}

/// Returns how the state of a group is shown, its name, and what it means.
fn of_state(b: &'static BulkTexts, state: &str) -> (StateMark, &'static str, &'static str) {
    let (mark, class, name, about) = match state {
        "acknowledged" => ("go", "calm", b.group_acknowledged, b.about_acknowledged),
        "resolved" => ("check", "good", b.group_resolved, b.about_resolved),
        "came_back" => ("retry", "bad", b.group_came_back, b.about_came_back),
        _ => ("cross", "bad", b.group_open, b.about_open),
    };
    (StateMark { mark, class }, name, about)
}

/// Returns the same for a group: one without open messages needs nobody.
fn of_group(b: &'static BulkTexts, group: &FailureGroup) -> (StateMark, &'static str, &'static str) {
    let needs_nobody = group.count == 0 && group.state != "resolved";
    if needs_nobody {
        return (StateMark { mark: "none", class: "quiet" }, b.group_empty, b.about_empty);
    }
    of_state(b, &group.state)
}

/// How many messages of a group are parked.
type ParkedCounts = HashMap<Uuid, u64>;

/// Maximum parked messages that are counted by group; a group with more is shown as a group of dead letters.
const MAX_PARKED_COUNTED: u32 = 100;

/// Counts the parked messages by group, with one read.
async fn parked_counts(dashboard: &Dashboard, visitor: &Visitor) -> Result<ParkedCounts, PageRefusal> {
    if total(&*dashboard.sampler.get(&dashboard.api).await?).parked == 0 {
        return Ok(ParkedCounts::default());
    }
    let target = format!("/v1/dead-letters?state=parked&limit={MAX_PARKED_COUNTED}");
    let found: FoundLetters = dashboard.read(visitor.caller()?, &target).await?;
    let mut counts = ParkedCounts::default();
    for group in found.dead_letters.iter().filter_map(|letter| letter.failure_group) {
        *counts.entry(group).or_default() += 1;
    }
    Ok(counts)
}

/// Lists the groups, those that need a person first.
pub(super) async fn list(
    dashboard: &Dashboard,
    visitor: &Visitor,
    cursor: Option<&str>,
) -> Result<Response, PageRefusal> {
    let (t, b) = (visitor.t(), BulkTexts::of(visitor.language));
    let mut query = vec![("limit", PAGE.to_string())];
    query.extend(cursor.map(|cursor| ("cursor", cursor.to_owned())));
    let target = address("/v1/failure-groups", &query);
    let found: FailureGroups = dashboard.read(visitor.caller()?, &target).await?;
    let parked = parked_counts(dashboard, visitor).await?;
    let empty = if found.failure_groups.is_empty() { none_yet(dashboard, b).await? } else { String::new() };
    let is_parked = |group: &FailureGroup| parked.get(&group.id).is_some_and(|parked| group.count <= *parked);
    let mut shell = dashboard.shell(visitor, t.dead_letters);
    shell.live = Some("/live".to_owned());
    let page = GroupsPage {
        b,
        chips: chips(visitor, "groups"),
        groups: found.failure_groups.iter().map(|group| line(visitor, group, is_parked(group))).collect(),
        empty,
        newest: cursor.map(|_| "/dead-letters"),
        next: found.next.map(|next| address("/dead-letters", &[("cursor", next)])),
        can_act: visitor.can_act(),
        shell,
    };
    Ok(html(StatusCode::OK, &page))
}

/// Says why there is no group.
async fn none_yet(dashboard: &Dashboard, b: &'static BulkTexts) -> Result<String, PageRefusal> {
    let letters = dashboard.sampler.get(&dashboard.api).await?.open_letters();
    let more = if letters < MAX_COUNTED as usize { "" } else { "+" };
    Ok(match letters {
        0 => b.no_groups.to_owned(),
        letters => fill(b.groups_wait, &[("n", &format!("{letters}{more}"))]),
    })
}

/// Returns what can be done to these messages. There is nothing to decide if the effect of all is known.
fn offers_of(
    b: &'static BulkTexts,
    filter: &[(&'static str, String)],
    letters: &FoundLetters,
) -> Vec<BulkOffer> {
    let is_open =
        letters.next.is_some() || letters.dead_letters.iter().any(|letter| letter.effect == "unknown");
    let mut offers = offers(b, filter);
    offers.retain(|offer| is_open || offer.name != b.bulk_decide);
    offers
}

/// Shows a group with its messages.
pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, PageRefusal> {
    let (id, caller, b) = (parse_id(&id)?, visitor.caller()?, BulkTexts::of(visitor.language));
    let query = query_pairs(&uri)?;
    let found: FailureGroupDetail = dashboard.read(caller, &format!("/v1/failure-groups/{id}")).await?;
    let state = found.group.state.as_str();
    let did = query.iter().find(|(name, _)| name == "did").and_then(|(_, did)| match did.as_str() {
        "acknowledge" if state == "acknowledged" => Some(b.did_acknowledge),
        "resolve" if state == "resolved" => Some(b.did_resolve),
        _ => None,
    });
    let mut parts = Vec::new();
    let mut latest = None;
    for (part, state, name) in [("dead", "dead", b.dead_of_group), ("parked", "parked", b.parked_of_group)] {
        let filter = vec![("state", state.to_owned()), ("group", id.to_string())];
        let limit = ("limit", MAX_ROWS.to_string());
        let target = address("/v1/dead-letters", &[filter.clone(), vec![limit]].concat());
        let letters: FoundLetters = dashboard.read(caller, &target).await?;
        if letters.dead_letters.is_empty() {
            continue;
        }
        let newest =
            letters.dead_letters.first().and_then(|letter| letter.last_error.as_ref()?.text.as_deref());
        latest = latest.or_else(|| newest.filter(|text| **text != *found.group.template).map(visible));
        parts.push(GroupPart {
            id: part,
            name,
            has_more: letters.next.is_some(),
            has_unknown: letters.dead_letters.iter().any(|letter| letter.effect == "unknown"),
            offers: if visitor.can_act() { offers_of(b, &filter, &letters) } else { Vec::new() },
            rows: letters.dead_letters.into_iter().map(|letter| LetterLine::new(&visitor, letter)).collect(),
            all_href: address("/dead-letters", &filter),
        });
    }
    let is_parked = matches!(&parts[..], [part] if part.id == "parked");
    let group = line(&visitor, &found.group, is_parked);
    let mut shell = dashboard.shell(&visitor, group.code.clone().unwrap_or_else(|| b.group.to_owned()));
    shell.live = Some("/live".to_owned());
    let page = GroupPage {
        b,
        notice: did.map(|text| Notice { class: "ok", text: text.to_owned() }),
        about: of_group(b, &found.group).2,
        group,
        latest,
        parts,
        can_act: visitor.can_act(),
        shell,
    };
    Ok(html(StatusCode::OK, &page))
}

/// Says that a person works on a group.
pub(super) async fn acknowledge(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Response, PageRefusal> {
    change(&dashboard, &visitor, &id, "acknowledge").await
}

/// Says that the cause of a group is fixed.
pub(super) async fn resolve(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Response, PageRefusal> {
    change(&dashboard, &visitor, &id, "resolve").await
}

async fn change(
    dashboard: &Dashboard,
    visitor: &Visitor,
    id: &str,
    action: &'static str,
) -> Result<Response, PageRefusal> {
    let id = parse_id(id)?;
    let target = format!("/v1/failure-groups/{id}/{action}");
    dashboard.call(visitor.caller()?, Method::POST, &target, String::new()).await?;
    dashboard.sampler.forget();
    Ok(see_other(&dashboard.base, &format!("/dead-letters/groups/{id}?did={action}")))
}

fn parse_id(id: &str) -> Result<Uuid, PageRefusal> {
    Uuid::try_parse(id).map_err(|_| Problem::new(Code::GroupUnknown, "no failure group has this id").into())
}

/// `is_parked` says that all of its messages are parked, which is not a failure yet.
fn line(visitor: &Visitor, group: &FailureGroup, is_parked: bool) -> GroupLine {
    let b = BulkTexts::of(visitor.language);
    let (shown, state, _) = of_group(b, group);
    let shown = if is_parked && shown.class == "bad" { marks::of_state("parked") } else { shown };
    let id = group.id.to_string();
    GroupLine {
        mark: shown.mark,
        class: shown.class,
        state,
        since: visitor.time(&group.state_since),
        who: group.changed_by.clone().filter(|_| group.state != "open"),
        queue: group.queue.clone(),
        code: group.code.clone(),
        template: if group.template.is_empty() { b.no_text.to_owned() } else { visible(&group.template) },
        count: grouped(i64::try_from(group.count).unwrap_or(i64::MAX)),
        rows_href: format!("/dead-letters/groups/{id}"),
        requeue_href: (0 < group.count && !is_parked).then(|| {
            let filter = vec![("state", "dead".to_owned()), ("group", id.clone())];
            BulkPlan::new(BulkStep::Requeue, filter).href()
        }),
        first_seen: visitor.time(&group.first_seen),
        last_seen: visitor.time(&group.last_seen),
        is_unclaimed: matches!(group.state.as_str(), "open" | "came_back"),
        is_unresolved: group.state != "resolved",
        id,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ichido_core::failure_group::GroupState;

    use super::*;
    use crate::serve::dashboard::language::Language;

    #[test]
    fn states_of_groups_differ_by_shape_and_word() {
        let symbols = include_str!("../../../templates/marks.html");
        let b = BulkTexts::of(Language::English);
        let shown: Vec<_> = GroupState::WORDS.iter().map(|state| of_state(b, state)).collect();
        let marks: BTreeSet<&str> = shown.iter().map(|(shown, ..)| shown.mark).collect();
        let names: BTreeSet<&str> = shown.iter().map(|(_, name, _)| *name).collect();
        assert_eq!((marks.len(), names.len()), (GroupState::WORDS.len(), GroupState::WORDS.len()));
        assert!(marks.iter().all(|mark| symbols.contains(&format!("id=\"m-{mark}\""))), "{marks:?}");
    }
}
