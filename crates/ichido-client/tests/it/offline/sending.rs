//! Tests that one sender at a time sends entries in order and records outcomes.
// Spec: A8, A9, A13, C6.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ichido_client::queue::{DrainOutcome, EventKind, QueueError, SendSettings, State, StepOutcome};
use ichido_client::{Cause, Client, ClientSettings, Token};
use tokio::net::{TcpListener, TcpStream};

use super::temp_queue::{SHOP, TempQueue, accept, all, drain, keys, next_event, order, quick, sender};
use crate::server::{ServerAction, TestServer, build_client, plain, with};

/// Returns a client of a port where nobody listens, and the port.
async fn unreachable_client() -> (Client, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (build_client(ClientSettings::new(format!("http://{address}"))), address)
}

/// Starts to listen at `address` and forwards everything.
async fn start_forwarding(address: SocketAddr, to: SocketAddr) {
    let listener = TcpListener::bind(address).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            let mut to = TcpStream::connect(to).await.unwrap();
            tokio::spawn(async move { drop(tokio::io::copy_bidirectional(&mut from, &mut to).await) });
        }
    });
}

#[tokio::test]
async fn entries_are_sent_in_order_and_removed_when_done() {
    let (temp, server) = (TempQueue::new(), TestServer::with_actions(vec![ServerAction::Work]).await);
    let queue = temp.queue().await;
    accept(&queue, &["k1", "k2"]).await;
    let by_program = order("k3").started_by(Cause::Auto);
    queue.accept(SHOP, &[by_program]).await.unwrap();
    let (outcome, events) = drain(&mut sender(&queue, server.client()).await).await;
    assert_eq!((outcome, all(&queue).await.len()), (DrainOutcome::Empty, 0));
    let seen: Vec<String> = server.seen().iter().map(|request| request.key().to_owned()).collect();
    assert_eq!(seen, ["k1", "k2", "k3"]);
    assert_eq!(server.seen()[0].body, br#"{"order": "k1"}"#, "byte for byte");
    assert_eq!(server.seen()[0].field("content-type"), Some("application/json"));
    assert_eq!(server.attempts(), ["1; manual", "1; manual", "1; auto"]);
    for event in events {
        assert!(
            matches!(&event.kind, EventKind::Sent { answer } if answer.status == 201 && !answer.is_replay())
        );
    }
}

#[tokio::test]
async fn lost_response_is_learned_with_the_same_key() {
    for act in [ServerAction::WorkAndReset, ServerAction::WorkAndCut] {
        let (temp, server) =
            (TempQueue::new(), TestServer::with_actions(vec![act, ServerAction::Work]).await);
        let queue = temp.queue().await;
        accept(&queue, &["k1", "k2"]).await;
        let (outcome, events) = drain(&mut sender(&queue, server.client()).await).await;
        assert_eq!((outcome, server.effects("k1"), server.effects("k2")), (DrainOutcome::Empty, 1, 1));
        assert!(
            matches!(&events[0].kind, EventKind::Waits { reason, .. } if reason.code == "no_answer"),
            "{events:?}"
        );
        assert!(matches!(&events[1].kind, EventKind::Sent { answer } if answer.is_replay()), "{events:?}");
        // The second one waits until the first is done.
        let seen: Vec<String> = server.seen().iter().map(|request| request.key().to_owned()).collect();
        assert_eq!(seen, ["k1", "k1", "k2", "k2"]);
        assert_eq!(server.attempts(), ["1; manual", "2; auto", "1; manual", "2; auto"]);
    }
}

#[tokio::test]
async fn refused_entry_fails_at_once_and_the_next_continues() {
    let problem = with("409 Conflict", &[], r#"{"code":"key_conflict","detail":"used for another"}"#);
    let temp = TempQueue::new();
    let server = TestServer::start(move |_, request| {
        if request.key() == "k1" { ServerAction::Say(problem.clone()) } else { ServerAction::Work }
    })
    .await;
    let queue = temp.queue().await;
    accept(&queue, &["k1", "k2"]).await;
    let (outcome, events) = drain(&mut sender(&queue, server.client()).await).await;
    assert_eq!((outcome, server.seen().len(), server.effects("k2")), (DrainOutcome::Empty, 2, 1));
    assert!(
        matches!(&events[0].kind, EventKind::Failed { refused: Some(answer), .. } if answer.status == 409)
    );
    let [failed] = &all(&queue).await[..] else { panic!("one is left") };
    assert_eq!((failed.key.as_str(), failed.state, failed.attempts), ("k1", State::Failed, 1));
    let reason = failed.reason.as_ref().unwrap();
    assert_eq!(
        (reason.code.as_str(), reason.text.as_str()),
        ("key_conflict", "the server returned 409: used for another")
    );
}

#[tokio::test]
async fn entry_fails_after_three_attempts_and_the_next_continues() {
    let temp = TempQueue::new();
    let server = TestServer::start(|nth, request| match (request.key(), nth) {
        ("k1", 0) => ServerAction::Say(plain("500 Internal Server Error")),
        ("k1", 1) => ServerAction::WorkAndReset,
        ("k1", _) => ServerAction::Say(plain("503 Service Unavailable")),
        _ => ServerAction::Work,
    })
    .await;
    let queue = temp.queue().await;
    accept(&queue, &["k1", "k2"]).await;
    let (outcome, events) = drain(&mut sender(&queue, server.client()).await).await;
    assert_eq!((outcome, server.effects("k1"), server.effects("k2")), (DrainOutcome::Empty, 1, 1));
    assert!(matches!(&events[2].kind, EventKind::Failed { refused: None, .. }), "{events:?}");
    let [failed] = &all(&queue).await[..] else { panic!("one is left") };
    assert_eq!((failed.state, failed.attempts, failed.sends), (State::Failed, 3, 3));
    assert_eq!(failed.effect, ichido_core::verdict::Effect::Unknown);
    assert!(failed.reason.as_ref().unwrap().text.contains("all attempts failed"), "{failed:?}");
}

#[tokio::test]
async fn retry_after_survives_a_restart() {
    let busy = with("429 Too Many Requests", &[("Retry-After", "3600")], "");
    let (temp, server) =
        (TempQueue::new(), TestServer::with_actions(vec![ServerAction::Say(busy), ServerAction::Work]).await);
    let queue = temp.queue().await;
    accept(&queue, &["k1", "k2"]).await;
    let (outcome, _) = drain(&mut sender(&queue, server.client()).await).await;
    assert!(matches!(outcome, DrainOutcome::Waits(wait) if Duration::from_mins(59) < wait), "{outcome:?}");
    queue.close().await;
    let queue = temp.queue().await;
    let (outcome, events) = drain(&mut sender(&queue, server.client()).await).await;
    assert!(
        matches!(outcome, DrainOutcome::Waits(_)) && events.is_empty() && server.seen().len() == 1,
        "{outcome:?}"
    );
    assert!(all(&queue).await[0].due_in.is_some());
    temp.hours_pass(2).await;
    let (outcome, _) = drain(&mut sender(&queue, server.client()).await).await;
    // k2 meets the same server as k1, which asked to wait.
    assert!(matches!(outcome, DrainOutcome::Waits(_)), "{outcome:?}");
    assert_eq!((server.effects("k1"), keys(&all(&queue).await)), (1, vec!["k2"]));
}

#[tokio::test]
async fn action_in_flight_is_polled_and_uses_no_attempt() {
    let processing =
        with("202 Accepted", &[("Idempotency-Status", "processing"), ("Retry-After", "0")], "{}");
    let (temp, server) = (
        TempQueue::new(),
        TestServer::with_actions(vec![ServerAction::Say(processing), ServerAction::Work]).await,
    );
    let queue = temp.queue().await;
    accept(&queue, &["k1"]).await;
    let mut sender = sender(&queue, server.client()).await;
    let asked = next_event(&mut sender).await;
    assert!(matches!(asked.kind, EventKind::InFlight { .. }), "{asked:?}");
    let entry = &all(&queue).await[0];
    assert_eq!((entry.state, entry.attempts, entry.sends), (State::Waiting, 0, 1));
    let done = next_event(&mut sender).await;
    assert!(matches!(done.kind, EventKind::Sent { .. }), "{done:?}");
    assert_eq!(
        (server.effects("k1"), server.attempts()),
        (1, vec!["1; manual".to_owned(), "2; auto".to_owned()])
    );
}

#[tokio::test]
async fn unreachable_destination_uses_no_attempt_and_is_retried_on_request() {
    let (temp, server) = (TempQueue::new(), TestServer::with_actions(vec![ServerAction::Work]).await);
    let queue = temp.queue().await;
    accept(&queue, &["k1", "k2"]).await;
    let (client, address) = unreachable_client().await;
    let mut sender = sender(&queue, client).await;
    let offline = next_event(&mut sender).await;
    assert!(matches!(&offline.kind, EventKind::Offline { wait, .. } if !wait.is_zero()), "{offline:?}");
    let entry = &all(&queue).await[0];
    assert_eq!((entry.state, entry.attempts, entry.sends, entry.first_sent), (State::Waiting, 0, 0, None));
    assert!(matches!(sender.step().await.unwrap(), StepOutcome::Wait(_)), "it is left alone");
    start_forwarding(address, server.address).await;
    queue.wake();
    // The wait of an hour ends at once.
    sender.rest(Duration::from_hours(1)).await;
    let (outcome, _) = drain(&mut sender).await;
    assert_eq!((outcome, server.effects("k1"), server.effects("k2")), (DrainOutcome::Empty, 1, 1));
    assert_eq!(server.attempts(), ["1; manual", "1; manual"], "nothing had left before");
}

#[tokio::test]
async fn drain_ends_when_no_destination_is_reachable() {
    let temp = TempQueue::new();
    let queue = temp.queue().await;
    accept(&queue, &["k1"]).await;
    let (outcome, events) = drain(&mut sender(&queue, unreachable_client().await.0).await).await;
    assert_eq!((outcome, events.len()), (DrainOutcome::Offline, 3));
    assert_eq!(all(&queue).await[0].attempts, 0);
}

#[tokio::test]
async fn file_and_destination_have_one_sender() {
    let (temp, server) = (TempQueue::new(), TestServer::with_actions(vec![ServerAction::Work]).await);
    let (queue, other) = (temp.queue().await, temp.queue().await);
    let first = sender(&queue, server.client()).await;
    let second = other.sender(SHOP, Arc::new(server.client()), quick()).await;
    assert!(matches!(second, Err(QueueError::SenderBusy)), "{second:?}");
    let elsewhere = other.sender("bank", Arc::new(server.client()), quick()).await;
    assert!(elsewhere.is_ok(), "another destination is another matter");
    // Another name leads to the same file.
    #[cfg(unix)]
    {
        let link = temp.folder().join("link");
        std::os::unix::fs::symlink(temp.file(), &link).unwrap();
        let third = ichido_client::queue::OfflineQueue::open(link).await.unwrap();
        let third = third.sender(SHOP, Arc::new(server.client()), quick()).await;
        assert!(matches!(third, Err(QueueError::SenderBusy)), "{third:?}");
    }
    drop(first);
    assert!(
        other.sender(SHOP, Arc::new(server.client()), quick()).await.is_ok(),
        "and it is free again at once"
    );
}

#[tokio::test]
async fn one_destination_does_not_block_another() {
    let (temp, server) = (TempQueue::new(), TestServer::with_actions(vec![ServerAction::Work]).await);
    let queue = temp.queue().await;
    accept(&queue, &["k1"]).await;
    queue.accept("bank", &[order("k2")]).await.unwrap();
    let mut shop = sender(&queue, unreachable_client().await.0).await;
    assert!(matches!(next_event(&mut shop).await.kind, EventKind::Offline { .. }));
    let mut bank = queue.sender("bank", Arc::new(server.client()), quick()).await.unwrap();
    assert_eq!(drain(&mut bank).await.0, DrainOutcome::Empty);
    assert_eq!((server.effects("k2"), keys(&all(&queue).await)), (1, vec!["k1"]));
}

/// A cancelled attempt leaves the mark, and the next one finds out.
#[tokio::test]
async fn interrupted_attempt_is_repeated_and_not_counted_as_failed() {
    let (temp, server) =
        (TempQueue::new(), TestServer::with_actions(vec![ServerAction::Silence, ServerAction::Work]).await);
    let queue = temp.queue().await;
    accept(&queue, &["k1"]).await;
    let mut first = sender(&queue, server.client()).await;
    let seen = async {
        while server.seen().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        step = first.step() => panic!("nobody answered: {step:?}"),
        () = seen => {}
    }
    let entry = &all(&queue).await[0];
    assert_eq!((entry.state, entry.attempts, entry.sends), (State::Sending, 0, 1));
    drop(first);
    let (outcome, _) = drain(&mut sender(&queue, server.client()).await).await;
    assert_eq!((outcome, server.effects("k1")), (DrainOutcome::Empty, 1));
    assert_eq!(server.attempts(), ["1; manual", "2; auto"]);
}

/// When asked to stop, the sender finishes the current attempt first.
#[tokio::test]
async fn stopping_sender_finishes_its_attempt() {
    let temp = TempQueue::new();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stop = std::sync::Mutex::new(Some(stop));
    // The request to stop comes while the first request is at the server.
    let server = TestServer::start(move |_, _| {
        drop(stop.lock().unwrap().take());
        ServerAction::Work
    })
    .await;
    let queue = temp.queue().await;
    accept(&queue, &["k1", "k2"]).await;
    let mut sender = sender(&queue, server.client()).await;
    let mut events = Vec::new();
    sender.run(async { drop(stopped.await) }, |event| events.push(event)).await.unwrap();
    assert!(matches!(&events[..], [event] if matches!(event.kind, EventKind::Sent { .. })), "{events:?}");
    assert_eq!((server.effects("k1"), keys(&all(&queue).await)), (1, vec!["k2"]));
}

#[tokio::test]
async fn running_sender_sends_later_entries() {
    let (temp, server) = (TempQueue::new(), TestServer::with_actions(vec![ServerAction::Work]).await);
    let queue = temp.queue().await;
    let mut sender = sender(&queue, server.client()).await;
    let (event_sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(async move {
        sender.run(async { drop(stopped.await) }, |event| event_sender.send(event).unwrap()).await
    });
    for key in ["k1", "k2"] {
        accept(&queue, &[key]).await;
        assert_eq!(events.recv().await.unwrap().key.as_str(), key);
    }
    drop(stop);
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn token_is_sent_but_not_stored() {
    let (temp, server) = (TempQueue::new(), TestServer::with_actions(vec![ServerAction::WorkAndReset]).await);
    let queue = temp.queue().await;
    accept(&queue, &["k1"]).await;
    let token = Token::parse("secret-of-the-token").unwrap();
    let client = build_client(ClientSettings { token: Some(token), ..server.settings() });
    next_event(&mut sender(&queue, client).await).await;
    assert_eq!(server.seen()[0].field("authorization"), Some("Bearer secret-of-the-token"));
    for file in std::fs::read_dir(temp.folder()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(6).any(|six| six == b"secret"));
    }
}

/// The login page of a hotel network responds to every request.
#[tokio::test]
async fn success_without_proof_removes_nothing() {
    let (temp, server) = (
        TempQueue::new(),
        TestServer::with_actions(vec![ServerAction::Say(with("200 OK", &[], "<html>")), ServerAction::Work])
            .await,
    );
    let queue = temp.queue().await;
    accept(&queue, &["k1"]).await;
    let terms = SendSettings { proof: Some(|answer, _| answer.text_at("/id").is_some()), ..quick() };
    let mut sender = queue.sender(SHOP, Arc::new(server.client()), terms).await.unwrap();
    let page = next_event(&mut sender).await;
    assert!(
        matches!(&page.kind, EventKind::Waits { reason, .. } if reason.text.contains("login page")),
        "{page:?}"
    );
    assert!(matches!(next_event(&mut sender).await.kind, EventKind::Sent { .. }));
    assert_eq!(server.effects("k1"), 1);
}

#[tokio::test]
async fn invalid_send_settings_are_rejected() {
    let (temp, server) = (TempQueue::new(), TestServer::with_actions(vec![ServerAction::Work]).await);
    let queue = temp.queue().await;
    let terms = SendSettings { keeps_keys_for: Duration::from_secs(30), ..SendSettings::default() };
    let refused = queue.sender(SHOP, Arc::new(server.client()), terms).await;
    assert!(matches!(refused, Err(QueueError::Settings(_))), "{refused:?}");
}
