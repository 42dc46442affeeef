//! Any bytes as a boundary file: no panic, errors with a location in the text, and a file that is read can be
//! checked.
#![no_main]

use ichido_boundary::report::{Findings, github, json, mermaid, people, sarif};
use ichido_boundary::{Boundary, Finding, check, loosened};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let lines = data.split(|byte| *byte == b'\n').count();
    let file = match Boundary::read("fuzz.json", data) {
        Ok(file) => file,
        Err(errors) => {
            assert!(errors.iter().all(|error| (1..=lines).contains(&error.at.line)), "{errors}");
            let findings: Vec<Finding> = errors.into_iter().map(Finding::from).collect();
            assert!(!findings.is_empty() && !people(&Findings::open(&findings)).contains('\u{1b}'));
            return;
        }
    };
    let files = [file];
    let findings = check(&files);
    for finding in &findings {
        assert!((1..=lines).contains(&finding.place.at.line), "{finding:?}");
    }
    let found = Findings::open(&findings);
    assert!(!people(&found).contains(['\u{1b}', '\u{202e}']));
    assert_eq!(github(&found).lines().count(), findings.len());
    for report in [json(&found, 1), sarif(&found, "0")] {
        ichido_core::json::Document::parse(report.as_bytes(), usize::MAX).expect("a report is JSON");
    }
    mermaid(&files, &findings);
    assert_eq!(loosened(&files, &files), [], "nothing changed");
});
