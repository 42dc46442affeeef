//! An application with one dependency: every type of the interface that it names is in `ichido`.
//!
//! Nothing here may be imported from another crate of ours.
// Spec: H4.

use std::num::NonZeroU32;
use std::time::Duration;

use ichido::dead_letters::RequeuePolicies;
use ichido::destination::HandlerRequest;
use ichido::key::{IdempotencyKey, KeyError};
use ichido::ledger::{Class, OnUnknown, Profile, RequestOutcome};
use ichido::lifecycle::{Decision, State, StateName, StepRefusal};
use ichido::prelude::*;
use ichido::retry::{Guarantee as DestinationGuarantee, Jitter, Schedule};
use ichido::settings::ConfigErrors;
use ichido::store::alert::Alert;
use ichido::store::dead_letter::{
    DeadLetterFilter, DeadLetterRow, DeadLetterStep, Disposition, RequeuePolicy,
};
use ichido::store::message::{
    DeadLetterState, MessageFilter, MessageRow, NewMessage, Note, QueueName, RequestBody, StepResult, limits,
};
use ichido::testing::{Drained, TestIchido};
use ichido::verdict::{Advice, Effect, ErrorCode, Verdict};
use ichido::{alert, audit, digest, failure_group, fence, fingerprint, hops, json, pace, series, store};
use serde::{Deserialize, Serialize};

/// A type declares its retries.
const RETRY: Retry = Retry {
    schedule: Schedule::Exponential { base: Duration::from_secs(1), factor: 2, cap: Duration::from_mins(1) },
    jitter: Jitter::None,
    max_attempts: NonZeroU32::new(2).unwrap(),
};

#[derive(Debug, Serialize, Deserialize)]
struct Charge {
    order: i64,
}

impl Message for Charge {
    const QUEUE: &str = "charges";
    const RETRY: Retry = RETRY;
}

/// An application stores parts of what it receives.
struct Received {
    key: IdempotencyKey,
    fence: fence::Fence,
    hops: hops::Hops,
    queue: QueueName,
}

impl Received {
    fn of(job: &Job<Charge>) -> Self {
        let (key, queue) = (job.key.clone(), job.queue.clone());
        Self { key, fence: job.fence, hops: job.hops.clone(), queue }
    }
}

/// What it finds in lists, and writes functions about.
#[expect(dead_code, reason = "its types are what is tested")]
struct Listed {
    row: MessageRow,
    letter: DeadLetterRow,
    disposition: Disposition,
    alert: Alert,
    rule: alert::AlertRule,
    group: failure_group::GroupState,
    subject: series::SeriesSubject,
    entry: audit::entry::EntryId,
    digest: digest::Digest,
    fingerprint: fingerprint::Fingerprint,
    form: json::CanonicalForm,
    pace: pace::PerSecond,
    state: State,
    refusal: StepRefusal,
    stepped: StepResult,
    verdict: Verdict,
    advice: Advice,
    guarantee: DestinationGuarantee,
    request: HandlerRequest,
    new: NewMessage,
    body: RequestBody,
    outcome: RequestOutcome,
    class: (Class, OnUnknown, Profile),
    errors: (KeyError, StoreError, ConfigErrors),
    node: store::node::NodeRow,
    at: Timestamp,
}

/// Its own operators' page.
async fn parked(ichido: &Ichido<Sqlite>) -> Result<Vec<DeadLetterRow>, StoreError> {
    let filter = DeadLetterFilter { state: DeadLetterState::Parked, ..DeadLetterFilter::default() };
    ichido.store().dead_letters().page(&filter, None, limits::MAX_PAGE).await
}

#[tokio::test]
async fn application_names_every_type_with_one_crate() {
    let test = TestIchido::new().await;
    let worker = test.worker().handle_once(|job: Job<Charge>| async move {
        let received = Received::of(&job);
        assert!(received.queue.as_str() == Charge::QUEUE && !received.hops.is_full());
        assert!(0 < received.fence.get() && !received.key.as_str().is_empty());
        Err::<(), _>(JobError::unknown("the connection broke"))
    });
    let id = test.enqueue(&Charge { order: 1 }).await.unwrap().id();
    assert_eq!(test.drain(&worker, Charge::QUEUE).await, Drained { parked: 1, ..Drained::default() });

    let filter = MessageFilter {
        queue: QueueName::parse(Charge::QUEUE),
        status: Some(StateName::Parked),
        code: Some(ErrorCode::Unknown),
        ..MessageFilter::default()
    };
    let rows = test.store().messages().list(&filter, limits::MAX_PAGE).await.unwrap();
    assert_eq!(rows.iter().map(|row| (row.id, row.effect)).collect::<Vec<_>>(), [(id, Effect::Unknown)]);
    assert_eq!(parked(&test).await.unwrap().len(), 1);

    // A call that was not answered may be in flight for a while.
    test.advance(Duration::from_hours(24));
    let note = Note { actor: Some("olivia".to_owned()), ..Note::default() };
    let decided = test.store().dead_letters().decide(&[id], Decision::Done, &note).await.unwrap();
    assert!(matches!(&decided[..], [DeadLetterStep::Now(state)] if state.name() == "sent"), "{decided:?}");
    let policy = RequeuePolicy { requeue: true, guarantee: DestinationGuarantee::None };
    let requeued = test.store().dead_letters().requeue(&[id], |_| policy, &note).await.unwrap();
    assert!(matches!(&requeued[..], [DeadLetterStep::NoLetter]), "{requeued:?}");
    RequeuePolicies::published(test.store()).await.unwrap();
}
