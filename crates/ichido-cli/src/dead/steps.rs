//! Steps on letters given by id: one request each.

use clap::ValueEnum;
use ichido_core::settings::ConfigErrors;
use ichido_core::text::visible;
use ichido_server::serve::views::{Letter, MessageFacts};
use serde_json::{Value, json};
use uuid::Uuid;

use super::DeadLetters;
use super::filter::DeadLetterFilter;
use crate::exit::Exit;
use crate::id::find_messages;
use crate::{api_client, out};

/// Selects dead letters, and how to change them.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Ids, their first digits, or keys; or use a filter
    ids: Vec<String>,
    #[command(flatten)]
    pub(super) filter: DeadLetterFilter,
    /// Select all, without a filter
    #[arg(long)]
    pub(super) all: bool,
    /// Only show what would happen
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(super) yes: bool,
    /// Send in growing steps; halt above 10 % failures
    #[arg(long)]
    pub(super) canary: bool,
    /// Reason, for the audit trail
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
}

/// An action on dead or parked messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LetterAction {
    Requeue,
    Discard,
    Decide(OperatorDecision),
}

impl LetterAction {
    /// Returns the API's name.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Requeue => "requeue",
            Self::Discard => "discard",
            Self::Decide(_) => "decide",
        }
    }

    pub(super) fn decision(self) -> Option<&'static str> {
        match self {
            Self::Requeue | Self::Discard => None,
            Self::Decide(decision) => Some(decision.as_str()),
        }
    }

    /// Returns the past tense, for messages.
    pub(super) const fn past_tense(self) -> &'static str {
        match self {
            Self::Requeue => "requeued",
            Self::Discard => "discarded",
            Self::Decide(_) => "decided",
        }
    }

    /// Returns the present participle, for messages about what happens now.
    pub(super) const fn present_tense(self) -> &'static str {
        match self {
            Self::Requeue => "requeuing",
            Self::Discard => "discarding",
            Self::Decide(_) => "deciding",
        }
    }
}

ichido_core::words! {
    /// An operator's decision on an unknown effect, of a message or of a request.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
    pub(crate) enum OperatorDecision {
        /// It took effect
        Done = "done",
        /// It had no effect, and may run again
        NotDone = "not_done",
        /// It cannot be found out, and must not run again
        GiveUp = "give_up",
    }
}

impl OperatorDecision {
    /// Describes the result for a letter that is now in this state.
    pub(crate) fn describe(self, state: &str) -> &'static str {
        match (self, state) {
            (Self::Done, "dead") => "done; it stays dead and is not sent again",
            (Self::Done, _) => "done; it counts as sent",
            (Self::NotDone, "dead") => "not done; it stays dead until it is requeued",
            (Self::NotDone, _) => "not done; it is sent again",
            (Self::GiveUp, _) => "dead; its effect stays unknown",
        }
    }
}

impl Args {
    /// Returns what the filter selects, for messages.
    pub(super) const fn noun(&self, action: LetterAction) -> &'static str {
        let is_decided = matches!(action, LetterAction::Decide(_));
        if self.filter.is_of_parked() || is_decided && !self.filter.dead {
            "parked messages"
        } else {
            "dead letters"
        }
    }

    /// Checks the flags, most of all which letters they select.
    pub(super) fn check(&self, action: LetterAction) -> Result<(), ConfigErrors> {
        let wrong = |flag: &str, what: &str| Err(ConfigErrors::one(flag, what));
        let sends = [LetterAction::Requeue, LetterAction::Decide(OperatorDecision::NotDone)];
        if self.canary && !sends.contains(&action) {
            return wrong("--canary", "applies only to requeue and decide not-done; others send nothing");
        }
        if action == LetterAction::Discard && self.reason.is_none() {
            return wrong("--reason", "is required: give the reason for the discard; it is recorded");
        }
        if action == LetterAction::Discard && self.filter.is_of_parked() {
            return wrong("--parked", "parked messages cannot be discarded; use ichido dead decide");
        }
        match (self.ids.is_empty(), self.all || !self.filter.is_all()) {
            (true, false) => {
                wrong("ID", "select messages by id, with a filter such as --queue, or with --all")
            }
            (false, true) => wrong("ID", "select messages by id or with a filter, not both"),
            (false, false) if self.canary => wrong("--canary", "requires a filter, not ids"),
            (false, false) if self.dry_run && matches!(action, LetterAction::Decide(_)) => {
                wrong("--dry-run", "requires a filter, not ids")
            }
            (false, false) => Ok(()),
            (true, true) => self.filter.to_json().map(drop),
        }
    }
}

impl DeadLetters {
    /// Takes a step on letters given by ids or by a filter.
    pub(super) async fn step(&self, args: Args, action: LetterAction) -> Result<(), Exit> {
        if args.ids.is_empty() {
            return self.bulk(&args, action).await;
        }
        let ids = find_messages(&self.api, &args.ids).await?;
        if let LetterAction::Decide(finding) = action {
            return self.decide(finding, &ids, args.reason).await;
        }
        if args.dry_run {
            return self.preview_each(&ids, action).await;
        }
        self.each(&ids, action.as_str(), &json!({ "reason": args.reason }), |id, ended| match ended {
            Ok(_) => json!({ "id": id, "done": true, "result": action.past_tense() }),
            Err(why) => json!({ "id": id, "done": false, "result": why }),
        })
        .await
    }

    /// Prints what would happen to each letter.
    async fn preview_each(&self, ids: &[Uuid], action: LetterAction) -> Result<(), Exit> {
        let mut is_refused = false;
        for id in ids {
            let refused = match (self.find::<Letter>(*id).await?, action) {
                (Ok(letter), LetterAction::Discard) => letter.discard_refused,
                (Ok(letter), _) => letter.requeue_refused,
                (Err(why), LetterAction::Requeue) => {
                    // A failed message is not a dead letter; it becomes due at once.
                    let is_failed = match self.api.try_get(&format!("/v1/messages/{id}")).await? {
                        Ok(found) => api_client::decode::<MessageFacts>(&found)?.status == "failed",
                        Err(_) => false,
                    };
                    Some(why).filter(|_| !is_failed)
                }
                (Err(why), _) => Some(why),
            };
            is_refused |= refused.is_some();
            let text = refused
                .map_or_else(|| format!("would be {}", action.past_tense()), |why| format!("refused: {why}"));
            self.print_result(
                &id.to_string(),
                &json!({ "id": id.to_string(), "done": false, "result": text }),
            )?;
        }
        if is_refused { Err(Exit::Findings) } else { Ok(()) }
    }

    async fn decide(
        &self,
        finding: OperatorDecision,
        ids: &[Uuid],
        reason: Option<String>,
    ) -> Result<(), Exit> {
        let body = json!({ "decision": finding.as_str(), "reason": reason });
        self.each(ids, "decide", &body, |id, ended| match ended {
            Ok(state) => json!({ "id": id, "decided": true, "result": finding.describe(state) }),
            Err(why) => json!({ "id": id, "decided": false, "result": why }),
        })
        .await
    }

    /// Takes a step on each letter in turn.
    ///
    /// A refused step does not stop the others. If the API cannot be reached, the command ends.
    async fn each(
        &self,
        ids: &[Uuid],
        step: &str,
        body: &Value,
        shown: impl Fn(&str, Result<&str, &str>) -> Value,
    ) -> Result<(), Exit> {
        let (mut refused, mut failed) = (0, 0);
        for id in ids {
            let text = id.to_string();
            let shown = match self.api.post(&format!("/v1/messages/{id}/{step}"), body).await {
                Ok(answer) => shown(&text, Ok(&api_client::decode::<MessageFacts>(&answer)?.status)),
                Err(exit) => {
                    let (count, why) = match exit {
                        Exit::Conflict(why) => (&mut refused, why),
                        Exit::Failed(why) => (&mut failed, why),
                        exit => return Err(exit),
                    };
                    *count += 1;
                    // The output already says that it is refused.
                    let why = why.strip_prefix("the message was not requeued: ").unwrap_or(&why);
                    shown(&text, Err(&format!("refused: {why}")))
                }
            };
            self.print_result(&text, &shown)?;
        }
        match (refused, failed) {
            (0, 0) => Ok(()),
            (refused, _) if refused == ids.len() => Err(Exit::Refused),
            _ => Err(Exit::Findings),
        }
    }

    /// Prints the result for one letter, as JSON or as text.
    fn print_result(&self, id: &str, shown: &Value) -> Result<(), Exit> {
        let result = shown["result"].as_str().map(visible).unwrap_or_default();
        out::print_either(self.api.json, shown, format_args!("{id}: {result}"))
    }
}
