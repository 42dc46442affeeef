//! Turns the flags of `ichido probe` into targets, with all errors at once.

use std::path::Path;

use ichido_core::ledger::Profile;
use ichido_core::settings::{ConfigErrors, duration};
use ichido_http::signature::Secret;
use ichido_http::small_file;
use ichido_http::url::HttpUrl;
use ichido_probe::{
    Baseline, Bounds, Command, Counter, MAX_BASELINE_BYTES, OWN_HEADERS, Target, WebhookTarget, parse_curl,
    parse_header, parse_method_and_path, parse_provoked,
};

use super::Args;
use super::document::Document;
use crate::exit::Exit;
use crate::out;

/// The settings of a run.
pub(super) struct Resolved<F> {
    pub(super) targets: Vec<Target>,
    pub(super) baseline: Baseline,
    /// The bounds of a target that was agreed to.
    pub(super) bounds: F,
}

/// The request of a target, from flags or a curl command.
#[derive(Default)]
struct Operation {
    url: String,
    method: String,
    headers: Vec<(String, String)>,
    body: String,
}

/// Resolves the flags.
pub(super) fn resolve(args: &Args) -> Result<Resolved<impl Fn(&Target) -> Bounds>, Exit> {
    let mut faults = ConfigErrors::default();
    let profile = Profile::parse(&args.profile).ok_or_else(|| {
        format!("\"{}\" is not valid; use one of: {}", args.profile, Profile::WORDS.join(", "))
    });
    let profile = faults.check("--profile", profile);
    let times = [("--max-time", &args.max_time), ("--timeout", &args.timeout)];
    let times = times.map(|(flag, text)| {
        let time = faults.check(flag, duration::parse(text));
        if time.is_some_and(|time| time.is_zero()) {
            faults.add(flag, "must be more than 0; write it like 15s");
        }
        time
    });
    if args.max_requests == 0 {
        faults.add("--max-requests", "must be at least 1");
    }
    let baseline = args.baseline.as_deref().and_then(|file| baseline(file, &mut faults)).unwrap_or_default();
    let document = args.openapi.as_deref().and_then(|file| Document::read(file, &mut faults));
    let operation = operation(args, document.as_ref(), &mut faults);
    let target = operation.and_then(|one| target(args, profile.unwrap_or_default(), one, &mut faults));
    let target = faults.or(target)?;
    let [Some(max_duration), Some(timeout)] = times else {
        return Err(Exit::invalid("--max-time", "is not a duration"));
    };
    let max_requests = args.max_requests;
    let bounds =
        move |target: &Target| Bounds { max_requests, max_duration, timeout, may_leave: !target.is_local() };
    let targets = match document {
        Some(document) => document.targets(&target, args.url.is_some())?,
        None => vec![target],
    };
    Ok(Resolved { targets, baseline, bounds })
}

fn operation(args: &Args, document: Option<&Document>, faults: &mut ConfigErrors) -> Option<Operation> {
    let headers =
        args.headers.iter().filter_map(|text| faults.check("--header", parse_header(text))).collect();
    if let [program, words @ ..] = &args.curl[..] {
        if program != "curl" {
            faults.add("--", format!("\"{program}\" is not curl; write -- curl …"));
            return None;
        }
        let file = |path: &Path| small_file::read_text(path).map_err(|error| error.to_string());
        let read = faults.check("-- curl", parse_curl(words, &file))?;
        let headers = [read.headers, headers].concat();
        return Some(Operation { url: read.url, method: read.method, headers, body: read.body });
    }
    let body = match args.body.as_deref().map(|text| text.strip_prefix('@').ok_or(text)) {
        Some(Ok(file)) => faults.check("--body", small_file::read_text(Path::new(file)))?,
        Some(Err(text)) => text.to_owned(),
        None => String::new(),
    };
    let mut url = args.webhook.clone().or_else(|| args.url.clone());
    if let (None, Some(document)) = (&url, document) {
        url = Some(faults.check("--openapi", document.origin())?);
    }
    let url = url.unwrap_or_default();
    let method = args.method.clone().unwrap_or_else(|| "POST".to_owned());
    Some(Operation { url, method: method.to_ascii_uppercase(), headers, body })
}

fn target(
    args: &Args,
    profile: Profile,
    mut operation: Operation,
    faults: &mut ConfigErrors,
) -> Option<Target> {
    let is_valid = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    if operation.method.is_empty() || !is_valid(&operation.method) {
        faults.add("--method", "is not a method; write it like POST");
    }
    // `{marker}` is not allowed in a URL, and the path is sent as written.
    let readable = operation.url.replace(['{', '}'], "-");
    let url = faults.check("URL", HttpUrl::parse(&readable))?;
    let path = operation.url.splitn(4, '/').nth(3).map_or_else(|| "/".to_owned(), |path| format!("/{path}"));
    if !is_valid(&path) || path.contains('#') {
        faults.add("URL", "must have a path of visible ASCII without a fragment; percent-encode the rest");
    }
    operation.headers.retain(|(name, _)| !is_own(name));
    let is_json = operation.body.trim_start().starts_with(['{', '[']);
    if is_json && !operation.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        operation.headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
    }
    let commands = [
        (Command::Crash, &args.crash),
        (Command::Expire, &args.expire),
        (Command::Outage, &args.outage),
        (Command::Recover, &args.recover),
    ];
    let provoke =
        args.provoke.iter().filter_map(|text| faults.check("--provoke", parse_provoked(text))).collect();
    let counter = counter(args, faults);
    let optional = |flag: &str, text: &Option<String>, faults: &mut ConfigErrors| {
        text.as_ref().and_then(|text| faults.check(flag, parse_header(text)))
    };
    Some(Target {
        url,
        is_http2: args.http2,
        profile,
        method: operation.method,
        path,
        headers: operation.headers,
        body: operation.body,
        vary: args.vary.clone(),
        counter,
        second_identity: optional("--second-identity", &args.second_identity, faults),
        fresh_credential: optional("--fresh-credential", &args.fresh_credential, faults),
        other_operation: args
            .other_operation
            .as_ref()
            .and_then(|text| faults.check("--other-operation", parse_method_and_path(text))),
        provoke,
        commands: commands.into_iter().filter_map(|(command, line)| Some((command, line.clone()?))).collect(),
        webhook: args.secret_file.as_deref().and_then(|file| secret(file, faults)),
    })
}

fn secret(file: &Path, faults: &mut ConfigErrors) -> Option<WebhookTarget> {
    let text = faults.check("--secret-file", small_file::read_text(file))?;
    faults.check("--secret-file", Secret::parse(text.trim())).map(|secret| WebhookTarget { secret })
}

fn counter(args: &Args, faults: &mut ConfigErrors) -> Option<Counter> {
    if let Some(line) = &args.count_command {
        return Some(Counter::Command(line.clone()));
    }
    let (method, path) = faults.check("--count", parse_method_and_path(args.count.as_ref()?))?;
    if method != "GET" {
        faults.add("--count", "counts with GET only; write 'GET /path'");
    }
    let pointer = args.at.clone().unwrap_or_default();
    if !pointer.is_empty() && !pointer.starts_with('/') {
        faults.add("--at", "is not a JSON pointer; write it like /total");
    }
    Some(Counter::Get { path, pointer })
}

fn baseline(file: &Path, faults: &mut ConfigErrors) -> Option<Baseline> {
    let text = read(file, MAX_BASELINE_BYTES, "--baseline", faults)?;
    faults.check("--baseline", Baseline::parse(&text))
}

pub(super) fn read(file: &Path, max_bytes: usize, flag: &str, faults: &mut ConfigErrors) -> Option<String> {
    let text = small_file::read_text_within(file, max_bytes);
    faults.check(flag, text.map_err(|error| format!("cannot read {}: {error}", file.display())))
}

/// Whether the probe sets a header itself; says so, because the line may come from a pasted command.
fn is_own(name: &str) -> bool {
    let is_own = OWN_HEADERS.contains(&&*name.to_ascii_lowercase());
    if is_own {
        out::eprint(&format!("ichido probe: the header {name} is not sent; the probe sets its own\n"));
    }
    is_own
}
