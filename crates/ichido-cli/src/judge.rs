//! `ichido judge`: articles are judged by a model, in a batch under its rate limit (SPEC B).
//!
//! Guarantee: there is one judgement for each article, in order; one that could not be had is marked as a fallback, with the reason. What was
//! judged once is kept in the store and not paid for again until `--forget`. With `--deadline` it ends in time. Keys, prompts and answers are in no log.
//!
//! `articles` and `profile` are what is read, `plan` what is said before, `model` whom to ask, `watch` how far it is, `output` what is
//! written.

mod args;
mod articles;
mod model;
mod output;
mod plan;
mod profile;
mod report;
mod seconds;
mod watch;

use std::path::Path;
use std::sync::Arc;

use ichido_core::settings::Faults;
use ichido_llm::judge::{Counts, Ended, Judge, Known, Settings, Stop};
use ichido_llm::models::{Model, Prompt};
use ichido_store::Store;
use ichido_store::error::StoreError;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::exit::Exit;
use crate::out;
use crate::store;
pub(crate) use args::Args;
use articles::Article;
use output::{Judgement, Output};
use plan::{Plan, Told};
use profile::Profile;

/// Under which answers are kept, and forgotten.
const TOPIC: &str = "judge";
/// How many answers are forgotten in one step.
const FORGET_STEP: u32 = 1_000;

/// What is asked of whom.
struct Task {
    articles: Vec<Article>,
    profile: Profile,
    prompts: Vec<Prompt>,
    settings: Settings,
}

/// Judges.
pub(crate) async fn run(args: Args) -> Result<(), Exit> {
    let began = Instant::now();
    if args.print_profile {
        return out::say(profile::DEFAULT);
    }
    if args.forget {
        return forget(&args).await;
    }
    let mut faults = Faults::default();
    let task = task(&args, &mut faults);
    if args.plan_only {
        let task = faults.or(task).map_err(misconfigured)?;
        return say_plan(&args, &plan_of(&args, &task, unasked(&task)));
    }
    let model = model::of(&args, &mut faults).await;
    if args.json && args.out.as_deref().is_some_and(|out| out.as_os_str() == "-") {
        faults.add(
            "--out",
            "is standard output, where --json writes its own; name a file, or leave --json out",
        );
    }
    let output = match &args.out {
        Some(place) => faults.check("--out", Output::open(place, &not_to_be_lost(&args))).map(Some),
        None => Some(None),
    };
    let ready = task.zip(model).zip(output);
    let ((task, model), output) = faults.or(ready).map_err(misconfigured)?;
    let store = store::open(&args.store).await?;
    match (args.dry_run, output) {
        (false, Some(output)) => {
            let mut task = task;
            // What reading and opening took is part of it.
            task.settings.deadline = task.settings.deadline.map(|left| left.saturating_sub(began.elapsed()));
            ask(&args, task, model, &store, output).await
        }
        (_, output) => {
            let known = judge(&task, model, &store)?.known(&task.prompts).await.map_err(unreachable)?;
            drop(output);
            say_plan(&args, &plan_of(&args, &task, known))
        }
    }
}

fn task(args: &Args, faults: &mut Faults) -> Option<Task> {
    let profile = faults.check("--profile", Profile::read(args.profile.as_deref()));
    let file = args.articles.as_deref().unwrap_or(Path::new("-"));
    let articles = match articles::read(file) {
        Ok(articles) => Some(articles),
        Err(problems) => {
            for problem in problems {
                let line = problem.line.map(|line| format!(":{line}")).unwrap_or_default();
                faults.add(format!("{}{line}", file.display()), problem.what);
            }
            None
        }
    };
    let settings = args.settings();
    faults.check("--retries, --base-delay, --max-backoff", settings.retry.clone().checked());
    let (profile, articles) = profile.zip(articles)?;
    let prompts = articles::prompts(&articles, &profile);
    Some(Task { articles, profile, prompts, settings })
}

/// What `--out` must not be: what is read, and where answers are kept.
fn not_to_be_lost(args: &Args) -> Vec<&Path> {
    let store = ichido_server::config::sqlite_file(&args.store);
    [args.articles.as_deref(), args.profile.as_deref(), store].into_iter().flatten().collect()
}

/// What is known without looking: nothing was asked.
fn unasked(task: &Task) -> Known {
    let tokens = task.prompts.iter().map(Prompt::tokens).sum();
    Known { answered: 0, missing: task.prompts.len(), tokens, lost: 0 }
}

fn plan_of(args: &Args, task: &Task, known: Known) -> Plan {
    let told = Told { deadline: args.deadline, latency: args.expect_latency, price: args.price };
    Plan::of(task.articles.len(), known, &task.settings, &told)
}

fn say_plan(args: &Args, plan: &Plan) -> Result<(), Exit> {
    if args.json { out::line(json!({ "plan": plan.for_programs() })) } else { out::say(&plan.told()) }
}

fn judge(task: &Task, model: Arc<dyn Model>, store: &Store) -> Result<Judge<Judgement>, Exit> {
    let wrong = |what: String| {
        let mut faults = Faults::default();
        faults.add("--parallel, --interval, --endpoint", what);
        misconfigured(faults)
    };
    let form = task.profile.form().map_err(|error| Exit::Failed(error.to_string()))?;
    Judge::with_store(model, form, task.settings.clone(), store, TOPIC)
        .map_err(|error| wrong(error.to_string()))
}

async fn ask(
    args: &Args,
    task: Task,
    model: Arc<dyn Model>,
    store: &Store,
    output: Output,
) -> Result<(), Exit> {
    let name = model.name().to_owned();
    let judge = judge(&task, model, store)?;
    let known = judge.known(&task.prompts).await.map_err(unreachable)?;
    let plan = plan_of(args, &task, known);
    // Judgements on standard output are not to be mixed with words.
    let quiet = args.json || output.is_stdout();
    if quiet {
        out::aside(&plan.told());
    } else {
        out::say(&plan.told())?;
    }
    let stop = Stop::new();
    let run = judge.run(task.prompts.clone(), &stop);
    let report = tokio::select! {
        report = run => report.map_err(unreachable),
        signals = watch::signals(&stop) => Err(signals.err().unwrap_or(Exit::Cut("it was stopped".to_owned()))),
        () = watch::progress(&judge) => Err(Exit::Cut("it was stopped".to_owned())),
    }?;
    if report.ended == Ended::Stopped {
        drop(output);
        let Counts { answered, known, missing, .. } = report.counts;
        return Err(Exit::Cut(format!(
            "stopped: {} of {} are judged and kept, nothing was written; the same command again goes on from there",
            answered + known,
            known + missing
        )));
    }
    let lines: Vec<Value> = task
        .articles
        .iter()
        .zip(&report.outcomes)
        .map(|(article, outcome)| output::line(article, outcome, &task.profile, &name))
        .collect();
    let place = args.out.as_deref().unwrap_or(Path::new("-")).display().to_string();
    output.write(&lines).map_err(|error| {
        Exit::Failed(format!("{place} cannot be written: {error}; what was judged is kept, run it again"))
    })?;
    report::ended(args.json, &plan, &report, quiet)
}

async fn forget(args: &Args) -> Result<(), Exit> {
    let store = store::open_existing(&args.store).await?;
    let mut forgotten = 0;
    loop {
        match store.answers().forget(TOPIC, FORGET_STEP).await.map_err(unreachable)? {
            0 => break,
            step => forgotten += step,
        }
    }
    if args.json {
        out::line(json!({ "forgotten": forgotten }))
    } else {
        out::line(format_args!("{forgotten} forgotten"))
    }
}

fn misconfigured(faults: Faults) -> Exit {
    Exit::Misconfigured { command: "judge", faults }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` gives")]
fn unreachable(error: StoreError) -> Exit {
    Exit::Unreachable(format!(
        "the store: {}; what it has taken is kept, and the same command goes on from there",
        error.in_full()
    ))
}
