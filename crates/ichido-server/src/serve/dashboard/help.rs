//! The page of words, states and keys.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use ichido_core::lifecycle::StateName;

use super::super::problem::{Code, Problem};
use super::Dashboard;
use super::marks;
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::terms::{Term, Terms};

#[derive(Template)]
#[template(path = "help.html")]
struct HelpPage {
    shell: Shell,
    states: Vec<StateHelp>,
}

#[derive(Template)]
#[template(path = "guide.html")]
struct GuidePage {
    shell: Shell,
    term: Term,
}

/// A state with its meaning.
struct StateHelp {
    mark: &'static str,
    class: &'static str,
    name: &'static str,
    text: &'static str,
}

/// Explains the words of the dashboard. It shows nothing of the store.
pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
) -> Response {
    let t = visitor.t();
    let states = [
        (StateName::Queued, t.about_queued),
        (StateName::Sending, t.about_sending),
        (StateName::Failed, t.about_failed),
        (StateName::Parked, t.about_parked),
        (StateName::Sent, t.about_sent),
        (StateName::Dead, t.about_dead),
        (StateName::Cancelled, t.about_cancelled),
    ];
    let states = states.map(|(state, text)| {
        let shown = marks::of_state(state.as_str());
        StateHelp { mark: shown.mark, class: shown.class, name: marks::state_name(t, state.as_str()), text }
    });
    html(StatusCode::OK, &HelpPage { shell: dashboard.shell(&visitor, t.help), states: states.into() })
}

/// Shows the guide of a term, as the documentation has it.
pub(super) async fn guide(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
) -> Result<Response, PageRefusal> {
    let terms = Terms::of(visitor.language).all();
    let term = terms.into_iter().find(|term| term.id == name);
    let term =
        term.ok_or_else(|| Problem::new(Code::RouteUnknown, "no term has this name; the help lists all"))?;
    let shell = dashboard.shell(&visitor, term.name);
    Ok(html(StatusCode::OK, &GuidePage { shell, term }))
}
