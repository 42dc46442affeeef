//! The page of nodes.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

use super::Dashboard;
use super::messages::short_id;
use super::moments::ShownTime;
use super::shell::{PageRefusal, Shell, Visitor, html};

/// Maximum nodes on the page. All that were ever seen are kept, and most are gone.
const MAX_NODES: usize = 100;

#[derive(Template)]
#[template(path = "nodes.html")]
struct NodesPage {
    shell: Shell,
    rows: Vec<NodeLine>,
    left_out: usize,
}

/// A node in the table.
struct NodeLine {
    id: String,
    short_id: String,
    name: String,
    mark: &'static str,
    class: &'static str,
    condition: &'static str,
    started: ShownTime,
    seen: ShownTime,
}

/// Lists the nodes, those alive first.
pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
) -> Result<Response, PageRefusal> {
    let sample = dashboard.sampler.get(&dashboard.api).await?;
    let t = visitor.t();
    let (alive, gone): (Vec<_>, Vec<_>) = sample.nodes.iter().partition(|node| node.alive);
    let rows: Vec<NodeLine> = alive
        .into_iter()
        .chain(gone)
        .take(MAX_NODES)
        .map(|node| NodeLine {
            short_id: short_id(&node.id.to_string()),
            id: node.id.to_string(),
            name: node.name.clone(),
            mark: if node.alive { "check" } else { "down" },
            class: if node.alive { "good" } else { "quiet" },
            condition: if node.alive { t.alive } else { t.gone },
            started: visitor.time(&node.started_at),
            seen: visitor.time(&node.seen_at),
        })
        .collect();
    let left_out = sample.nodes.len() - rows.len();
    let mut shell = dashboard.shell(&visitor, t.nodes);
    shell.live = Some("/live".to_owned());
    Ok(html(StatusCode::OK, &NodesPage { shell, rows, left_out }))
}
