//! The page before a bulk operation: what will happen, to how many, and why not to the others. Then its start.
//!
//! Guarantee: nothing starts before a person has typed the number of messages, or `ALL` if more match than are counted. The operation
//! gets the time of the count that the person saw, so a message that dies later is not part of it, and it does not start if more messages
//! than confirmed would be moved.

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
use super::bulk_plan::{BulkPlan, BulkStep, Confirmed, FILTER, Finding, address};
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
    /// Whether a number is typed.
    is_number: bool,
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

/// Starts it, if the person typed what the page asks for.
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
    let confirmed = form.get("confirmed").and_then(Confirmed::parse);
    let Some(confirmed) = confirmed.filter(|confirmed| Confirmed::parse(typed) == Some(*confirmed)) else {
        let number = confirmed.map(|confirmed| confirmed.to_string()).unwrap_or_default();
        return refused(422, fill(b.typed_wrong, &[("n", &number), ("typed", typed)])).await;
    };
    if plan.needs_reason() && form.get("reason").unwrap_or_default().trim().is_empty() {
        return refused(422, b.reason_needed.to_owned()).await;
    }
    let mut members = plan.to_body();
    // The API moves all that match if no number is confirmed.
    members.extend(confirmed.number().map(|number| ("confirmed".to_owned(), number.into())));
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
    shell.show_under("/dead-letters");
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
        (_, 0) if preview.has_more => ("slash", "warn", b.will_more),
        _ if preview.has_more => ("go", "calm", b.will_more),
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
        counted: fill(
            if preview.has_more { b.counted_up_to } else { b.counted_at },
            &[("when", &full(&preview.as_of)), ("n", &matched)],
        ),
        codes: lines("code", &preview.errors),
        queues: lines("queue", &preview.queues),
        form: (!preview.moves_nothing()).then(|| start_form(b, plan, &preview, reason)),
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
    let count = |count: u64| grouped(i64::try_from(count).unwrap_or(i64::MAX));
    let is_number = !preview.has_more;
    let confirmed = if is_number { Confirmed::Number(preview.eligible) } else { Confirmed::All };
    let mut fields = plan.pairs();
    fields.push(("as_of", preview.as_of.clone()));
    fields.push(("confirmed", confirmed.to_string()));
    let button = match (plan.step, is_number) {
        (BulkStep::Requeue, true) => b.start_requeue,
        (BulkStep::Requeue, false) => b.start_requeue_all,
        (BulkStep::Discard, true) => b.start_discard,
        (BulkStep::Discard, false) => b.start_discard_all,
        (BulkStep::Decide(_), true) => b.start_decide,
        (BulkStep::Decide(_), false) => b.start_decide_all,
    };
    let (type_count, number) =
        if is_number { (b.type_count, preview.eligible) } else { (b.type_all, preview.matched) };
    let values = [("n", &*count(number)), ("done", plan.step.done(b))];
    StartForm {
        fields,
        canary: plan.sends().then(|| canary(b, preview.eligible, preview.has_more)).flatten(),
        needs_reason: plan.needs_reason(),
        reason: reason.to_owned(),
        type_count: fill(type_count, &values),
        is_number,
        button: fill(button, &values),
    }
}

/// Says how large the steps of a canary are; `None` if one message is all.
fn canary(b: &BulkTexts, eligible: u64, has_more: bool) -> Option<String> {
    let count = |number: u64| grouped(i64::try_from(number).unwrap_or(i64::MAX));
    let goals = Canary::steps(eligible, has_more);
    let last = *goals.last()?;
    let mut before = 0;
    let sizes = goals.iter().map(|goal| goal - std::mem::replace(&mut before, *goal));
    let sizes: Vec<u64> = sizes.collect();
    let step = |text: &str, number: u64| fill(text, &[("n", &count(number))]);
    let steps: String = if 1 < sizes.len() && sizes.iter().all(|size| *size == 1) {
        step(b.canary_singles, last)
    } else {
        let texts = std::iter::once(b.canary_first).chain(std::iter::repeat(b.canary_more));
        texts.zip(&sizes).map(|(text, size)| step(text, *size)).collect()
    };
    let rest = if has_more { b.canary_rest_all } else { b.canary_rest };
    let Canary { max_failures_percent, watch_for } = Canary::DEFAULT;
    let values = [
        ("steps", steps),
        ("rest", fill(rest, &[("n", &count(eligible.saturating_sub(last)))])),
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

#[cfg(test)]
mod tests {
    use super::super::language::Language;
    use super::*;

    fn shown(language: Language, action: &str, eligible: u64) -> ShownPreview {
        let b = BulkTexts::of(language);
        let plan = BulkPlan::parse(|name| (name == "action").then_some(action)).unwrap();
        let preview = json!({
            "as_of": "2026-11-18T00:00:00Z", "matched": 30_000, "eligible": eligible, "has_more": true,
            "queues": {}, "errors": {}, "refused": [{
                "queue": "orders", "reason": "not_allowed", "count": 30_000 - eligible, "detail": "no",
            }],
        });
        shown_preview(b, &plan, serde_json::from_value(preview).unwrap(), "")
    }

    #[test]
    fn more_messages_than_are_counted_are_confirmed_by_a_word() {
        let page = shown(Language::English, "requeue", 29_000);
        assert_eq!(
            page.sentence,
            "More than 30,000 messages match. Of the 30,000 that were counted, 29,000 will be requeued and 1,000 refused."
        );
        assert!(page.counted.contains("up to 30,000 messages"), "{}", page.counted);
        let form = page.form.unwrap();
        assert_eq!(
            form.type_count,
            "More than 30,000 messages match. Type ALL to confirm that each of them is requeued or refused"
        );
        assert!(form.fields.contains(&("confirmed", "ALL".to_owned())), "{:?}", form.fields);
        assert_eq!((form.button.as_str(), form.is_number), ("Requeue all", false));
        let canary = form.canary.unwrap();
        assert!(canary.starts_with("290 first, then 1,160, then 5,800, then all others."), "{canary}");
        for (action, button) in [("requeue", "すべて再投入"), ("discard", "すべて破棄")] {
            let form = shown(Language::Japanese, action, 29_000).form.unwrap();
            assert!(form.type_count.contains("ALL") && form.button == button, "{}", form.type_count);
        }
    }

    #[test]
    fn steps_of_one_message_are_said_once() {
        let b = BulkTexts::of(Language::English);
        for (eligible, said) in [
            (8, "3 one by one, then the other 5."),
            (2, "1 first, then the other 1."),
            (51, "1 first, then 2, then 10, then the other 38."),
        ] {
            let canary = canary(b, eligible, false).unwrap();
            assert!(canary.starts_with(said), "{eligible}: {canary}");
        }
        assert_eq!(canary(b, 1, false), None, "it is all");
    }

    /// Those that were not counted may be eligible.
    #[test]
    fn an_operation_can_be_started_though_all_counted_messages_are_refused() {
        let page = shown(Language::English, "requeue", 0);
        assert_eq!(page.class, "warn");
        assert!(page.form.is_some_and(|form| form.canary.is_some()));
    }
}
