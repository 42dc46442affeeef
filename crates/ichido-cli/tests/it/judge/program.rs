//! Runs `ichido judge` against a fake provider.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use fake_llm::{Fake, Script};
use serde_json::{Value, json};

use crate::folder::{self, TempFolder};

/// Settings for tests, with short delays.
pub(crate) const QUICK: [&str; 8] =
    ["--interval", "0", "--base-delay", "10ms", "--max-backoff", "50ms", "--parallel", "8"];
/// Must never be shown.
pub(crate) const SECRET: &str = "sk-very-secret-0123456789";
/// In every article, and in no log.
pub(crate) const PRIVATE: &str = "nobody-may-log-this";

/// A folder with articles, and a provider.
pub(crate) struct JudgeFixture {
    pub(crate) folder: TempFolder,
    pub(crate) fake: Fake,
    pub(crate) llm: &'static str,
}

impl JudgeFixture {
    /// Creates articles `item-0`, `item-1` …, and a provider with this script.
    pub(crate) fn new(articles: usize, script: &Value) -> Self {
        let folder = folder::fresh();
        let lines: Vec<String> = (0..articles)
            .map(|number| {
                let (title, url) =
                    (format!("item-{number} of many"), format!("https://example.com/{number}"));
                json!({ "title": title, "url": url, "description": PRIVATE }).to_string()
            })
            .collect();
        folder.write("articles.jsonl", &lines.join("\n"));
        let fake = fake_llm::start(Script::parse(script.to_string().as_bytes()).unwrap());
        Self { folder, fake, llm: "openai:gpt-test" }
    }

    pub(crate) fn endpoint(&self) -> String {
        let url = self.fake.url();
        match self.llm.split_once(':') {
            Some(("openai", _)) => format!("{url}/v1"),
            Some(("bedrock", _)) => format!("eu-west-1={url}"),
            _ => url,
        }
    }

    /// Returns the program with the settings of all runs.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ichido"));
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("OPENAI_API_KEY", SECRET)
            .env("ANTHROPIC_API_KEY", SECRET)
            .env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
            .env("AWS_SECRET_ACCESS_KEY", SECRET)
            .arg("judge")
            .args(args);
        command
    }

    /// Returns a command that judges all articles quickly.
    pub(crate) fn judging(&self, args: &[&str]) -> Command {
        let mut command = self.command(&["articles.jsonl", "--out", "out.jsonl", "--llm", self.llm]);
        command.args(["--endpoint", &self.endpoint()]).args(QUICK).args(args);
        command
    }

    pub(crate) fn judge(&self, args: &[&str]) -> JudgeOutput {
        JudgeOutput::new(self.judging(args).output().unwrap())
    }

    pub(crate) fn start(&self, args: &[&str]) -> Child {
        self.judging(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Waits until the provider got this many requests, or the run has ended.
    pub(crate) fn until_requests(&self, times: u64, running: &mut Child) {
        while self.requests() < times && running.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.folder.path().join("out.jsonl")
    }

    /// Returns the written judgements, one per article.
    pub(crate) fn judgements(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.out()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns how many calls the provider bills for each item.
    pub(crate) fn billed(&self) -> BTreeMap<String, u64> {
        self.fake.seen().items.into_iter().map(|(item, seen)| (item, seen.counts.completed)).collect()
    }

    pub(crate) fn requests(&self) -> u64 {
        self.fake.seen().all.requests
    }

    pub(crate) fn no_format_faults(&self) {
        let seen = self.fake.seen();
        assert!(seen.format_faults.is_empty(), "{:?}", seen.format_faults);
    }
}

/// The exit code and output of a run.
pub(crate) struct JudgeOutput {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl JudgeOutput {
    pub(crate) fn new(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub(crate) fn ended_with(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub(crate) fn says(&self, text: &str) -> &Self {
        assert!(self.out.contains(text) || self.err.contains(text), "{text}:\n{}\n{}", self.out, self.err);
        self
    }

    /// Asserts that the result has a row with this name and count.
    #[track_caller]
    pub(crate) fn counts(&self, name: &str, count: u64) -> &Self {
        let found = [&self.out, &self.err].into_iter().flat_map(|text| text.lines()).find_map(|line| {
            let mut words = line.trim_start().strip_prefix(name)?.split_whitespace();
            words.next()?.parse().ok()
        });
        assert_eq!(found, Some(count), "{name}:\n{}\n{}", self.out, self.err);
        self
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}
