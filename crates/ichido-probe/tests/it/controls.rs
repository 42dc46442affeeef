//! What the probe concludes from requests beside those of the rules: accepted or not, seen by the counter or not.

use std::time::Duration;

use ichido_core::ledger::Profile;
use ichido_http::clock;
use ichido_probe::{Bounds, Counter, Target, Verdict, run};

use super::service::{Mood, Service};
use super::switches::{BOUNDS, consumer, failed, line, of_rule, probe, target};

/// A service that a test can neither provoke nor command.
fn bare(service: &Service) -> Target {
    Target { provoke: Vec::new(), commands: Vec::new(), ..target(service) }
}

fn get(path: &str) -> Counter {
    Counter::Get { path: path.to_owned(), pointer: "/total".to_owned() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_that_sees_nothing_accuses_nobody() {
    let service = Service::start("").await;
    let counters = [get("/orders?wrong={marker}"), Counter::Command("echo 4".to_owned())];
    for counter in counters {
        for of in [target, consumer] {
            let report = probe(&Target { counter: Some(counter.clone()), ..of(&service) }).await;
            assert_eq!((failed(&report), report.totals().passed), (vec![], 0));
            let why = report.not_tested.unwrap();
            assert!(why.starts_with("the counter does not see an accepted request; check --count"), "{why}");
        }
    }
    assert_eq!(service.orders(), 2 + 2, "one request each");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_is_full_accuses_nobody() {
    let service = Service::start_in(Mood::CountsUpTo20, "").await;
    let report = probe(&Target { counter: Some(get("/orders")), ..bare(&service) }).await;
    assert_eq!(failed(&report), []);
    for finding in report.findings.iter().filter(|finding| finding.rule.counts_effects) {
        let (id, verdict) = (finding.rule.id, &finding.verdict);
        match verdict {
            Verdict::Unverified(why) => {
                assert!(why.contains("it does not see an accepted request; check --count"), "{id}: {why}");
            }
            verdict => assert!(matches!(verdict, Verdict::NotApplicable(_)), "{id}: {verdict:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_not_accepted_is_sent_once() {
    for (mood, why, most) in [
        (Mood::Refuses, "the first request was not accepted: 401", 1),
        (Mood::Fails, "the first request was not accepted: 500", 1),
        (Mood::Mute, "the first request got no response", 2),
    ] {
        let service = Service::start_in(mood, "").await;
        let report = probe(&target(&service)).await;
        assert_eq!((failed(&report), report.totals().passed), (vec![], 0));
        let found = report.not_tested.unwrap();
        assert!(found.contains(why), "{found}");
        assert!(service.orders() <= most, "{} requests: {found}", service.orders());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_that_comes_after_its_count_is_found() {
    let service = Service::start_in(Mood::RepeatsLate, "").await;
    let failed: Vec<_> = failed(&probe(&bare(&service)).await).into_iter().collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    let (id, why) = &failed[0];
    assert_eq!((*id, &**why), ("ICH-P06", "2 effects instead of 1, counted again at the end of the run"));
    let late = Service::start_in(Mood::CountsLate, "").await;
    assert_eq!(super::switches::failed(&probe(&bare(&late)).await), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_credential_that_is_not_accepted_accuses_nobody() {
    let service = Service::start_in(Mood::KnowsAnnOnly, "").await;
    let report = probe(&Target { fresh_credential: Some(line("X-User", "eve")), ..bare(&service) }).await;
    let verdict = of_rule(&report, "ICH-P17");
    assert!(
        matches!(verdict, Verdict::NotApplicable(why) if why.contains("--fresh-credential") && why.contains("401")),
        "{verdict:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_compares_no_bodies_has_no_spellings() {
    let service = Service::start_in(Mood::ComparesNothing, "").await;
    let report = probe(&bare(&service)).await;
    let verdict = of_rule(&report, "ICH-P13");
    assert!(matches!(verdict, Verdict::NotApplicable(why) if why.contains("not compared")), "{verdict:?}");
    assert!(matches!(of_rule(&report, "ICH-P10"), Verdict::Fail(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stripe_may_run_another_operation() {
    let service = Service::start("").await;
    let report = probe(&Target { profile: Profile::Stripe, ..bare(&service) }).await;
    assert_eq!(of_rule(&report, "ICH-P12"), &Verdict::Pass("another operation runs".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_reveals_nothing_in_its_headers() {
    let service = Service::start_in(Mood::RevealsInHeaders, "").await;
    let report = probe(&bare(&service)).await;
    let verdict = of_rule(&report, "ICH-P30");
    assert!(matches!(verdict, Verdict::Fail(why) if why.contains("of the first response")), "{verdict:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bound_that_is_reached_names_lost_requests() {
    let service = Service::start_in(Mood::Busy, "").await;
    let bounds = Bounds { max_duration: Duration::from_secs(2), ..BOUNDS };
    let report = run(&bare(&service), bounds, [1, 2, 3, 4], clock::now, |_| ()).await.unwrap();
    let unchecked = report.unchecked.unwrap().to_string();
    assert!(unchecked.contains(" got 429 or 503; raise --max-requests or --max-time"), "{unchecked}");
}
