//! Tests any HTTP API's idempotency from outside.
//!
//! Guarantee: a rule's verdict is a pure function of the recorded exchanges and of the counted effects. Nothing passes
//! that was not seen: without a counter, a rule about effects is *unverified*; a rule that a target gives no occasion to
//! test is *not applicable*, with its reason. The probe sends only what [`plan()`] lists, within its [`Bounds`].
//!
//! Start at [`rules()`], the table; then read [`plan()`], which turns a rule into steps, [`run()`], which takes them, and
//! `judge()`, which gives the verdict. The texts of a rule are on its page in `docs/probe`.
// SPEC F3.

mod announcement;
mod baseline;
mod commands;
mod curl;
mod exchange;
mod h2_race;
mod json;
mod kit;
mod openapi;
mod patience;
mod report;
mod report_file;
mod rules;
mod run;
mod secrets;
mod seen;
mod sender;
mod target;
mod transcript;
mod unchecked;
mod wire;
mod words;

pub use announcement::announcement;
pub use baseline::{Baseline, BaselineError, MAX_BYTES as MAX_BASELINE_BYTES};
pub use curl::{CurlError, CurlRequest, parse as parse_curl};
pub use exchange::{Cut, EffectCount, Exchange, Patience, ProbeRequest, ProbeResponse, Received, Step};
pub use kit::run_name;
pub use openapi::{MAX_BYTES as MAX_OPENAPI_BYTES, OpenApiError, OpenApiOperation, operations};
pub use report::{Report, RuleFinding, Totals, junit, sarif};
pub use report_file::check_writable;
pub use rules::{ProbeRule, RulePlan, Subject, plan, rules, rules_for};
pub use run::{Bounds, RunError, control, run, run_until};
pub use secrets::Secrets;
pub use seen::Verdict;
pub use target::{Command, Condition, Counter, OWN_HEADERS, Target, WebhookTarget};
pub use transcript::planned;
pub use unchecked::Unchecked;
pub use words::{parse_header, parse_method_and_path, parse_provoked};
