//! Callers that are cancelled in the middle of every kind of call: whatever was done is complete.

use std::collections::BTreeMap;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::ledger::OperationGuarantee;
use ichido_core::lifecycle::{Event, StateName};
use ichido_core::retry::Guarantee;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::{MessageFilter, NewMessage, Note, SameContent, Settlement};
use ichido_store::rescue::RescueOptions;
use ichido_store::testing::while_busy;

use super::words::{claim, until};
use crate::both_databases;
use crate::fixture::{DAY, KEYED, StoreFixture, many, message, queue, succeeded, terms, will_retry};

const ROUNDS: u64 = 60;
const CALLERS: u64 = 12;
/// The number of kinds of calls.
const KINDS: u64 = 8;
/// A caller is cancelled within this time.
const MAX_CANCEL_AFTER_MICROS: u64 = 6_000;
/// Longer than any backoff or lease here.
const LATER: Duration = Duration::from_mins(2);

/// Returns the next number of a sequence that is the same in every run.
fn dice(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

const fn rescue_terms(guarantee: Guarantee) -> RescueOptions {
    RescueOptions { guarantee, wait: Duration::from_mins(1), max_time_in_flight: Duration::from_mins(10) }
}

/// Makes some call; only a caller that is still there sees its result.
async fn call(store: Store, thrown: u64, number: u64) -> Result<(), StoreError> {
    match thrown % KINDS {
        0 | 1 => drop(store.messages().enqueue(message(&format!("k{number}"))).await?),
        2 => {
            let content = Digest::of_bytes(&number.to_be_bytes());
            let same_content = Some(SameContent { content, window: DAY });
            store.messages().enqueue(NewMessage { same_content, ..message(&format!("c{number}")) }).await?;
        }
        3 | 4 => {
            for (index, work) in store.claims().claim(&queue(), many(3), terms()).await?.iter().enumerate() {
                let fails = !(thrown / KINDS + index as u64).is_multiple_of(2);
                let event = if fails { will_retry(work) } else { succeeded(work) };
                let _ = store.claims().settle(Settlement::new(work, event, Note::default())).await?;
            }
        }
        5 => {
            let queued = MessageFilter { status: Some(StateName::Queued), ..MessageFilter::default() };
            for row in store.messages().list(&queued, 1).await? {
                let _ = store.messages().step(row.id, |_| Event::Cancelled, &Note::default()).await?;
            }
        }
        6 => {
            store.claims().promote(5).await?;
            store.claims().rescue(|_| rescue_terms(KEYED)).await?;
        }
        _ => {
            let _ = store.keys().claim(claim(&format!("k{number}"), OperationGuarantee::None)).await?;
            store.queues().fold_counts(10).await?;
        }
    }
    Ok(())
}

/// Counts messages by state: as listed one by one, and as counted.
async fn listed_and_counted(store: &Store) -> [BTreeMap<&'static str, i64>; 2] {
    let mut listed: BTreeMap<&'static str, i64> = BTreeMap::new();
    let mut after = None;
    loop {
        let page =
            store.messages().list(&MessageFilter { after, ..MessageFilter::default() }, 1_000).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        for row in page {
            *listed.entry(row.status.as_str()).or_default() += 1;
        }
    }
    let counts = store.queues().counts().await.unwrap();
    let counted = counts.into_iter().map(|count| (count.state.as_str(), count.count));
    [listed, counted.filter(|(_, count)| *count != 0).collect()]
}

/// Sends everything that can be sent. Returns whether nothing is left.
async fn sends_all(store: &Store) -> bool {
    let queue = queue();
    store.advance_clock(LATER);
    while while_busy(|| store.claims().rescue(|_| rescue_terms(KEYED))).await.is_some() {}
    while_busy(|| store.claims().promote(1_000)).await;
    for work in while_busy(|| store.claims().claim(&queue, many(1_000), terms())).await {
        let _ =
            while_busy(|| store.claims().settle(Settlement::new(&work, succeeded(&work), Note::default())))
                .await;
    }
    let [listed, _] = listed_and_counted(store).await;
    ["queued", "sending", "failed"].iter().all(|state| !listed.contains_key(state))
}

both_databases! {
    #[test]
    async fn cancelled_calls_apply_fully_or_not_at_all(fixture: StoreFixture) {
        let store = fixture.store.clone();
        let mut seed = 0x9E37_79B9_7F4A_7C15;
        for round in 0..ROUNDS {
            let mut tasks = Vec::new();
            for number in 0..CALLERS {
                let thrown = dice(&mut seed);
                let calling = call(store.clone(), thrown, round * CALLERS + number);
                let stays = Duration::from_micros(dice(&mut seed) % MAX_CANCEL_AFTER_MICROS);
                tasks.push(tokio::spawn(tokio::time::timeout(stays, calling)));
            }
            for task in tasks {
                match task.await.unwrap() {
                    // Cancelled, answered, or `Busy`.
                    Err(_) | Ok(Ok(()) | Err(StoreError::Busy)) => (),
                    Ok(Err(error)) => panic!("{error:?}"),
                }
            }
            fixture.pass(Duration::from_secs(20));
        }
        // Operations in flight end first.
        until("everything is in one place, and counted there", async || {
            let [listed, counted] = listed_and_counted(&store).await;
            listed == counted
        })
        .await;
        until("everything is sent", async || sends_all(&store).await).await;
    }
}
