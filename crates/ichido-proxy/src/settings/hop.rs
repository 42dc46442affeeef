//! Filter rules and timeouts of every role: flags first, then files, then defaults.

use std::time::Duration;

use http::header::HeaderName;
use http::{Method, StatusCode};
use ichido_boundary::{
    Backoff, Boundary, HeaderLists, Methods, RequestId, Retry, RetryGate, RetryPlan, Traceparent, owner,
};
use ichido_core::hops::HopName;
use ichido_core::settings::ConfigErrors;
use ichido_core::settings::duration;

use super::{Files, count, refuse_given, time};
use crate::args::{Args, Role};
use crate::filters::{FilterRules, KeyRule};
use crate::headers::HeaderFilter;
use crate::hop::RetryTimeouts;

const TRY_DEFAULT: Duration = Duration::from_secs(10);
const IN_ALL_DEFAULT: Duration = Duration::from_secs(30);
const BACKOFF_MS_DEFAULT: [u64; 3] = [100, 200, 400];
/// The maximum number of attempts per request; more would cause a retry storm.
const MAX_ATTEMPTS: u32 = 10;
/// The statuses after which a hop may retry.
// Spec: C4.
const STATUSES: [u16; 3] = [502, 503, 504];

/// Resolves the rules for all requests.
pub(super) fn rules(args: &Args, files: &Files, faults: &mut ConfigErrors) -> Option<FilterRules> {
    let role = args.role;
    let name = args.name.as_deref().unwrap_or(role.party().as_str());
    let name = faults.check("--name", HopName::parse(name));
    let methods = methods(args, files, faults);
    let lists = lists(args, files, faults);
    let observed: Vec<_> = files.iter().map(|file| &file.observability).collect();
    Some(FilterRules {
        name: name?,
        is_edge: role == Role::Bff,
        request_id: request_id(role, files),
        traceparent: observed.iter().find_map(|says| says.traceparent).unwrap_or(Traceparent::Pass),
        methods,
        key: key_rule(args, files, faults)?,
        echo_key: files.iter().find_map(|file| file.http.idempotency.echo_key),
        lists,
        relied_on: Vec::new(),
    })
}

/// Returns what happens to a request's own id, as the file about the receiving side says.
///
/// Without a file, a browser's id is replaced: it could repeat the id of another request, and mislead those who search
/// the logs.
// Spec: C5.
fn request_id(role: Role, files: &Files) -> RequestId {
    // The adapter may have only its own file.
    let own = files.sending.as_ref().filter(|_| role == Role::Adapter);
    match files.receiving.as_ref().or(own) {
        Some(file) => file.observability.request_id_at(file.name()),
        None if role == Role::Bff => RequestId::New,
        None => RequestId::Keep,
    }
}

fn methods(args: &Args, files: &Files, faults: &mut ConfigErrors) -> Methods {
    let mut methods = files.receiving.as_ref().map(|file| file.http.methods.clone()).unwrap_or_default();
    if let Some(key_on) = &args.passing.key_on {
        for method in key_on {
            if Method::from_bytes(method.as_bytes()).is_err() || method.to_ascii_uppercase() != *method {
                faults.add(
                    "--key-on",
                    format!("\"{method}\" is not an HTTP method; use POST, PATCH and so on"),
                );
            }
        }
        methods.state_changing = Some(key_on.clone());
    }
    methods
}

fn key_rule(args: &Args, files: &Files, faults: &mut ConfigErrors) -> Option<KeyRule> {
    let refusal = |status, code: Option<&String>| KeyRule::Required {
        status,
        code: code.cloned().unwrap_or_else(|| KeyRule::CODE.to_owned()),
    };
    // The adapter follows the file that owns the outcome.
    let both: Vec<Boundary> = files.iter().cloned().collect();
    let file = if args.role == Role::Adapter { owner(&both) } else { files.receiving.as_ref() };
    let Some(file) = file.filter(|_| args.passing.key_on.is_none()) else {
        return Some(refusal(StatusCode::BAD_REQUEST, None));
    };
    let idempotency = &file.http.idempotency;
    if !idempotency.requires_key() {
        return Some(KeyRule::Optional);
    }
    let reaction = idempotency.on_missing_key();
    let code = reaction.and_then(|reaction| reaction.error_code.as_ref());
    let status = reaction.and_then(|reaction| reaction.status).unwrap_or(400);
    match StatusCode::from_u16(status) {
        Ok(status) if status.is_client_error() => Some(refusal(status, code)),
        _ => {
            let what =
                format!("the status for a missing key is {status}, which is not a client error; use 400");
            faults.add(file.file(), what);
            None
        }
    }
}

fn lists(args: &Args, files: &Files, faults: &mut ConfigErrors) -> HeaderFilter {
    let flags = &args.passing;
    for (flag, names) in [
        ("--allow-headers", &flags.allow_headers),
        ("--drop-headers", &flags.drop_headers),
        ("--allow-response-headers", &flags.allow_response_headers),
    ] {
        for name in names.iter().flatten() {
            let bare = name.strip_suffix('*').unwrap_or(name);
            if HeaderName::from_bytes(bare.as_bytes()).is_err() {
                faults.add(flag, format!("\"{name}\" is not a header name"));
            }
        }
    }
    HeaderFilter {
        party: args.role.party(),
        files: files.iter().cloned().collect(),
        requests: HeaderLists { allow: flags.allow_headers.clone(), drop: flags.drop_headers.clone() },
        answers: HeaderLists { allow: flags.allow_response_headers.clone(), drop: None },
    }
}

/// Resolves the timeouts and the retry plan.
pub(super) fn timeouts(args: &Args, files: &Files, faults: &mut ConfigErrors) -> Option<RetryTimeouts> {
    let flags = &args.passing;
    let written = files.sending.as_ref().map(|file| &file.http);
    let timeouts = written.map(|http| http.timeouts.clone()).unwrap_or_default();
    let attempt_timeout = match &flags.attempt_timeout {
        Some(text) => time("--attempt-timeout", text, faults)?,
        None => timeouts.attempt_timeout().unwrap_or(TRY_DEFAULT),
    };
    let plan = plan(args, written.map(|http| &http.retry), faults);
    let total = match &flags.timeout {
        Some(text) => time("--timeout", text, faults)?,
        None => timeouts.total_timeout().unwrap_or_else(|| default_total(attempt_timeout, plan.as_ref())),
    };
    if total < attempt_timeout && flags.timeout.is_some() && flags.attempt_timeout.is_some() {
        faults.add(
            "--timeout",
            "all attempts together have less time than one attempt; raise it, or lower --attempt-timeout",
        );
    }
    Some(RetryTimeouts { attempt_timeout, total, plan })
}

/// Returns the time for every attempt and every wait, if no total timeout is set.
fn default_total(attempt_timeout: Duration, plan: Option<&RetryPlan>) -> Duration {
    let needed = plan.map_or(attempt_timeout, |plan| {
        attempt_timeout.saturating_mul(plan.attempts.get()).saturating_add(plan.waits_in_all())
    });
    needed.max(IN_ALL_DEFAULT)
}

/// Resolves the retry plan. Errors go to `faults`, which keep the proxy from starting.
fn plan(args: &Args, written: Option<&Retry>, faults: &mut ConfigErrors) -> Option<RetryPlan> {
    let flags = &args.passing;
    if args.role == Role::Adapter {
        let given = [
            ("--attempts", flags.attempts.is_some()),
            ("--backoff", flags.backoff.is_some()),
            ("--timeout", flags.timeout.is_some()),
        ];
        let what = "the adapter makes one attempt, limited by --attempt-timeout; the next request with the same key makes \
                    another";
        refuse_given(&given, what, faults);
        return None;
    }
    let Some(attempts) = &flags.attempts else {
        if flags.backoff.is_some() {
            faults.add("--backoff", "backoff needs a second attempt; add --attempts");
        }
        return written.and_then(Retry::plan);
    };
    let attempts = count("--attempts", attempts, faults);
    if attempts.is_some_and(|attempts| MAX_ATTEMPTS < attempts) {
        faults.add(
            "--attempts",
            format!("must be at most {MAX_ATTEMPTS}; more attempts would overload a failing upstream"),
        );
    }
    let waits = match &flags.backoff {
        None => BACKOFF_MS_DEFAULT.to_vec(),
        Some(texts) => texts
            .iter()
            .map(|text| faults.check("--backoff", duration::parse(text)))
            .map(|wait| u64::try_from(wait?.as_millis()).ok())
            .collect::<Option<_>>()?,
    };
    let retry = Retry {
        mode: None,
        apply_to_methods: Some(vec!["POST".to_owned()]),
        max_attempts: Some(attempts?.into()),
        retry_on_status: Some(STATUSES.to_vec()),
        retry_on_network_error: Some(true),
        backoff_ms: Some(Backoff(waits)),
        retry_gate: RetryGate { require_idempotency_key_when_state_changing: Some(true) },
    };
    retry.plan()
}
