//! The page of boundary files: the key's way from the browser to the adapter, with what the rules find in it; and the page of a rule.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use ichido_boundary::{Name, Party};

use super::super::boundaries::{Boundaries, BoundaryFile, BoundaryFinding};
use super::super::problem::{Code, Problem};
use super::Dashboard;
use super::key_texts::Texts as KeyTexts;
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::texts::{fill, without_backticks};

#[derive(Template)]
#[template(path = "boundaries.html")]
struct BoundariesPage {
    shell: Shell,
    k: &'static KeyTexts,
    chains: Vec<Vec<ChainStep>>,
    files: Vec<BoundaryFile>,
    verdict: String,
    findings: Vec<ShownFinding>,
}

/// A box of the drawing, or the boundary between two.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ChainStep {
    Party { name: &'static str },
    Boundary(ShownBoundary),
}

/// A boundary that the key crosses.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ShownBoundary {
    name: String,
    /// `None` if no file is about it.
    file: Option<String>,
    mode: &'static str,
    mark: &'static str,
    class: &'static str,
    findings: Option<String>,
}

/// A broken rule, once for all places where the same is wrong.
struct ShownFinding {
    rule: String,
    title: String,
    what: String,
    help: String,
    places: Vec<FindingPlace>,
    mark: &'static str,
    class: &'static str,
    severity: &'static str,
}

/// Where a rule is broken.
struct FindingPlace {
    /// File, line and column.
    at: String,
    pointer: String,
}

impl ShownBoundary {
    /// Returns its name in parts, between which a line may end.
    fn name_parts(&self) -> Vec<&str> {
        parts(&self.name)
    }

    /// Returns the path of its file in parts.
    fn file_parts(&self) -> Vec<&str> {
        self.file.as_deref().map(parts).unwrap_or_default()
    }
}

fn parts(name: &str) -> Vec<&str> {
    name.split_inclusive(['_', '/']).collect()
}

#[derive(Template)]
#[template(path = "rule.html")]
struct RulePage {
    shell: Shell,
    k: &'static KeyTexts,
    id: &'static str,
    title: String,
    severity: &'static str,
    why: String,
    help: String,
}

/// Shows the boundary files of the configuration.
pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
) -> Result<Response, PageRefusal> {
    let k = visitor.key_texts();
    let Boundaries { files, findings } = dashboard.read(visitor.caller()?, "/v1/boundaries").await?;
    let page = BoundariesPage {
        shell: dashboard.shell(&visitor, k.boundaries),
        k,
        chains: chains(&files).into_iter().map(|chain| steps(k, &chain, &findings)).collect(),
        verdict: count(k, findings.len()).unwrap_or_else(|| k.no_findings.to_owned()),
        findings: shown(k, findings),
        files,
    };
    Ok(html(StatusCode::OK, &page))
}

/// Explains a rule.
pub(super) async fn rule(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Response, PageRefusal> {
    let k = visitor.key_texts();
    let rule = ichido_boundary::rule(&id).ok_or_else(|| {
        Problem::new(Code::RouteUnknown, "no rule has this id; `ichido check --explain` lists all rules")
    })?;
    let page = RulePage {
        shell: dashboard.shell(&visitor, rule.id),
        k,
        id: rule.id,
        title: without_backticks(rule.title),
        severity: severity(k, rule.severity.as_str()).2,
        why: without_backticks(rule.why),
        help: without_backticks(rule.help),
    };
    Ok(html(StatusCode::OK, &page))
}

/// Splits the files into hop chains, which the API lists one after the other, each from the browser on.
fn chains(files: &[BoundaryFile]) -> Vec<Vec<&BoundaryFile>> {
    let mut chains: Vec<Vec<&BoundaryFile>> = Vec::new();
    for file in files {
        let goes_on = |chain: &Vec<&BoundaryFile>| {
            chain.last().is_some_and(|last| Name::parse(&last.boundary) < Name::parse(&file.boundary))
        };
        match chains.last_mut().filter(|chain| goes_on(chain)) {
            Some(chain) => chain.push(file),
            None => chains.push(vec![file]),
        }
    }
    chains
}

/// Returns a chain as it is drawn: a box for each party, and the boundary after it. Boundaries without a file are shown as missing.
fn steps(k: &'static KeyTexts, chain: &[&BoundaryFile], findings: &[BoundaryFinding]) -> Vec<ChainStep> {
    let mut steps = Vec::new();
    for name in Name::ALL {
        let file = chain.iter().find(|file| file.boundary == name.as_str());
        // The adapter's own file is optional.
        if file.is_none() && name == Name::Adapter {
            continue;
        }
        steps.push(ChainStep::Party { name: party(k, name.sender()) });
        let count_of = |file: &&BoundaryFile| {
            count(k, findings.iter().filter(|finding| finding.file == file.file).count())
        };
        let (mode, mark, class) = match file.map(|file| file.mode.as_deref()) {
            None => (k.no_file, "ask", "warn"),
            Some(Some("validate_only")) => (k.mode_validate_only, "go", "calm"),
            Some(Some("enabled")) => (k.mode_enabled, "check", "good"),
            Some(Some("disabled")) => (k.mode_disabled, "slash", "bad"),
            // The adapter's own file is about the service, which has no mode.
            Some(None) if name == Name::Adapter => ("", "go", "calm"),
            Some(_) => (k.mode_none, "ask", "warn"),
        };
        steps.push(ChainStep::Boundary(ShownBoundary {
            name: name.as_str().to_owned(),
            file: file.map(|file| file.file.clone()),
            mode,
            mark,
            class,
            findings: file.and_then(count_of),
        }));
        if name == Name::Adapter || (name == Name::GatewayToAdapter && !has(chain, Name::Adapter)) {
            steps.push(ChainStep::Party { name: party(k, name.receiver()) });
        }
    }
    steps
}

fn has(chain: &[&BoundaryFile], name: Name) -> bool {
    chain.iter().any(|file| file.boundary == name.as_str())
}

fn count(k: &KeyTexts, findings: usize) -> Option<String> {
    match findings {
        0 => None,
        1 => Some(k.one_finding.to_owned()),
        count => Some(fill(k.many_findings, &[("n", &count.to_string())])),
    }
}

/// Returns findings; what is wrong in several places is said once.
fn shown(k: &'static KeyTexts, findings: Vec<BoundaryFinding>) -> Vec<ShownFinding> {
    let mut all: Vec<ShownFinding> = Vec::new();
    for finding in findings {
        let BoundaryFinding { rule, severity: word, title, file, line, column, pointer, what, help } =
            finding;
        let (what, help) = (without_backticks(&what), without_backticks(&help));
        let place = FindingPlace { at: format!("{file}:{line}:{column}"), pointer };
        let is_same =
            |known: &&mut ShownFinding| (&known.rule, &known.what, &known.help) == (&rule, &what, &help);
        if let Some(known) = all.iter_mut().find(is_same) {
            known.places.push(place);
            continue;
        }
        let (mark, class, severity) = severity(k, &word);
        let title = without_backticks(&title);
        all.push(ShownFinding { rule, title, what, help, places: vec![place], mark, class, severity });
    }
    all
}

fn severity(k: &'static KeyTexts, severity: &str) -> (&'static str, &'static str, &'static str) {
    if severity == "error" {
        ("cross", "bad", k.severity_error)
    } else {
        ("bell", "warn", k.severity_warning)
    }
}

fn party(k: &'static KeyTexts, party: Party) -> &'static str {
    match party {
        Party::Browser => k.party_browser,
        Party::Bff => k.party_bff,
        Party::Gateway => k.party_gateway,
        Party::Adapter => k.party_adapter,
        Party::Service => k.party_service,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::dashboard::language::Language;

    fn file(boundary: &str, mode: Option<&str>) -> BoundaryFile {
        BoundaryFile {
            file: format!("{boundary}.json"),
            boundary: boundary.to_owned(),
            sender: String::new(),
            receiver: String::new(),
            mode: mode.map(str::to_owned),
            text: String::new(),
        }
    }

    /// Returns a chain in short: parties, and boundaries with their marks.
    fn drawn(chain: &[&BoundaryFile]) -> String {
        let steps = steps(KeyTexts::of(Language::English), chain, &[]);
        let words = steps.iter().map(|step| match step {
            ChainStep::Party { name } => (*name).to_owned(),
            ChainStep::Boundary(boundary) => format!("{}:{}", boundary.name, boundary.mark),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_way_of_a_key_is_drawn_from_browser_to_service() {
        let files = [
            file("browser_to_bff", Some("validate_only")),
            file("gateway_to_adapter", Some("enabled")),
            file("adapter", None),
        ];
        assert_eq!(
            drawn(&files.iter().collect::<Vec<_>>()),
            "Browser browser_to_bff:go BFF bff_to_gateway:ask Gateway gateway_to_adapter:check Adapter adapter:go Service"
        );
        let without = [file("bff_to_gateway", Some("disabled"))];
        assert_eq!(
            drawn(&without.iter().collect::<Vec<_>>()),
            "Browser browser_to_bff:ask BFF bff_to_gateway:slash Gateway gateway_to_adapter:ask Adapter"
        );
    }

    #[test]
    fn the_same_finding_is_shown_once_with_all_its_places() {
        let finding = |what: &str, line| BoundaryFinding {
            rule: "ICH-B090".to_owned(),
            severity: "warning".to_owned(),
            title: String::new(),
            file: "b.json".to_owned(),
            line,
            column: 1,
            pointer: "/note".to_owned(),
            what: what.to_owned(),
            help: String::new(),
        };
        let findings =
            vec![finding("`note` is unknown", 1), finding("other", 2), finding("`note` is unknown", 3)];
        let shown = shown(KeyTexts::of(Language::English), findings);
        let words = shown.iter().map(|shown| {
            let places: Vec<&str> = shown.places.iter().map(|place| place.at.as_str()).collect();
            format!("{}: {}", shown.what, places.join(", "))
        });
        let words: Vec<String> = words.collect();
        assert_eq!(words, ["“note” is unknown: b.json:1:1, b.json:3:1", "other: b.json:2:1"]);
    }

    #[test]
    fn a_file_name_ends_its_lines_between_words() {
        assert_eq!(parts("boundaries/browser_to_bff.json"), ["boundaries/", "browser_", "to_", "bff.json"]);
    }

    #[test]
    fn two_chains_are_drawn_apart() {
        let files = [
            file("browser_to_bff", None),
            file("adapter", None),
            file("browser_to_bff", None),
            file("bff_to_gateway", None),
        ];
        let lengths: Vec<usize> = chains(&files).iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, 2]);
    }
}
