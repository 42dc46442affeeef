//! A transcript shows its fault again, with curl and bash alone.

use std::process::Stdio;

use ichido_probe::{Condition, EffectCount, Received, RuleFinding};

use super::service::Service;
use super::switches::{line, probe, target};

const CREDENTIAL: &str = "s3cret-t0ken";

/// What the commands printed: the statuses in order, and the last count.
struct Replay {
    statuses: Vec<u16>,
    total: u64,
    text: String,
}

async fn replay(service: &Service, finding: &RuleFinding) -> Replay {
    let target = target(service);
    let mut bash = tokio::process::Command::new("bash");
    bash.args(["-c", &finding.transcript]).stdin(Stdio::null());
    bash.env("PROBE_AUTHORIZATION", CREDENTIAL);
    for (name, value) in [("PROBE_X_USER", "ann"), ("PROBE_X_USER_2", "bob"), ("PROBE_X_USER_3", "ann-2")] {
        bash.env(name, value);
    }
    for (number, condition) in (1..).zip(Condition::ALL) {
        let number = if number == 1 { String::new() } else { format!("_{number}") };
        bash.env(format!("PROBE_X_TEST{number}"), condition.as_str());
    }
    for (command, line) in &target.commands {
        bash.env(format!("PROBE_{}", command.as_str().to_ascii_uppercase()), line);
    }
    let output = bash.output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let status = |part: &str| part.get(..3).and_then(|status| status.parse().ok());
    let statuses = text.split("HTTP/1.1 ").skip(1).filter_map(status).collect();
    let total =
        text.rsplit_once("{\"total\":").and_then(|(_, rest)| rest.trim_end_matches(['}', '\n']).parse().ok());
    Replay { statuses, total: total.unwrap_or_else(|| panic!("no count: {text} {errors}")), text }
}

/// The statuses that the probe got, and that of the last count.
fn recorded(finding: &RuleFinding) -> Vec<u16> {
    let of = finding.exchanges.iter().filter_map(|one| match &one.received {
        Received::Response(response) => Some(response.status),
        _ => None,
    });
    of.chain([200]).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transcript_shows_its_fault_again() {
    let ids = [
        "ICH-P01", "ICH-P02", "ICH-P04", "ICH-P07", "ICH-P08", "ICH-P10", "ICH-P15", "ICH-P16", "ICH-P22",
        "ICH-P23", "ICH-P24", "ICH-P25", "ICH-P27", "ICH-P28", "ICH-P29",
    ];
    let cases = ids.map(|id| {
        tokio::spawn(async move {
            let service = Service::start(id).await;
            let mut target = target(&service);
            target.headers.push(line("Authorization", &format!("Bearer {CREDENTIAL}")));
            let report = probe(&target).await;
            service.forget();
            let finding = report.findings.into_iter().find(|finding| finding.rule.id == id).unwrap();
            let replay = replay(&service, &finding).await;
            (finding, replay)
        })
    });
    for case in cases {
        let (finding, Replay { mut statuses, total, text }) = case.await.unwrap();
        let (id, mut expected) = (finding.rule.id, recorded(&finding));
        assert!(finding.is_open(), "{id}: {:?}", finding.verdict);
        assert!(!finding.transcript.contains(CREDENTIAL), "{}", finding.transcript);
        match id {
            "ICH-P08" => assert!(3 < total, "{total} effects: {text}"),
            "ICH-P16" => assert!(text.contains("idempotency-replayed: true"), "{text}"),
            _ => {
                assert_eq!(
                    finding.effects,
                    EffectCount::Counted(total),
                    "{id}: {}\n{text}",
                    finding.transcript
                );
                statuses.sort_unstable();
                expected.sort_unstable();
                assert_eq!(statuses, expected, "{id}: {}\n{text}", finding.transcript);
            }
        }
    }
}
