//! Dying servers and lossy networks: a message that was never sent is not done, one that may have arrived is unknown, and a
//! retry within the window stores it once.

use nats_for_tests::NatsServer;

use super::proxy::{Mode, NatsProxy};
use super::tried::{BEFORE, DONE, MAYBE_SENT, NOT_SENT, connected, impatient, order, outcome, settings};
use crate::worker::fixture::poll_pause;

async fn world() -> (NatsServer, NatsProxy) {
    let server = NatsServer::start().await;
    server.make_stream().await;
    let proxy = NatsProxy::before(server.address).await;
    (server, proxy)
}

#[tokio::test]
async fn without_server_nothing_is_done_or_sent_later() {
    let (server, proxy) = world().await;
    let nats = connected(&settings(proxy.url())).await;
    let folder = server.kill();
    // The end of the connection may not have been noticed yet: then a first attempt may be in doubt.
    while outcome(&nats, &order("lost")).await != NOT_SENT {
        poll_pause().await;
    }
    assert_eq!(outcome(&nats, &order("lost")).await, NOT_SENT);
    let server = NatsServer::again(folder).await;
    proxy.lead_to(server.address);
    // The next message is alone on the new connection: nothing was buffered for it.
    assert_eq!(outcome(&nats, &order("next")).await, DONE);
    let stored = server.stored().await;
    let ids: Vec<_> = stored.iter().filter_map(|message| message.headers.get("Nats-Msg-Id")).collect();
    assert_eq!(ids.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["next"]);
}

#[tokio::test]
async fn a_lost_acknowledgement_leaves_it_unknown_and_a_retry_finds_it_done() {
    let (server, proxy) = world().await;
    let nats = connected(&settings(proxy.url())).await;
    proxy.set(Mode::CutAnswer);
    assert_eq!(outcome(&nats, &order("k1")).await, MAYBE_SENT);
    assert_eq!(proxy.connections(), 1, "no hidden retry");
    proxy.set(Mode::Pass);
    assert_eq!(outcome(&nats, &order("k1")).await, BEFORE);
    assert_eq!((server.stored().await.len(), proxy.connections()), (1, 2));
}

#[tokio::test]
async fn a_lost_publish_leaves_it_unknown_and_a_retry_stores_it() {
    let (server, proxy) = world().await;
    let nats = connected(&settings(proxy.url())).await;
    proxy.set(Mode::CutPublish);
    assert_eq!(outcome(&nats, &order("k1")).await, MAYBE_SENT);
    assert_eq!((server.stored().await.len(), proxy.connections()), (0, 1));
    proxy.set(Mode::Pass);
    assert_eq!(outcome(&nats, &order("k1")).await, DONE);
    assert_eq!(server.stored().await.len(), 1);
}

#[tokio::test]
async fn late_acknowledgement_leaves_effect_unknown_and_drops_connection() {
    let (server, proxy) = world().await;
    let nats = impatient(proxy.url()).await;
    let connections = proxy.connections();
    proxy.set(Mode::Silence);
    assert_eq!(outcome(&nats, &order("k1")).await, MAYBE_SENT);
    server.until_stored(1).await;
    proxy.set(Mode::Pass);
    // With its short timeouts it may need more than one attempt to get through.
    while outcome(&nats, &order("k1")).await != BEFORE {
        poll_pause().await;
    }
    assert!(connections < proxy.connections());
    assert_eq!(server.stored().await.len(), 1);
}

#[tokio::test]
async fn a_server_that_dies_before_it_acknowledges_knows_the_key_when_it_is_back() {
    let (server, proxy) = world().await;
    let nats = connected(&settings(proxy.url())).await;
    proxy.set(Mode::Silence);
    let call = order("k1");
    let (came, folder) = tokio::join!(outcome(&nats, &call), async {
        server.until_stored(1).await;
        server.kill()
    });
    assert_eq!(came, MAYBE_SENT);
    let server = NatsServer::again(folder).await;
    proxy.lead_to(server.address);
    proxy.set(Mode::Pass);
    assert_eq!(outcome(&nats, &order("k1")).await, BEFORE);
    assert_eq!(server.stored().await.len(), 1);
}

#[tokio::test]
async fn late_publish_on_stopped_server_is_stored_once() {
    let (server, proxy) = world().await;
    let nats = impatient(proxy.url()).await;
    let patient = connected(&settings(proxy.url())).await;
    server.signal("STOP");
    while !server.is_still() {
        poll_pause().await;
    }
    assert_eq!(outcome(&nats, &order("k1")).await, MAYBE_SENT);
    // The retry waits beside it, and the server accepts both when it continues.
    let call = order("k1");
    let (came, ()) = tokio::join!(outcome(&patient, &call), async { server.signal("CONT") });
    assert!([DONE, BEFORE].contains(&came), "{came:?}");
    assert_eq!(outcome(&patient, &call).await, BEFORE);
    assert_eq!(server.stored().await.len(), 1);
}
