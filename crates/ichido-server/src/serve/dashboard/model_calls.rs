//! The page of language models: calls, tokens, and what may have been billed twice.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};
use ichido_core::series::SeriesSubject;
use ichido_http::clock;
use ichido_store::counters::SubjectCounts;

use super::Dashboard;
use super::chart_texts::Texts;
use super::charts::{ChartSubject, Charts, shown_count};
use super::overview::chart_range;
use super::shell::{PageRefusal, Shell, Visitor, html};

/// Maximum models in the table.
const MAX_SHOWN: usize = 100;

#[derive(Template)]
#[template(path = "models.html")]
struct ModelsPage {
    shell: Shell,
    ct: &'static Texts,
    charts: Charts,
    rows: Vec<ModelRow>,
}

/// A language model in the table.
struct ModelRow {
    name: String,
    cells: [String; 6],
}

/// Lists the models that were called, those with the most calls first.
pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    uri: Uri,
) -> Result<Response, PageRefusal> {
    let ct = visitor.charts();
    let (range, now) = (chart_range(&uri)?, dashboard.sampler.now(clock::now()));
    let series = dashboard.charts.series(&dashboard.api, &SeriesSubject::Models, range, now).await?;
    let models = dashboard.charts.models(&dashboard.api, range).await?;
    let mut counted: Vec<(&str, &SubjectCounts)> = models
        .iter()
        .filter_map(|(subject, counts)| match subject {
            SeriesSubject::Model(name) => Some((name.as_str(), counts)),
            _ => None,
        })
        .collect();
    counted.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.executed));
    let mut shell = dashboard.shell(&visitor, ct.models);
    shell.live = Some("/live".to_owned());
    let page = ModelsPage {
        ct,
        charts: Charts::new(ct, ChartSubject::Models, range, "/models", &series),
        rows: counted.into_iter().take(MAX_SHOWN).map(|(name, counts)| row(name, counts)).collect(),
        shell,
    };
    Ok(html(StatusCode::OK, &page))
}

fn row(name: &str, counts: &SubjectCounts) -> ModelRow {
    let numbers = [
        counts.executed,
        counts.retried,
        counts.throttled,
        counts.billed_twice,
        counts.tokens_in,
        counts.tokens_out,
    ];
    ModelRow { name: name.to_owned(), cells: numbers.map(shown_count) }
}
