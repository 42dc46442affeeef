//! What all pages share: language, navigation, who is signed in, and how a page or a refusal becomes a response.

use std::fmt::Write as _;

use askama::Template;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use ichido_core::text::visible_lines;
use ichido_core::time::Timestamp;
use ichido_store::error::StoreError;
use ichido_store::page_reads;
use ichido_store::token::TokenRole;
use serde::Deserialize;
use tokio::time::Instant;

use super::super::caller::ApiCaller;
use super::super::problem::Problem;
use super::super::response::with_type;
use super::Dashboard;
use super::assets::{AssetPaths, PATHS, icon_path};
use super::bulk_texts::Texts as BulkTexts;
use super::chart_texts;
use super::condition::total;
use super::frame_texts;
use super::key_texts::Texts as KeyTexts;
use super::language::Language;
use super::moments::ShownTime;
use super::page_cost::{ShownCost, with_explain};
use super::sampler::MAX_COUNTED;
use super::terms::Terms;
use super::texts::{Texts, fill};
use crate::instance::Instance;

/// The person who looks at a page.
#[derive(Clone)]
pub(super) struct Visitor {
    pub(super) language: Language,
    /// The host that the browser asked for, which names this instance.
    pub(super) host: String,
    /// The address of the API, for commands.
    pub(super) api_url: String,
    /// Path and query of the page, below the dashboard's own path.
    pub(super) here: String,
    /// The store's time, as far as it is known.
    pub(super) now: Timestamp,
    /// When the request began.
    pub(super) started: Instant,
    /// Whether the page is asked for with its SQL. Only admins see it.
    pub(super) asks_for_sql: bool,
    /// `None` on pages that need no sign-in.
    pub(super) caller: Option<ApiCaller>,
}

impl Visitor {
    pub(super) fn t(&self) -> &'static Texts {
        Texts::of(self.language)
    }

    /// Returns the texts of charts and of the pages with them.
    pub(super) fn charts(&self) -> &'static chart_texts::Texts {
        chart_texts::Texts::of(self.language)
    }

    /// Returns the texts of the pages of keys and of the audit trail.
    pub(super) fn key_texts(&self) -> &'static KeyTexts {
        KeyTexts::of(self.language)
    }

    /// Returns the caller of a page that needs one.
    pub(super) fn caller(&self) -> Result<&ApiCaller, PageRefusal> {
        self.caller.as_ref().ok_or_else(|| PageRefusal {
            status: StatusCode::UNAUTHORIZED.as_u16(),
            title: self.t().sign_in.to_owned(),
            detail: self.t().token_wrong.to_owned(),
            code: None,
        })
    }

    /// Whether the buttons of operators are shown. The API decides again.
    pub(super) fn can_act(&self) -> bool {
        self.caller.as_ref().is_some_and(|caller| caller.require_operator().is_ok())
    }

    /// Returns the name that is recorded while nobody signs in.
    pub(super) fn local_name(&self) -> Option<&str> {
        self.caller.as_ref().filter(|caller| caller.token.is_none()).map(|caller| &*caller.name)
    }

    /// Returns a command that sends a request to this server. A token is named by its variable, and never shown.
    pub(super) fn curl(&self, options: &str, path: &str) -> String {
        let has_token = self.caller.as_ref().is_some_and(|caller| caller.token.is_some());
        let token = if has_token { " -H \"Authorization: Bearer $ICHIDO_TOKEN\"" } else { "" };
        format!("curl {options} {}{token}", shell_quoted(&format!("{}{path}", self.api_url)))
    }

    /// Whether the SQL of pages may be shown.
    fn may_see_sql(&self) -> bool {
        self.caller.as_ref().is_some_and(|caller| caller.role == TokenRole::Admin)
    }

    /// Returns a stored time for a page.
    pub(super) fn time(&self, text: &str) -> ShownTime {
        ShownTime::new(self.t(), text, self.now)
    }
}

/// Quotes a text for a shell. A character that cannot be seen, or that turns text around, is written by its bytes, as bash and zsh read
/// them: what is shown is what is run.
pub(super) fn shell_quoted(text: &str) -> String {
    let is_hidden = |mark: char| {
        let one = mark.to_string();
        visible_lines(&one) != one
    };
    if !text.contains(is_hidden) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let mut quoted = "$'".to_owned();
    for mark in text.chars() {
        match mark {
            '\'' | '\\' => quoted.extend(['\\', mark]),
            hidden if is_hidden(hidden) => {
                for byte in hidden.to_string().bytes() {
                    _ = write!(quoted, "\\{byte:03o}");
                }
            }
            plain => quoted.push(plain),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
impl Visitor {
    /// Returns a visitor who is not signed in.
    pub(super) fn new_for_tests(language: Language) -> Self {
        Self {
            language,
            host: String::new(),
            api_url: String::new(),
            here: "/".to_owned(),
            now: Timestamp::EPOCH,
            started: Instant::now(),
            asks_for_sql: false,
            caller: None,
        }
    }
}

/// A link to a page.
pub(super) struct NavigationItem {
    pub(super) path: &'static str,
    /// The key that leads there, after `g`.
    pub(super) key: &'static str,
    pub(super) name: &'static str,
    pub(super) is_here: bool,
    /// What waits there for a person, if that is known. The pages under "More" have none.
    pub(super) count: Option<usize>,
    /// What the count adds up.
    pub(super) note: Option<String>,
}

/// The largest number on a badge, which has room for so many digits.
const MAX_ON_BADGE: usize = 99;

impl NavigationItem {
    /// Returns what its badge says: nothing if nothing waits there.
    pub(super) fn badge(&self) -> Option<String> {
        self.count.map(|count| match count {
            0 => String::new(),
            1..=MAX_ON_BADGE => count.to_string(),
            _ => format!("{MAX_ON_BADGE}+"),
        })
    }
}

/// How many pages the navigation shows in its row; the others are under "More".
const MAX_IN_ROW: usize = 6;

/// What the frame of every page shows.
pub(super) struct Shell {
    pub(super) t: &'static Texts,
    /// The texts of the frame itself.
    pub(super) f: &'static frame_texts::Texts,
    pub(super) terms: &'static Terms,
    pub(super) title: String,
    pub(super) instance: String,
    pub(super) base: String,
    pub(super) here: String,
    pub(super) assets: &'static AssetPaths,
    /// The tone of this instance, and its icon.
    pub(super) tone: &'static str,
    pub(super) icon: String,
    /// The event stream of this page.
    pub(super) live: Option<String>,
    /// Whether the page only says that the store does not respond.
    pub(super) is_outage: bool,
    pub(super) started: Instant,
    /// Where the SQL of this page is shown, or hidden again.
    pub(super) sql_href: Option<String>,
    pub(super) shows_sql: bool,
    pub(super) is_admitted: bool,
    pub(super) is_signed_in: bool,
    pub(super) is_open: bool,
    pub(super) who: String,
    pub(super) role: &'static str,
    pub(super) navigation: Vec<NavigationItem>,
}

/// Returns who is signed in. A token is often named like its role.
fn name_and_role(name: &str, role: &str) -> String {
    if name == role { role.to_owned() } else { format!("{name} · {role}") }
}

/// Returns the pages in the row, and those under "More". One page alone needs no "More".
fn split<T>(navigation: &[T]) -> (&[T], &[T]) {
    let in_row = if navigation.len() <= MAX_IN_ROW + 1 { navigation.len() } else { MAX_IN_ROW };
    navigation.split_at(in_row)
}

impl Shell {
    /// Returns the pages in the row.
    pub(super) fn row(&self) -> &[NavigationItem] {
        split(&self.navigation).0
    }

    /// Returns the pages under "More".
    pub(super) fn rest(&self) -> &[NavigationItem] {
        split(&self.navigation).1
    }

    /// Returns the page under "More" that is shown.
    pub(super) fn here_in_rest(&self) -> Option<&NavigationItem> {
        self.rest().iter().find(|item| item.is_here)
    }

    /// Shows the page as a part of another one, which its own path does not name.
    pub(super) fn show_under(&mut self, path: &str) {
        for item in &mut self.navigation {
            item.is_here = item.path == path;
        }
    }

    /// Returns who is signed in, and as what.
    pub(super) fn signed_in_as(&self) -> String {
        name_and_role(&self.who, self.role)
    }

    /// Returns what the page has cost until now. A template asks at its end.
    pub(super) fn cost(&self) -> ShownCost {
        let cost = page_reads::cost().unwrap_or_default();
        ShownCost::new(self.f, &cost, self.started.elapsed(), self.shows_sql)
    }
}

impl Dashboard {
    /// Returns the frame of a page.
    pub(super) fn shell(&self, visitor: &Visitor, title: impl Into<String>) -> Shell {
        let t = visitor.t();
        let caller = visitor.caller.as_ref();
        let is_signed_in = caller.is_some_and(|caller| caller.token.is_some());
        let Instance { name, colour } = &self.api.instance;
        let shows_sql = visitor.asks_for_sql && visitor.may_see_sql();
        let sql_href = if shows_sql { visitor.here.clone() } else { with_explain(&visitor.here) };
        Shell {
            t,
            f: frame_texts::Texts::of(visitor.language),
            terms: Terms::of(visitor.language),
            title: title.into(),
            instance: name.clone().unwrap_or_else(|| visitor.host.clone()),
            base: self.base.clone(),
            here: visitor.here.clone(),
            assets: &PATHS,
            tone: colour.tone(),
            icon: icon_path(*colour),
            live: None,
            is_outage: false,
            started: visitor.started,
            sql_href: visitor.may_see_sql().then_some(sql_href),
            shows_sql,
            is_admitted: caller.is_some(),
            is_signed_in,
            is_open: caller.is_some() && !is_signed_in,
            who: caller.map(|caller| caller.name.clone()).unwrap_or_default(),
            role: caller.map_or("", |caller| role(t, &caller.role)),
            navigation: self.navigation(visitor),
        }
    }

    fn navigation(&self, visitor: &Visitor) -> Vec<NavigationItem> {
        let (t, k, c) = (visitor.t(), visitor.key_texts(), visitor.charts());
        let b = BulkTexts::of(visitor.language);
        let section = visitor.here.split(['?', '/']).nth(1).unwrap_or_default();
        // The badges come from the last sample and read nothing.
        let latest = self.sampler.latest();
        // A number that is not known is not shown as 0. The page of dead letters lists the parked messages too.
        let letters = latest
            .as_ref()
            .map(|sample| (sample.open_letters(), usize::try_from(total(sample).parked).unwrap_or_default()));
        let waiting = letters.map(|(dead, parked)| dead.saturating_add(parked));
        let note = letters.filter(|letters| *letters != (0, 0)).map(|(dead, parked)| {
            let more = if dead < MAX_COUNTED as usize { "" } else { "+" };
            let values = [("dead", &*format!("{dead}{more}")), ("parked", &*parked.to_string())];
            fill(frame_texts::Texts::of(visitor.language).badge_letters, &values)
        });
        let firing = latest.as_ref().map(|sample| sample.alerts.len());
        let unknown =
            latest.as_ref().map(|sample| usize::try_from(sample.unknown_keys).unwrap_or(usize::MAX));
        let item = |path: &'static str, key, name, count| NavigationItem {
            path,
            key,
            name,
            is_here: path.trim_start_matches('/') == section,
            count,
            note: None,
        };
        vec![
            // The first ones are in the row, the others under "More".
            item("/", "o", t.overview, None),
            item("/messages", "m", t.messages, None),
            NavigationItem { note, ..item("/dead-letters", "d", t.dead_letters, waiting) },
            item("/queues", "q", t.queues, None),
            item("/keys", "k", k.keys, unknown),
            item("/alerts", "a", t.alerts, firing),
            item("/destinations", "t", c.destinations, None),
            item("/operations", "p", b.operations, None),
            item("/models", "l", c.models, None),
            item("/nodes", "n", t.nodes, None),
            item("/boundaries", "b", k.boundaries, None),
            item("/audit", "u", k.audit, None),
        ]
    }

    /// Returns a refusal as a page.
    pub(super) fn failure(&self, visitor: &Visitor, refusal: PageRefusal) -> Response {
        let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let title = visitor.t().failure;
        let PageRefusal { title: what, detail, code, .. } = refusal;
        let mut shell = self.shell(visitor, title);
        shell.is_outage = status == StatusCode::SERVICE_UNAVAILABLE;
        html(status, &FailurePage { shell, title: what, detail, code })
    }
}

fn role(t: &'static Texts, role: &TokenRole) -> &'static str {
    match role {
        TokenRole::Viewer => t.role_viewer,
        TokenRole::Operator => t.role_operator,
        TokenRole::Admin => t.role_admin,
        TokenRole::Producer { .. } => "",
    }
}

#[derive(Template)]
#[template(path = "failure.html")]
struct FailurePage {
    shell: Shell,
    title: String,
    detail: String,
    code: Option<String>,
}

/// Renders a page.
pub(super) fn html(status: StatusCode, page: &impl Template) -> Response {
    match page.render() {
        Ok(text) => with_type(status, "text/html; charset=utf-8", text),
        Err(error) => {
            tracing::error!(%error, "failed to render a page");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Why a page is not shown. The members are those of a problem of the API.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct PageRefusal {
    pub(super) status: u16,
    pub(super) title: String,
    pub(super) detail: String,
    pub(super) code: Option<String>,
}

impl From<Problem> for PageRefusal {
    fn from(problem: Problem) -> Self {
        Self {
            status: problem.status.as_u16(),
            title: problem.code.title().to_owned(),
            detail: problem.detail.clone().into_owned(),
            code: Some(problem.code.as_str().to_owned()),
        }
    }
}

impl From<StoreError> for PageRefusal {
    fn from(error: StoreError) -> Self {
        Problem::from(error).into()
    }
}

/// Becomes a page in the frame, which knows the visitor.
impl IntoResponse for PageRefusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_a_command_cannot_end_its_quotes() {
        assert_eq!(shell_quoted("a'; rm -rf / #"), r"'a'\''; rm -rf / #'");
        assert_eq!(
            shell_quoted("a\n\u{202e}b'\\"),
            "$'a\n\\342\\200\\256b\\'\\\\'",
            "it is not turned around"
        );
    }

    #[test]
    fn a_token_that_is_named_like_its_role_is_said_once() {
        assert_eq!(name_and_role("ann", "operator"), "ann · operator");
        assert_eq!(name_and_role("operator", "operator"), "operator");
    }

    #[test]
    fn rarely_used_pages_are_under_more() {
        for (pages, in_row) in [(0, 0), (5, 5), (7, 7), (8, 6), (12, 6)] {
            let navigation = vec![(); pages];
            let (row, rest) = split(&navigation);
            assert_eq!((row.len(), rest.len()), (in_row, pages - in_row), "{pages} pages");
        }
    }
}
