//! Boundary files over HTTP: what the configuration names, and what the rules find in it.
//!
//! Guarantee: the files are read and checked once, when the server starts. A finding keeps nothing from working here: the proxies,
//! which run on these files, refuse errors themselves.

// Spec: C8.

#![allow(missing_docs, reason = "a comment on a member is its description in docs/openapi.json")]

use axum::response::Response;
use http::StatusCode;
use ichido_boundary::{Boundary, Finding, check, hop_chains};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::problem::Problem;
use super::request::{AuthorizedRequest, Viewer};
use super::response::json;

/// Boundary files, in the order of their hop chains, and their findings.
pub(super) struct LoadedBoundaries {
    pub(super) files: Vec<Boundary>,
    pub(super) findings: Vec<Finding>,
}

impl LoadedBoundaries {
    pub(super) fn new(files: &[Boundary]) -> Self {
        // From the browser to the adapter, one chain after the other.
        let sorted = hop_chains(files).iter().flat_map(|chain| chain.files().cloned()).collect();
        Self { files: sorted, findings: check(files) }
    }
}

/// The boundary files of the server's configuration.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct Boundaries {
    /// From the browser to the adapter; one hop chain after the other.
    pub files: Vec<BoundaryFile>,
    /// What `ichido check` finds in them; empty if nothing is wrong.
    pub findings: Vec<BoundaryFinding>,
}

/// A boundary file.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct BoundaryFile {
    /// Its path, as the configuration names it.
    pub file: String,
    /// The boundary, such as `bff_to_gateway`.
    pub boundary: String,
    /// Who sends across it: `browser`, `bff`, `gateway` or `adapter`.
    pub sender: String,
    /// Who receives: `bff`, `gateway`, `adapter` or `service`.
    pub receiver: String,
    /// What the receiver does with idempotency keys, such as `validate_only` or `enabled`; null if the file does not say.
    pub mode: Option<String>,
    /// The text of the file.
    pub text: String,
}

/// A broken rule.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct BoundaryFinding {
    /// The rule, such as `ICH-B001`; `ichido check --explain` describes it.
    pub rule: String,
    /// `error` or `warning`.
    pub severity: String,
    /// What the rule requires.
    pub title: String,
    pub file: String,
    pub line: usize,
    pub column: usize,
    /// The JSON pointer to the value, whether it exists or not.
    pub pointer: String,
    /// What is wrong.
    pub what: String,
    /// How to fix it.
    pub help: String,
}

impl BoundaryFile {
    fn new(file: &Boundary) -> Self {
        let name = file.name();
        Self {
            file: file.file().to_owned(),
            boundary: name.as_str().to_owned(),
            sender: name.sender().as_str().to_owned(),
            receiver: name.receiver().as_str().to_owned(),
            mode: file.http.idempotency.mode.map(|mode| mode.as_str().to_owned()),
            text: file.text().to_owned(),
        }
    }
}

impl BoundaryFinding {
    fn new(Finding { rule, place, what, help }: &Finding) -> Self {
        Self {
            rule: rule.id.to_owned(),
            severity: rule.severity.as_str().to_owned(),
            title: rule.title.to_owned(),
            file: place.file.clone(),
            line: place.at.line,
            column: place.at.column,
            pointer: place.pointer.clone(),
            what: what.clone(),
            help: help.clone(),
        }
    }
}

/// Lists the boundary files that the server's configuration names, with the findings of `ichido check`.
#[utoipa::path(
    get,
    path = "/v1/boundaries",
    responses(
        (status = 200, description = "The files and their findings", body = Boundaries),
    )
)]
pub(super) async fn list_boundaries(
    AuthorizedRequest { api, .. }: AuthorizedRequest<Viewer>,
) -> Result<Response, Problem> {
    let LoadedBoundaries { files, findings } = &api.boundaries;
    let files = files.iter().map(BoundaryFile::new).collect();
    let findings = findings.iter().map(BoundaryFinding::new).collect();
    Ok(json(StatusCode::OK, &Boundaries { files, findings }))
}
