//! Each rule finds its own switch, and only that one.

use std::time::Duration;

use ichido_core::ledger::Profile;
use ichido_http::clock;
use ichido_http::signature::Secret;
use ichido_http::url::HttpUrl;
use ichido_probe::{
    Bounds, Command, Condition, Counter, Report, Subject, Target, Verdict, WebhookTarget, rules, run,
};

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::time::sleep;

use super::service::{Mood, SECRET, Service};

pub(crate) const BOUNDS: Bounds = Bounds {
    max_requests: 1_000,
    max_duration: Duration::from_mins(2),
    timeout: Duration::from_secs(20),
    may_leave: false,
};

pub(crate) fn line(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// All that the probe can know about the service.
pub(crate) fn target(service: &Service) -> Target {
    let url = HttpUrl::parse(&format!("http://{}/", service.address)).unwrap();
    let command = |command: Command| {
        let url = format!("http://{}/control/{command}", service.address);
        (command, format!("curl -sS -f -X POST {url}"))
    };
    Target {
        url,
        is_http2: false,
        profile: Profile::Ichido,
        method: "POST".to_owned(),
        path: "/orders".to_owned(),
        headers: vec![line("Content-Type", "application/json"), line("X-User", "ann")],
        body: r#"{"note":"first","qty":1,"ref":"{marker}","u":"{unique}"}"#.to_owned(),
        vary: None,
        counter: Some(Counter::Get { path: "/orders?ref={marker}".to_owned(), pointer: "/total".to_owned() }),
        second_identity: Some(line("X-User", "bob")),
        fresh_credential: Some(line("X-User", "ann-2")),
        other_operation: Some(line("POST", "/refunds")),
        provoke: Condition::ALL.map(|condition| (condition, line("X-Test", condition.as_str()))).to_vec(),
        commands: Command::ALL.map(command).to_vec(),
        webhook: None,
    }
}

pub(crate) fn consumer(service: &Service) -> Target {
    let webhook = Some(WebhookTarget { secret: Secret::parse(SECRET).unwrap() });
    Target { path: "/hook".to_owned(), webhook, ..target(service) }
}

pub(crate) async fn probe(target: &Target) -> Report {
    run(target, BOUNDS, [1, 2, 3, 4], clock::now, |_| ()).await.unwrap()
}

/// The ids of the rules whose verdict is not a pass.
fn not_passed(report: &Report) -> Vec<(&'static str, Verdict)> {
    let findings = report.findings.iter().filter(|finding| !matches!(finding.verdict, Verdict::Pass(_)));
    findings.map(|finding| (finding.rule.id, finding.verdict.clone())).collect()
}

/// The ids of the broken rules, and how.
pub(crate) fn failed(report: &Report) -> Vec<(&'static str, String)> {
    let findings = report.findings.iter().filter(|finding| finding.is_open());
    findings.map(|finding| (finding.rule.id, finding.verdict.why().to_owned())).collect()
}

async fn check(subject: Subject, of: fn(&Service) -> Target) {
    let all = rules().filter(|rule| rule.subject == subject);
    let cases = all.map(|rule| {
        tokio::spawn(async move {
            let service = Service::start(rule.id).await;
            (rule.id, probe(&of(&service)).await)
        })
    });
    for case in cases.collect::<Vec<_>>() {
        let (broken, report) = case.await.unwrap();
        let failed = failed(&report);
        assert!(failed.len() == 1 && failed[0].0 == broken, "{broken}: {failed:#?}");
        let finding = report.findings.iter().find(|finding| finding.rule.id == broken).unwrap();
        assert!(finding.transcript.contains("curl -sS -i -X POST 'http://127.0.0.1:"), "{broken}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_broken_service_is_found_by_exactly_its_rule() {
    check(Subject::Api, target).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_broken_consumer_is_found_by_exactly_its_rule() {
    check(Subject::Webhook, consumer).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_keeps_all_rules_passes_all() {
    let service = Service::start("").await;
    assert_eq!(not_passed(&probe(&target(&service)).await), []);
    assert_eq!(not_passed(&probe(&consumer(&service)).await), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_counter_no_rule_about_effects_passes() {
    let service = Service::start("").await;
    let report = probe(&Target { counter: None, ..target(&service) }).await;
    for finding in &report.findings {
        let is_pass = matches!(finding.verdict, Verdict::Pass(_));
        assert_eq!(is_pass, !finding.rule.counts_effects, "{}: {:?}", finding.rule.id, finding.verdict);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_target_gives_no_occasion_for_is_not_applicable() {
    let service = Service::start("").await;
    let bare = Target {
        second_identity: None,
        fresh_credential: None,
        other_operation: None,
        provoke: Vec::new(),
        commands: Vec::new(),
        ..target(&service)
    };
    let report = probe(&bare).await;
    let skipped: Vec<&str> = not_passed(&report)
        .into_iter()
        .map(|(id, verdict)| {
            assert!(matches!(&verdict, Verdict::NotApplicable(why) if !why.is_empty()), "{id}: {verdict:?}");
            id
        })
        .collect();
    // Whether a duplicate meets the first in flight depends on the machine.
    let always = ["P11", "P12", "P16", "P17", "P23", "P24", "P25", "P26", "P27", "P28", "P29"];
    let skipped: Vec<&str> = skipped.iter().filter(|id| **id != "ICH-P09").map(|id| &id[4..]).collect();
    assert_eq!(skipped, always);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_bounded_in_requests() {
    let service = Service::start("").await;
    let bounds = Bounds { max_requests: 12, ..BOUNDS };
    let report = run(&target(&service), bounds, [1, 2, 3, 4], clock::now, |_| ()).await.unwrap();
    assert!(report.requests <= 12, "{}", report.requests);
    let verdict = &report.findings.last().unwrap().verdict;
    assert!(matches!(verdict, Verdict::Unverified(why) if why.contains("--max-requests")), "{verdict:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_does_not_listen_is_not_accused() {
    let service = Service::start("").await;
    let target = Target { url: HttpUrl::parse("http://127.0.0.1:9/").unwrap(), ..target(&service) };
    let bounds = Bounds { timeout: Duration::from_millis(100), ..BOUNDS };
    let error = run(&target, bounds, [1, 2, 3, 4], clock::now, |_| ()).await.unwrap_err();
    assert!(error.to_string().contains("is the API running?"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_counter_is_found_before_anything_is_sent() {
    let service = Service::start("").await;
    let counter = Counter::Get { path: "/orders?ref={marker}".to_owned(), pointer: "/sum".to_owned() };
    let target = Target { counter: Some(counter), ..target(&service) };
    let error = run(&target, BOUNDS, [1, 2, 3, 4], clock::now, |_| ()).await.unwrap_err();
    assert!(error.to_string().contains("--at /sum points to nothing in its response"), "{error}");
    assert_eq!(service.arrived(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_on_a_bad_day_is_not_accused() {
    let moods = [Mood::Busy, Mood::Silent, Mood::CountsLate].map(|mood| {
        tokio::spawn(async move {
            let service = Service::start_in(mood, "").await;
            failed(&probe(&target(&service)).await)
        })
    });
    for mood in moods {
        assert_eq!(mood.await.unwrap(), []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_is_always_busy_is_not_accused() {
    let service = Service::start("").await;
    let limited =
        Target { headers: vec![line("X-User", "ann"), line("X-Test", "limit")], ..target(&service) };
    let limited = Target { provoke: Vec::new(), commands: Vec::new(), ..limited };
    let bounds = Bounds { max_duration: Duration::from_secs(10), ..BOUNDS };
    let report = run(&limited, bounds, [1, 2, 3, 4], clock::now, |_| ()).await.unwrap();
    assert_eq!(failed(&report), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn races_use_http2_where_it_is_spoken() {
    for (broken, expected) in [("", vec![]), ("ICH-P08", vec!["ICH-P08"])] {
        let service = Service::start(broken).await;
        let report = probe(&Target { is_http2: true, ..target(&service) }).await;
        assert_eq!(failed(&report).into_iter().map(|(id, _)| id).collect::<Vec<_>>(), expected);
        assert!(report.is_http2 && 2 + 10 + 100 <= service.over_http2(), "{}", service.over_http2());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_that_is_asked_for_must_be_spoken() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = HttpUrl::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await);
        }
    });
    let target = Target { url, is_http2: true, ..target(&Service::start("").await) };
    let error = run(&target, BOUNDS, [1, 2, 3, 4], clock::now, |_| ()).await.unwrap_err();
    assert!(error.to_string().contains("does not speak HTTP/2"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn https_to_a_plain_port_names_http() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = HttpUrl::parse(&format!("https://{}/", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await);
        }
    });
    let target = Target { url, ..target(&Service::start("").await) };
    let error = run(&target, BOUNDS, [1, 2, 3, 4], clock::now, |_| ()).await.unwrap_err();
    assert!(error.to_string().ends_with("the API may speak plain HTTP; try http://"), "{error}");
}

pub(crate) fn of_rule<'a>(report: &'a Report, id: &str) -> &'a Verdict {
    &report.findings.iter().find(|finding| finding.rule.id == id).unwrap().verdict
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_concluded_where_every_request_is_refused() {
    let service = Service::start_in(Mood::Refuses, "").await;
    let (api, consumer) = (probe(&target(&service)).await, probe(&consumer(&service)).await);
    assert_eq!((failed(&api), api.totals().passed), (vec![], 0), "{:#?}", not_passed(&api));
    // That it refuses a valid delivery is a fault of a consumer.
    let failed: Vec<_> = failed(&consumer).into_iter().map(|(id, _)| id).collect();
    assert_eq!((failed, consumer.totals().passed), (vec!["ICH-W01"], 0), "{:#?}", not_passed(&consumer));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_did_not_happen_is_unverified() {
    let service = Service::start("").await;
    let mut idle = target(&service);
    for (_, (name, _)) in &mut idle.provoke {
        "X-Unknown".clone_into(name);
    }
    for (command, line) in &mut idle.commands {
        if *command == Command::Crash {
            "true".clone_into(line);
        }
    }
    let report = probe(&idle).await;
    assert_eq!(failed(&report), []);
    for (id, why) in [
        ("ICH-P09", "--provoke slow did not slow it down"),
        ("ICH-P11", "--provoke slow did not slow it down"),
        ("ICH-P26", "--provoke outlast did not slow it down"),
    ] {
        let verdict = of_rule(&report, id);
        assert!(matches!(verdict, Verdict::Unverified(text) if text.contains(why)), "{id}: {verdict:?}");
    }
    for id in ["ICH-P23", "ICH-P24", "ICH-P25", "ICH-P29"] {
        let verdict = of_rule(&report, id);
        assert!(
            matches!(verdict, Verdict::NotApplicable(why) if why.contains("--provoke")),
            "{id}: {verdict:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_race_that_one_request_survives_is_unverified() {
    let service = Service::start_in(Mood::ServesOne, "").await;
    let bare = Target { provoke: Vec::new(), commands: Vec::new(), ..target(&service) };
    let (api, consumer) = (probe(&bare).await, probe(&consumer(&service)).await);
    for verdict in [of_rule(&api, "ICH-P08"), of_rule(&consumer, "ICH-W05")] {
        let why = "requests released together, ";
        assert!(matches!(verdict, Verdict::Unverified(text) if text.contains(why)), "{verdict:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_that_others_move_is_not_believed() {
    for (mood, why) in [(Mood::CountsOthers, "the requests of others"), (Mood::Forgets, "it fell from")] {
        let service = Service::start_in(mood, "").await;
        let bare = Target { provoke: Vec::new(), commands: Vec::new(), ..target(&service) };
        let report = probe(&bare).await;
        assert_eq!(failed(&report), []);
        for finding in report.findings.iter().filter(|finding| finding.rule.counts_effects) {
            match &finding.verdict {
                Verdict::Unverified(text) => assert!(text.contains(why), "{}: {text}", finding.rule.id),
                verdict => {
                    assert!(matches!(verdict, Verdict::NotApplicable(_)), "{}: {verdict:?}", finding.rule.id);
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_is_started_again_whatever_happens() {
    let folder = std::env::temp_dir().join(format!("ichido-probe-recover-{}", std::process::id()));
    let file = folder.display().to_string();
    let service = Service::start("").await;
    let mut target = target(&service);
    for (command, line) in &mut target.commands {
        match command {
            // The rule ends here, between the outage and its recovery.
            Command::Outage => *line = format!("{line} && exit 3"),
            Command::Recover => *line = format!("{line} && touch {file}"),
            Command::Crash | Command::Expire => (),
        }
    }
    let report = probe(&target).await;
    let why = "the command of --outage failed: exit status: 3";
    assert_eq!(of_rule(&report, "ICH-P27"), &Verdict::Unverified(why.to_owned()));
    let unchecked = report.unchecked.clone().unwrap();
    assert_eq!(unchecked.to_string(), format!("the run is incomplete: {why}; not checked: ICH-P27"));
    assert!(matches!(of_rule(&report, "ICH-P30"), Verdict::Pass(_)), "{:?}", of_rule(&report, "ICH-P30"));
    std::fs::remove_file(folder).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_stays_away_ends_the_run() {
    let service = Service::start("").await;
    let mut target = target(&service);
    for (command, line) in &mut target.commands {
        if *command == Command::Crash {
            *line = line.replace("/crash", "/die");
        }
    }
    let bounds = Bounds { timeout: Duration::from_secs(3), ..BOUNDS };
    let report = run(&target, bounds, [1, 2, 3, 4], clock::now, |_| ()).await.unwrap();
    let unchecked = report.unchecked.unwrap();
    assert!(unchecked.target_is_away.is_some() && !unchecked.is_stopped, "{unchecked:?}");
    assert_eq!(unchecked.rules, ["ICH-P26", "ICH-P27", "ICH-P28", "ICH-P29", "ICH-P30"]);
    assert!(unchecked.to_string().starts_with("the run is incomplete: the API is away: "), "{unchecked}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_run_recovers_the_target_and_says_what_is_left() {
    let service = Service::start("").await;
    let mut target = target(&service);
    let (started, stop) = tokio::sync::watch::channel(false);
    for (command, line) in &mut target.commands {
        if *command == Command::Outage {
            *line = format!("{line} && sleep 8");
        }
    }
    // The outage is cut off at its timeout, and the recovery comes after that.
    let bounds = Bounds { timeout: Duration::from_secs(5), ..BOUNDS };
    let (watched, mut seen) = (service.clone(), stop);
    let begun = tokio::spawn(async move {
        while !watched.is_store_down() {
            sleep(Duration::from_millis(5)).await;
        }
        drop(started);
    });
    let stopped = async move { while seen.changed().await.is_ok() {} };
    let report =
        ichido_probe::run_until(&target, bounds, [1, 2, 3, 4], clock::now, |_| (), stopped).await.unwrap();
    begun.await.unwrap();
    assert!(!service.is_store_down());
    let unchecked = report.unchecked.unwrap();
    let why = "the run is incomplete: the run was stopped; not checked: ICH-P27, ICH-P28, ICH-P29, ICH-P30";
    assert_eq!((unchecked.to_string().as_str(), unchecked.is_stopped), (why, true));
}
