//! After kills at any moment, each article is judged once, and billed once except for calls in flight.
// Spec: B7, B12.

use serde_json::json;

use super::program::{JudgeFixture, JudgeOutput};

/// How many runs are killed; the environment sets more.
fn kills() -> u32 {
    std::env::var("ICHIDO_JUDGE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(12)
}

#[test]
fn killed_and_rerun_judge_judges_each_article_once() {
    const ARTICLES: usize = 500;
    let script = json!({ "latency": { "uniform_ms": { "least": 2, "most": 15, "seed": 7 } } });
    let fixture = JudgeFixture::new(ARTICLES, &script);
    let mut dice = fastrand::Rng::with_seed(20_261_115);
    for kill in 1..=kills() {
        // The run dies after this many more requests. The last article is left for a run that survives.
        let after = fixture.requests() + dice.u64(1..30);
        let mut running = fixture.start(&[]);
        fixture.until_requests(after, &mut running);
        running.kill().unwrap();
        running.wait().unwrap();
        let judged = fixture.billed().values().filter(|billed| 0 < **billed).count();
        println!("kill {kill}: {judged} of {ARTICLES} were answered");
    }
    let ran = JudgeOutput::new(fixture.judging(&["--json"]).output().unwrap());
    ran.ended_with(0);
    fixture.no_format_faults();
    let judgements = fixture.judgements();
    assert_eq!(judgements.len(), ARTICLES);
    assert!(judgements.iter().all(|judgement| judgement["fallback"] == false));
    let (billed, mut twice) = (fixture.billed(), 0);
    for (number, judgement) in judgements.iter().enumerate() {
        let (times, possibly) = (billed[&number.to_string()], judgement["possibly_billed"].as_u64().unwrap());
        assert!(
            1 <= times && times <= 1 + possibly,
            "article {number} was billed {times} times: {judgement}"
        );
        twice += u64::from(1 < times);
    }
    // At most eight calls were in flight when a run died.
    assert!(twice <= u64::from(kills()) * 8, "{twice} were billed twice");
    println!("{twice} of {ARTICLES} were billed twice, each of them reported");
}
