//! Tests that the client starts the hops of a request.
// Spec: F1.

use http::{HeaderName, HeaderValue};
use ichido_client::{ActionError, ClientSettings, Outcome};
use ichido_core::hops::{Hop, HopName, Hops, MAX_HOPS, RequestId};
use ichido_core::ledger::Profile;
use ichido_core::time::Timestamp;

use crate::server::{ReceivedRequest, ServerAction, TestServer, build_client, order, plain};

fn hops(request: &ReceivedRequest) -> Vec<Hop> {
    Hops::read(request.field("ichido-hops")).iter().cloned().collect()
}

fn hop(name: &str) -> Hop {
    Hop {
        name: HopName::parse(name).expect("a name"),
        at: Timestamp::from_secs(1_800_000_000),
        request_id: RequestId::parse("r-1").expect("an id"),
    }
}

#[tokio::test]
async fn every_attempt_is_the_first_hop_with_its_own_id() {
    let server =
        TestServer::with_actions(vec![ServerAction::Say(plain("503 Busy")), ServerAction::Work]).await;
    assert!(matches!(server.client().send(&order("k1")).await, Outcome::Done { attempts: 2, .. }));
    let seen = server.seen();
    let ids: Vec<&str> = seen.iter().map(|request| request.field("x-request-id").expect("an id")).collect();
    assert_ne!(ids[0], ids[1], "one for each request");
    for (request, id) in seen.iter().zip(ids) {
        let [hop] = hops(request).try_into().expect("one hop");
        assert_eq!((hop.name.as_str(), hop.request_id.as_str()), ("client", id));
        assert!(Timestamp::parse("2026-01-01T00:00:00Z").expect("a moment") < hop.at);
    }
}

#[tokio::test]
async fn received_hops_are_extended_with_ours() {
    let server = TestServer::with_actions(vec![ServerAction::Work]).await;
    let client = build_client(ClientSettings { hop_name: "desk".to_owned(), ..server.settings() });
    let request_id = (HeaderName::from_static("x-request-id"), HeaderValue::from_static("from-the-page"));
    let action = order("k1").with_hops(Hops::default().and(hop("browser")));
    let action = action.with_header(request_id.0, request_id.1).expect("the caller's to set");
    assert!(matches!(client.send(&action).await, Outcome::Done { .. }));
    let [request] = server.seen().try_into().expect("one request");
    let [first, ours] = hops(&request).try_into().expect("two hops");
    assert_eq!(first, hop("browser"));
    assert_eq!((ours.name.as_str(), ours.request_id.as_str()), ("desk", "from-the-page"));
    assert_eq!(request.field("x-request-id"), Some("from-the-page"));

    let no_id =
        order("k3").with_header(HeaderName::from_static("x-request-id"), HeaderValue::from_static("a b"));
    assert!(matches!(client.send(&no_id.expect("the caller's to set")).await, Outcome::Done { .. }));
    let request = &server.seen()[1];
    assert_eq!(request.field("x-request-id"), Some("a b"), "it is left alone");
    assert_eq!(hops(request)[0].request_id.as_str().len(), 32, "and the hop has an id that can be read");

    let full = (0..MAX_HOPS).fold(Hops::default(), |hops, _| hops.and(hop("bff")));
    assert!(matches!(client.send(&order("k2").with_hops(full.clone())).await, Outcome::Done { .. }));
    assert_eq!(server.seen()[2].field("ichido-hops"), Some(full.to_string().as_str()), "no more are kept");
}

#[tokio::test]
async fn other_profiles_and_reads_carry_no_hops() {
    for profile in [Profile::Ietf, Profile::Stripe] {
        let server = TestServer::with_actions(vec![ServerAction::Work]).await;
        let client = build_client(ClientSettings { profile, ..server.settings() });
        assert!(matches!(client.send(&order("k1")).await, Outcome::Done { .. }));
        assert!(matches!(client.read("/").await, Ok(Outcome::Done { .. })));
        for request in server.seen() {
            assert_eq!((request.field("ichido-hops"), request.field("x-request-id")), (None, None));
        }
    }
}

#[test]
fn invalid_hop_name_and_callers_own_hops_are_rejected() {
    let settings =
        ClientSettings { hop_name: "My App".to_owned(), ..ClientSettings::new("http://127.0.0.1:1") };
    let problems = settings.resolve().expect_err("an invalid name");
    assert!(problems.to_string().starts_with("hop_name: a hop's name has 1 to 32 characters"), "{problems}");
    let name = HeaderName::from_static("ichido-hops");
    let set = order("k1").with_header(name.clone(), HeaderValue::from_static("bff"));
    assert_eq!(set.err(), Some(ActionError::ReservedHeader(name)));
}
