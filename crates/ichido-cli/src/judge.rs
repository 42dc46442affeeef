//! `ichido judge`: has a model judge articles, in a batch under its rate limit.
//!
//! Guarantee: there is one judgement for each article, in order, also after Ctrl-C. One that could not be obtained is
//! marked as a fallback, with the reason. If nothing could be judged, an earlier file stays. Judgements are stored, and
//! not paid for again until `--forget`. With `--deadline` the run ends in time. Logs contain no keys, prompts or
//! responses.
//!
//! `model` selects the model, `watch` shows progress, `export` sends metrics, `output` writes the judgements, and
//! `forget` deletes stored ones and ends pauses. The prompts, the estimate before a run and its result are in
//! [`ichido_llm::articles`].
// Spec: B.

mod args;
mod export;
mod forget;
mod metrics_file;
mod model;
mod output;
mod watch;

use std::path::Path;
use std::time::Duration;

use ichido_core::settings::ConfigErrors;
use ichido_llm::articles::plan::{Plan, PlanInputs};
use ichido_llm::articles::{self, Article, Judgement, Profile, RunResult};
use ichido_llm::judge::{Judge, JudgeEnd, KnownJudgements, Settings, SettingsError, Stop};
use ichido_llm::models::Prompt;
use ichido_server::admin::judgements;
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
    if let Some(model) = args.forget.as_ref().or(args.resume.as_ref()) {
        return forget::run(&args, model.as_deref()).await;
    }
    let mut faults = ConfigErrors::default();
    let task = task(&args, &mut faults);
    if args.plan_only {
        let task = faults.or(task)?;
        return print_plan(&args, &make_plan(&args, &task, KnownJudgements::unasked(&task.prompts), None));
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
    let judge = Judge::with_store(model, form, settings, &store, &judgements::topic(&name))
        .map_err(|error| Exit::invalid("--llm, --endpoint", error.to_string()))?;
    let known = judge.known(&task.prompts).await.map_err(|error| unreachable(&error.with_causes()))?;
    let plan = make_plan(&args, &task, known, Some(&judge));
    match output {
        Some(output) if !args.dry_run => {
            let ended = ask(&args, task, &judge, (&name, began), &plan, output, &export).await;
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
    if let Err(error) = settings.check() {
        let flags = match error {
            SettingsError::Interval { .. } => "--interval",
            _ => "--retries, --base-delay, --max-backoff",
        };
        faults.add(flags, error.to_string());
    }
    if settings.deadline.is_some_and(|deadline| deadline <= settings.interval) {
        faults.add(
            "--deadline",
            "leaves no time for any call; pass a longer time such as 15m, or leave it out",
        );
    }
    let (profile, articles) = profile.zip(articles)?;
    let prompts = articles::prompts(&articles, &profile, args.max_output_tokens);
    Some(JudgeTask { articles, profile, prompts, settings })
}

/// Reads the articles of a file or of standard input.
fn read(file: &Path) -> Result<Vec<Article>, ConfigErrors> {
    if file.as_os_str() == STDIN {
        return articles::read(std::io::stdin().lock(), STDIN);
    }
    articles::read_file(file)
}

/// Returns files that nothing may overwrite: the inputs and the store.
fn protected_files(args: &Args) -> Vec<&Path> {
    let store = ichido_server::config::sqlite_file(&args.store);
    [args.articles.as_deref(), args.profile.as_deref(), store].into_iter().flatten().collect()
}

fn make_plan(
    args: &Args,
    task: &JudgeTask,
    known: KnownJudgements,
    judge: Option<&Judge<Judgement>>,
) -> Plan {
    let Args { deadline, expect_latency: latency, max_output_tokens, price, .. } = *args;
    let (pause, learned_spacing) = (judge.and_then(Judge::paused), judge.and_then(Judge::learned_spacing));
    let inputs = PlanInputs { deadline, latency, max_output_tokens, pause, learned_spacing, price };
    Plan::new(task.articles.len(), known, &task.settings, &inputs)
}

fn print_plan(args: &Args, plan: &Plan) -> Result<(), Exit> {
    if args.json { out::print_line(json!({ "plan": plan.to_json() })) } else { out::print(&plan.render()) }
}

async fn ask(
    args: &Args,
    task: JudgeTask,
    judge: &Judge<Judgement>,
    (model, began): (&str, Instant),
    plan: &Plan,
    output: Output,
    export: &MetricsExport,
) -> Result<(), Exit> {
    // Standard output must contain only judgements.
    let quiet = args.json || output.is_stdout();
    let print = |text: &str| {
        if quiet {
            out::eprint(text);
            return Ok(());
        }
        out::print(text)
    };
    print(&plan.render())?;
    let stop = Stop::new();
    let run = judge.run(task.prompts, &stop);
    let report = tokio::select! {
        report = run => report.map_err(|error| unreachable(&error.with_causes())),
        signals = watch::signals(judge, &stop) => Err(signals.err().unwrap_or(Exit::Interrupted("stopped".to_owned()))),
        () = export.keep_current(judge) => Err(Exit::Interrupted("stopped".to_owned())),
        () = watch::progress(judge, plan, &task.articles, &stop) => Err(Exit::Interrupted("stopped".to_owned())),
    }?;
    let lines: Vec<Value> = task
        .articles
        .iter()
        .zip(&report.outcomes)
        .map(|(article, outcome)| article.judged(outcome, &task.profile, model))
        .collect();
    let (path, exists) = match args.out.as_deref() {
        Some(path) if !output.is_stdout() => (path.display().to_string(), path.exists()),
        _ => ("standard output".to_owned(), false),
    };
    let took = began.elapsed();
    let result = RunResult::new(&report, &task.profile, args.max_output_tokens, took, &path, exists);
    if !result.is_kept() {
        output.write(&lines).map_err(|error| {
            Exit::Failed(format!(
                "cannot write {path}: {error}; the judgements are stored, run the command again"
            ))
        })?;
    }
    if args.json {
        out::print_line(json!({ "plan": plan.to_json(), "summary": result.to_json() }))?;
    } else {
        print(&result.render())?;
    }
    if let Some(failure) = result.failure() {
        return Err(Exit::Failed(failure));
    }
    match &report.ended {
        JudgeEnd::Stopped => Err(Exit::Interrupted(format!(
            "stopped: {} of {} articles are judged; run the same command again to continue",
            result.judged(),
            lines.len()
        ))),
        _ if 0 < result.fallbacks() => Err(Exit::Findings),
        _ => Ok(()),
    }
}

fn unreachable(why: &str) -> Exit {
    Exit::Unreachable(format!(
        "store error: {why}; stored judgements are kept, run the same command again to continue"
    ))
}
