//! The page of dead letters: failure groups, or the single messages that a filter selects.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};
use ichido_core::failure_group::flattened;
use ichido_core::text::visible;
use serde::Deserialize;

use super::super::dead_letters::Letter;
use super::super::request::query_pairs;
use super::bulk_plan::{BulkPlan, BulkStep, address, filter_of};
use super::bulk_texts::Texts as BulkTexts;
use super::message_texts::Fact;
use super::messages::{FilterChip, short_id};
use super::moments::ShownTime;
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::{Dashboard, failure_groups, marks};

/// Maximum letters on a page.
const PAGE: u32 = 50;

#[derive(Template)]
#[template(path = "dead_letters.html")]
struct DeadLettersPage {
    shell: Shell,
    b: &'static BulkTexts,
    chips: Vec<FilterChip>,
    /// The filter beyond state and disposition, which the chips show.
    scope: Vec<Fact>,
    all_href: String,
    rows: Vec<LetterLine>,
    empty: &'static str,
    newest: Option<String>,
    next: Option<String>,
    offers: Vec<BulkOffer>,
}

/// A dead letter in a table.
pub(super) struct LetterLine {
    pub(super) id: String,
    pub(super) short_id: String,
    pub(super) item: String,
    pub(super) queue: String,
    pub(super) mark: &'static str,
    pub(super) class: &'static str,
    pub(super) effect: String,
    pub(super) code: Option<String>,
    pub(super) code_href: String,
    pub(super) error: Option<String>,
    pub(super) attempts: String,
    pub(super) at: ShownTime,
    pub(super) refused: Option<String>,
}

/// A bulk action that begins with a preview.
pub(super) struct BulkOffer {
    pub(super) name: &'static str,
    pub(super) href: String,
    pub(super) is_quiet: bool,
}

/// A page of the API.
#[derive(Deserialize)]
pub(super) struct FoundLetters {
    pub(super) dead_letters: Vec<Letter>,
    pub(super) next: Option<String>,
}

/// Lists failure groups; with a filter, the messages that it selects.
pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    uri: Uri,
) -> Result<Response, PageRefusal> {
    let query = query_pairs(&uri)?;
    let get = |wanted: &str| query.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let filter = filter_of(get);
    if filter.is_empty() {
        return failure_groups::list(&dashboard, &visitor, get("cursor")).await;
    }
    rows(&dashboard, &visitor, &filter, get("cursor")).await
}

async fn rows(
    dashboard: &Dashboard,
    visitor: &Visitor,
    filter: &[(&'static str, String)],
    cursor: Option<&str>,
) -> Result<Response, PageRefusal> {
    let (t, b) = (visitor.t(), BulkTexts::of(visitor.language));
    let value =
        |wanted: &str| filter.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.as_str());
    let here = match (value("state"), value("disposition")) {
        (Some("parked"), _) => "parked",
        (_, Some("discarded")) => "discarded",
        _ => "dead",
    };
    let at = |cursor: Option<&str>| {
        [filter, &cursor.map(|cursor| vec![("cursor", cursor.to_owned())]).unwrap_or_default()].concat()
    };
    let target = address("/v1/dead-letters", &[at(cursor), vec![("limit", PAGE.to_string())]].concat());
    let found: FoundLetters = dashboard.read(visitor.caller()?, &target).await?;
    let narrows = |(name, _): &&(&'static str, String)| !matches!(*name, "state" | "disposition");
    let plan = BulkPlan::new(BulkStep::Requeue, filter.iter().filter(narrows).cloned().collect());
    let wide: Vec<(&'static str, String)> = filter.iter().filter(|pair| !narrows(pair)).cloned().collect();
    let scope = dashboard.scope(visitor, &plan).await?;
    let mut shell = dashboard.shell(visitor, t.dead_letters);
    shell.live = Some("/live".to_owned());
    let page = DeadLettersPage {
        b,
        chips: chips(visitor, here),
        // The first fact is the state.
        scope: scope.into_iter().skip(1).collect(),
        all_href: if wide.is_empty() {
            "/dead-letters?state=dead".to_owned()
        } else {
            address("/dead-letters", &wide)
        },
        empty: match here {
            "parked" => t.no_parked,
            "discarded" => t.no_discarded,
            _ => t.no_dead,
        },
        newest: cursor.map(|_| address("/dead-letters", &at(None))),
        next: found.next.as_deref().map(|next| address("/dead-letters", &at(Some(next)))),
        offers: if visitor.can_act() && !found.dead_letters.is_empty() {
            offers(b, filter)
        } else {
            Vec::new()
        },
        rows: found.dead_letters.into_iter().map(|letter| LetterLine::new(visitor, letter)).collect(),
        shell,
    };
    Ok(html(StatusCode::OK, &page))
}

/// Returns the views of dead letters.
pub(super) fn chips(visitor: &Visitor, here: &str) -> Vec<FilterChip> {
    let (t, b) = (visitor.t(), BulkTexts::of(visitor.language));
    let chip = |id: &str, name, mark, class, href: &str| FilterChip {
        name,
        mark,
        class,
        href: href.to_owned(),
        is_here: id == here,
    };
    let of = |id, name, state: &str, href| {
        let shown = marks::of_state(state);
        chip(id, name, shown.mark, shown.class, href)
    };
    vec![
        chip("groups", b.groups, "", "quiet", "/dead-letters"),
        of("dead", t.letters_dead, "dead", "/dead-letters?state=dead"),
        of("parked", t.letters_parked, "parked", "/dead-letters?state=parked"),
        of("discarded", t.letters_discarded, "cancelled", "/dead-letters?disposition=discarded"),
        chip("operations", b.operations, "", "quiet", "/operations"),
    ]
}

/// Returns what an operator can do with all messages of a filter.
pub(super) fn offers(b: &'static BulkTexts, filter: &[(&'static str, String)]) -> Vec<BulkOffer> {
    let offer = |name, step, is_quiet| BulkOffer {
        name,
        href: BulkPlan::new(step, filter.to_vec()).href(),
        is_quiet,
    };
    let value =
        |wanted: &str| filter.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.as_str());
    match (value("state"), value("disposition")) {
        (Some("parked"), _) => vec![
            // Neither is the first thing to do: that is to look at one of the messages.
            offer(b.bulk_decide, BulkStep::Decide(None), true),
            offer(b.bulk_release, BulkStep::Requeue, true),
        ],
        (_, Some("discarded")) => vec![offer(b.bulk_requeue, BulkStep::Requeue, false)],
        (_, Some("replaced")) => Vec::new(),
        _ => vec![
            offer(b.bulk_requeue, BulkStep::Requeue, false),
            offer(b.bulk_discard, BulkStep::Discard, true),
            offer(b.bulk_decide, BulkStep::Decide(None), true),
        ],
    }
}

/// Returns an error for a row: of a JSON body only the messages, as the title of its group has them.
pub(super) fn one_line(error: String) -> String {
    flattened(&error).unwrap_or(error)
}

impl LetterLine {
    pub(super) fn new(visitor: &Visitor, letter: Letter) -> Self {
        let shown = marks::of_effect(&letter.effect);
        let id = letter.id.to_string();
        let (code, error) = letter.last_error.map_or((None, None), |error| (Some(error.code), error.text));
        let of_code = code.iter().map(|code| ("code", code.clone()));
        Self {
            short_id: short_id(&id),
            id,
            code_href: address(
                "/dead-letters",
                &[("state", letter.state.clone())].into_iter().chain(of_code).collect::<Vec<_>>(),
            ),
            item: letter.item,
            queue: letter.queue,
            mark: shown.mark,
            class: shown.class,
            effect: marks::effect_name(visitor.t(), &letter.effect).to_owned(),
            code,
            error: error.map(|error| visible(&one_line(error))),
            attempts: format!("{}/{}", letter.attempts, letter.max_attempts),
            at: visitor.time(&letter.since),
            refused: letter.requeue_refused,
        }
    }
}
