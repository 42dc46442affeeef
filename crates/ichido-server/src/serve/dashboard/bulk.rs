//! The page before a bulk operation: what will happen, to how many, and why not to the others. Then its start.
//!
//! Guarantee: nothing starts before a person has typed the number of messages. The operation gets the time of the count that the person
//! saw, so a message that dies later is not part of it, and it does not start if more messages than confirmed would be moved.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use http::{Method, StatusCode, Uri};
use ichido::dead_letters::Canary;
use serde_json::{Value, json};

use super::super::operations::{Preview, StartedOperation};
use super::super::problem::{Code, Problem};
use super::super::request::query_pairs;
use super::bulk_plan::{BulkPlan, BulkStep, FILTER, Finding, address, typed_count};
use super::bulk_texts::Texts as BulkTexts;
use super::call::collect;
use super::message::Notice;
use super::message_texts::Fact;
use super::moments::{full, grouped};
use super::operation::LaterLetters;
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::sign_in::{FormFields, check_names, read_form};
use super::texts::fill;
use super::{Dashboard, see_other};

/// The parameters of an operation beside its filter.
const STEP: [&str; 2] = ["action", "decision"];
/// What a person confirms.
const CONFIRMATION: [&str; 5] = ["as_of", "confirmed", "typed", "reason", "canary"];
/// Maximum queues and codes in the tables; an operation rarely has more.
const MAX_COUNTS: usize = 20;

#[derive(Template)]
#[template(path = "bulk.html")]
struct BulkPage {
    shell: Shell,
    b: &'static BulkTexts,
    title: &'static str,
    effect: &'static str,
    notice: Option<Notice>,
    scope: Vec<Fact>,
    /// What the operation leaves out.
    later: Option<LaterLetters>,
    rows_href: String,
    choices: Vec<Choice>,
    preview: Option<ShownPreview>,
}

/// One of the decisions.
struct Choice {
    name: &'static str,
    effect: &'static str,
    href: String,
    is_here: bool,
}

/// What would happen.
struct ShownPreview {
    mark: &'static str,
    class: &'static str,
    sentence: String,
    counted: String,
    refused: Vec<RefusedLine>,
    codes: Vec<CountLine>,
    queues: Vec<CountLine>,
    form: Option<StartForm>,
}

/// Messages that are refused for one reason.
pub(super) struct RefusedLine {
    pub(super) queue: Option<String>,
    pub(super) count: String,
    pub(super) why: String,
}

/// A number of messages with something in common.
struct CountLine {
    name: String,
    count: String,
    href: String,
}

/// The form that starts the operation.
struct StartForm {
    fields: Vec<(&'static str, String)>,
    canary: Option<String>,
    needs_reason: bool,
    reason: String,
    type_count: String,
    button: String,
}

/// Shows what would happen.
pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    uri: Uri,
) -> Result<Response, PageRefusal> {
    let query = query_pairs(&uri)?;
    check_names(visitor.t(), &query, &[&STEP[..], &FILTER].concat())?;
    let get = |wanted: &str| query.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let plan = BulkPlan::parse(get).ok_or_else(|| action_unknown(&visitor))?;
    page(&dashboard, &visitor, StatusCode::OK, &plan, None, None).await
}

/// Starts it, if the person typed the number of messages.
pub(super) async fn start(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Result<Response, PageRefusal> {
    let b = BulkTexts::of(visitor.language);
    let (head, body) = request.into_parts();
    let form = read_form(&head.headers, body).await?;
    form.check(visitor.t(), &[&STEP[..], &FILTER, &CONFIRMATION].concat())?;
    let plan = BulkPlan::parse(|name| form.get(name)).ok_or_else(|| action_unknown(&visitor))?;
    let refused = async |status: u16, text: String| {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::CONFLICT);
        let notice = Notice { class: "refused", text };
        page(&dashboard, &visitor, status, &plan, Some(&form), Some(notice)).await
    };
    let typed = form.get("typed").unwrap_or_default();
    let confirmed = form.get("confirmed").and_then(typed_count);
    let Some(confirmed) = confirmed.filter(|confirmed| typed_count(typed) == Some(*confirmed)) else {
        let number = confirmed.map(|confirmed| confirmed.to_string()).unwrap_or_default();
        return refused(422, fill(b.typed_wrong, &[("n", &number), ("typed", typed)])).await;
    };
    if plan.needs_reason() && form.get("reason").unwrap_or_default().trim().is_empty() {
        return refused(422, b.reason_needed.to_owned()).await;
    }
    let mut members = plan.to_body();
    members.insert("confirmed".to_owned(), confirmed.into());
    members.insert("canary".to_owned(), Value::Bool(plan.sends() && form.get("canary").is_some()));
    members.extend(text_member(&form, "as_of"));
    members.extend(text_member(&form, "reason"));
    let body = Value::Object(members).to_string();
    match dashboard.call(visitor.caller()?, Method::POST, "/v1/operations", body).await {
        Ok(response) => {
            dashboard.sampler.forget();
            let started: StartedOperation = decode(&collect(response).await?)?;
            match started.operation {
                Some(operation) => Ok(see_other(&dashboard.base, &format!("/operations/{}", operation.id))),
                None => refused(409, b.nothing_to_do.to_owned()).await,
            }
        }
        Err(refusal) if matches!(refusal.status, 400 | 409 | 422) => {
            refused(refusal.status, fill(b.not_started, &[("why", &refusal.detail)])).await
        }
        Err(refusal) => Err(refusal),
    }
}

/// Returns the page; after a refusal with the count that the person saw, so nothing later slips in.
async fn page(
    dashboard: &Dashboard,
    visitor: &Visitor,
    status: StatusCode,
    plan: &BulkPlan,
    form: Option<&FormFields>,
    notice: Option<Notice>,
) -> Result<Response, PageRefusal> {
    let b = BulkTexts::of(visitor.language);
    let preview = if plan.step == BulkStep::Decide(None) {
        None
    } else {
        let mut body = plan.to_body();
        body.insert("preview".to_owned(), json!(true));
        if plan.needs_reason() {
            // A preview stores none.
            body.insert("reason".to_owned(), json!("-"));
        }
        body.extend(form.and_then(|form| text_member(form, "as_of")));
        let body = Value::Object(body).to_string();
        let response = dashboard.call(visitor.caller()?, Method::POST, "/v1/operations", body).await?;
        let found: StartedOperation = decode(&collect(response).await?)?;
        let reason = form.and_then(|form| form.get("reason")).unwrap_or_default();
        Some(shown_preview(b, plan, found.preview, reason))
    };
    let scope = dashboard.scope(visitor, plan).await?;
    let later = LaterLetters::read(dashboard, visitor, plan).await?;
    let mut shell = dashboard.shell(visitor, plan.title(b));
    shell.here = plan.href();
    let page = BulkPage {
        b,
        title: plan.title(b),
        effect: plan.effect(b),
        notice,
        scope,
        later,
        rows_href: plan.rows_href(),
        choices: if matches!(plan.step, BulkStep::Decide(_)) { choices(b, plan) } else { Vec::new() },
        preview,
        shell,
    };
    Ok(html(status, &page))
}

fn choices(b: &'static BulkTexts, plan: &BulkPlan) -> Vec<Choice> {
    let choice = |finding| {
        let other = plan.with(finding);
        Choice { name: other.title(b), effect: other.effect(b), href: other.href(), is_here: other == *plan }
    };
    // A dead letter that cannot be found out stays what it is.
    let findings = Finding::ALL.into_iter().filter(|finding| plan.is_parked() || *finding != Finding::GiveUp);
    findings.map(choice).collect()
}

fn shown_preview(b: &'static BulkTexts, plan: &BulkPlan, preview: Preview, reason: &str) -> ShownPreview {
    let done = plan.step.done(b);
    let count = |count: u64| grouped(i64::try_from(count).unwrap_or(i64::MAX));
    let refused_count: u64 = preview.refused.iter().map(|refused| refused.count).sum();
    let (eligible, matched, refused) =
        (count(preview.eligible), count(preview.matched), count(refused_count));
    let (mark, class, text) = match (preview.matched, preview.eligible) {
        (0, _) => ("none", "quiet", b.nothing_matches),
        (_, 0) => ("slash", "warn", b.will_none),
        (matched, eligible) if matched == eligible => ("go", "calm", b.will_all),
        _ => ("go", "calm", b.will_some),
    };
    let values = [("eligible", &*eligible), ("matched", &*matched), ("refused", &*refused), ("done", done)];
    let lines = |name: &'static str, counts: &std::collections::BTreeMap<String, u64>| -> Vec<CountLine> {
        let mut counts: Vec<(&String, &u64)> = counts.iter().collect();
        counts.sort_by(|a, b| b.1.cmp(a.1));
        let line = |(of, messages): (&String, &u64)| CountLine {
            href: narrowed(plan, name, of),
            name: if of.is_empty() { b.no_code.to_owned() } else { of.clone() },
            count: count(*messages),
        };
        counts.into_iter().take(MAX_COUNTS).map(line).collect()
    };
    let refused_line = |refused: super::super::operations::RefusedLetters| RefusedLine {
        queue: Some(refused.queue),
        count: count(refused.count),
        why: refused.detail,
    };
    ShownPreview {
        mark,
        class,
        sentence: fill(text, &values),
        counted: fill(b.counted_at, &[("when", &full(&preview.as_of))]),
        codes: lines("code", &preview.errors),
        queues: lines("queue", &preview.queues),
        form: (0 < preview.eligible).then(|| start_form(b, plan, &preview, reason)),
        refused: preview.refused.into_iter().map(refused_line).collect(),
    }
}

/// Returns the address of the messages with this value in addition.
fn narrowed(plan: &BulkPlan, name: &'static str, value: &str) -> String {
    let rows = plan.rows_href();
    if value.is_empty() || plan.get(name).is_some() {
        return rows;
    }
    let more = address("", &[(name, value.to_owned())]);
    rows + &more.replacen('?', "&", 1)
}

fn start_form(b: &'static BulkTexts, plan: &BulkPlan, preview: &Preview, reason: &str) -> StartForm {
    let number = grouped(i64::try_from(preview.eligible).unwrap_or(i64::MAX));
    let mut fields = plan.pairs();
    fields.push(("as_of", preview.as_of.clone()));
    fields.push(("confirmed", preview.eligible.to_string()));
    let button = match plan.step {
        BulkStep::Requeue => b.start_requeue,
        BulkStep::Discard => b.start_discard,
        BulkStep::Decide(_) => b.start_decide,
    };
    StartForm {
        fields,
        canary: plan.sends().then(|| canary(b, preview.eligible)).flatten(),
        needs_reason: plan.needs_reason(),
        reason: reason.to_owned(),
        type_count: fill(b.type_count, &[("n", &number)]),
        button: fill(button, &[("n", &number)]),
    }
}

/// Says how large the steps of a canary are; `None` if one message is all.
pub(super) fn canary(b: &BulkTexts, eligible: u64) -> Option<String> {
    let count = |number: u64| grouped(i64::try_from(number).unwrap_or(i64::MAX));
    let goals = Canary::steps(eligible);
    let (first, last) = (*goals.first()?, *goals.last()?);
    let steps = goals.windows(2).map(|pair| match pair {
        [before, after] => fill(b.canary_more, &[("n", &count(after - before))]),
        _ => String::new(),
    });
    let Canary { max_failures_percent, watch_for } = Canary::DEFAULT;
    let values = [
        ("first", count(first)),
        ("steps", steps.collect()),
        ("rest", count(eligible.saturating_sub(last))),
        ("percent", max_failures_percent.to_string()),
        ("minutes", (watch_for.as_secs() / 60).to_string()),
    ];
    Some(fill(b.canary_steps, &values.each_ref().map(|(name, value)| (*name, value.as_str()))))
}

/// Returns a member of the body from a field that is not empty.
fn text_member(form: &FormFields, name: &'static str) -> Option<(String, Value)> {
    let value = form.get(name).map(str::trim).filter(|value| !value.is_empty())?;
    Some((name.to_owned(), value.into()))
}

fn decode(bytes: &[u8]) -> Result<StartedOperation, PageRefusal> {
    serde_json::from_slice(bytes).map_err(|error| {
        tracing::error!(%error, "failed to read a response of the API");
        let detail = "it is unknown whether the operation was started; look at the list of operations";
        Problem::new(Code::RecordUnreadable, detail).into()
    })
}

fn action_unknown(visitor: &Visitor) -> PageRefusal {
    Problem::new(Code::ParameterInvalid, BulkTexts::of(visitor.language).action_unknown).into()
}
