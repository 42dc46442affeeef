//! `ichido judge`: has a model judge articles, in a batch under its rate limit.
//!
//! Guarantee: there is one judgement for each article, in order. One that could not be obtained is marked as a
//! fallback, with the reason. Judgements are stored, and not paid for again until `--forget`. With `--deadline` the
//! run ends in time. Logs contain no keys, prompts or responses.
//!
//! `model` selects the model, `watch` shows progress, `export` sends
//! metrics, and `output` writes the results; the prompts and the estimate before a run are in [`ichido_llm::articles`].
// Spec: B.

mod args;
mod export;
mod metrics_file;
mod model;
mod output;
mod report;
mod watch;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use ichido_core::settings::ConfigErrors;
use ichido_llm::articles::plan::{Plan, PlanInputs};
use ichido_llm::articles::{self, Article, Judgement, Profile};
use ichido_llm::judge::{Counts, Judge, JudgeEnd, KnownJudgements, Settings, Stop};
use ichido_llm::models::Prompt;
use ichido_server::admin;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::exit::Exit;
use crate::out;
use crate::store;
pub(crate) use args::Args;
use export::MetricsExport;
use output::Output;

/// The value of `ARTICLES` for standard input.
const STDIN: &str = "-";
/// The topic under which responses are stored and forgotten.
const TOPIC: &str = "judge";

/// What to ask the model.
struct JudgeTask {
    articles: Vec<Article>,
    profile: Profile,
    prompts: Vec<Prompt>,
    settings: Settings,
}

/// Judges the articles.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let began = Instant::now();
    if args.print_profile {
        return out::print(Profile::DEFAULT);
    }
    if args.forget {
        return forget(&args).await;
    }
    let mut faults = ConfigErrors::default();
    let task = task(&args, &mut faults);
    if args.plan_only {
        let task = faults.or(task)?;
        return print_plan(&args, &make_plan(&args, &task, unasked(&task)));
    }
    let model = model::resolve(&args, &mut faults).await;
    if args.json && args.out.as_deref().is_some_and(|out| out.as_os_str() == "-") {
        faults.add("--out", "cannot be standard output with --json; pass a file, or remove --json");
    }
    let output = match &args.out {
        Some(path) => faults.check("--out", Output::open(path, &protected_files(&args))).map(Some),
        None => Some(None),
    };
    let ready = task.zip(model).zip(output);
    let ((task, model), output) = faults.or(ready)?;
    let export = MetricsExport::start(&args, model.name())?;
    let store = store::open(&args.store).await?;
    let name = model.name().to_owned();
    let form = task.profile.form().map_err(|error| Exit::Failed(error.to_string()))?;
    let mut settings = task.settings.clone();
    // The deadline includes the time for reading and opening.
    settings.deadline = settings.deadline.map(|left| left.saturating_sub(began.elapsed()));
    let judge = Judge::with_store(model, form, settings, &store, TOPIC)
        .map_err(|error| Exit::invalid("--parallel, --interval, --endpoint", error.to_string()))?;
    let known = judge.known(&task.prompts).await.map_err(|error| unreachable(&error.with_causes()))?;
    let plan = make_plan(&args, &task, known);
    match output {
        Some(output) if !args.dry_run => {
            let ended = ask(&args, task, &judge, &name, &plan, output, &export).await;
            let left = args.deadline.map_or(Duration::MAX, |all| all.saturating_sub(began.elapsed()));
            export.finish(&judge, left).await;
            ended
        }
        _ => print_plan(&args, &plan),
    }
}

fn task(args: &Args, faults: &mut ConfigErrors) -> Option<JudgeTask> {
    let profile = faults.check("--profile", Profile::read(args.profile.as_deref()));
    let articles = read(args.articles.as_deref().unwrap_or(Path::new(STDIN)));
    let articles = articles.map_err(|found| faults.join(found)).ok();
    let settings = args.settings();
    faults.check("--retries, --base-delay, --max-backoff", settings.retry.clone().checked());
    let (profile, articles) = profile.zip(articles)?;
    let prompts = articles::prompts(&articles, &profile);
    Some(JudgeTask { articles, profile, prompts, settings })
}

/// Reads the articles of a file or of standard input.
fn read(file: &Path) -> Result<Vec<Article>, ConfigErrors> {
    let name = file.display().to_string();
    if file.as_os_str() == STDIN {
        return articles::read(std::io::stdin().lock(), &name);
    }
    let mut faults = ConfigErrors::default();
    let opened = File::open(file).map_err(|error| format!("cannot read it: {error}"));
    let opened = faults.check(&name, opened);
    articles::read(BufReader::new(faults.or(opened)?), &name)
}

/// Returns files that nothing may overwrite: the inputs and the store.
fn protected_files(args: &Args) -> Vec<&Path> {
    let store = ichido_server::config::sqlite_file(&args.store);
    [args.articles.as_deref(), args.profile.as_deref(), store].into_iter().flatten().collect()
}

/// Assumes that nothing was asked before.
fn unasked(task: &JudgeTask) -> KnownJudgements {
    let tokens = task.prompts.iter().map(Prompt::tokens).sum();
    KnownJudgements { answered: 0, missing: task.prompts.len(), tokens, lost: 0 }
}

fn make_plan(args: &Args, task: &JudgeTask, known: KnownJudgements) -> Plan {
    let inputs = PlanInputs { deadline: args.deadline, latency: args.expect_latency, price: args.price };
    Plan::new(task.articles.len(), known, &task.settings, &inputs)
}

fn print_plan(args: &Args, plan: &Plan) -> Result<(), Exit> {
    if args.json { out::print_line(json!({ "plan": plan.to_json() })) } else { out::print(&plan.render()) }
}

async fn ask(
    args: &Args,
    task: JudgeTask,
    judge: &Judge<Judgement>,
    model: &str,
    plan: &Plan,
    output: Output,
    export: &MetricsExport,
) -> Result<(), Exit> {
    // Standard output must contain only judgements.
    let quiet = args.json || output.is_stdout();
    if quiet {
        out::eprint(&plan.render());
    } else {
        out::print(&plan.render())?;
    }
    let stop = Stop::new();
    let run = judge.run(task.prompts, &stop);
    let report = tokio::select! {
        report = run => report.map_err(|error| unreachable(&error.with_causes())),
        signals = watch::signals(&stop) => Err(signals.err().unwrap_or(Exit::Interrupted("stopped".to_owned()))),
        () = export.keep_current(judge) => Err(Exit::Interrupted("stopped".to_owned())),
        () = watch::progress(judge) => Err(Exit::Interrupted("stopped".to_owned())),
    }?;
    if report.ended == JudgeEnd::Stopped {
        drop(output);
        let Counts { answered, known, missing, .. } = report.counts;
        return Err(Exit::Interrupted(format!(
            "stopped: {} of {} articles are judged and stored, nothing was written; run the same command again to continue",
            answered + known,
            known + missing
        )));
    }
    let lines: Vec<Value> = task
        .articles
        .iter()
        .zip(&report.outcomes)
        .map(|(article, outcome)| article.judged(outcome, &task.profile, model))
        .collect();
    let path = args.out.as_deref().unwrap_or(Path::new("-")).display().to_string();
    output.write(&lines).map_err(|error| {
        Exit::Failed(format!(
            "cannot write {path}: {error}; the judgements are stored, run the command again"
        ))
    })?;
    report::finish(args.json, plan, &report, quiet)
}

async fn forget(args: &Args) -> Result<(), Exit> {
    let store = store::open_existing(&args.store.clone().into()).await?;
    let forgotten = admin::forget_answers(&store, TOPIC).await?;
    let text = format_args!("deleted {forgotten} judgements");
    out::print_either(args.json, json!({ "forgotten": forgotten }), text)
}

fn unreachable(why: &str) -> Exit {
    Exit::Unreachable(format!(
        "store error: {why}; stored judgements are kept, run the same command again to continue"
    ))
}
