//! Boundary files, drawn with what the rules find in them.

use std::io;
use std::path::{Path, PathBuf};

use ichido_boundary::STARTING;

use super::*;
use crate::config::{self, ConfigSources};

/// Resolves a configuration with these boundary files, of which some are those of `ichido check --init`.
fn configure(names: &[&str]) -> Config {
    let read = |path: &Path| {
        let name = path.strip_prefix("here").unwrap().to_str().unwrap();
        let starting = STARTING.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
        match name {
            "weak.json" => Ok(r#"{ "boundary": "browser_to_bff", "note": "<b>" }"#.to_owned()),
            _ => starting.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound)),
        }
    };
    let outside = ConfigSources { file: &read, ..ConfigSources::of_files(PathBuf::from("here")) };
    let text = format!("[serve]\nboundaries = {names:?}\n");
    config::resolve("ichido.toml", &text, &outside).unwrap_or_else(|errors| panic!("{errors}"))
}

#[tokio::test]
async fn boundary_files_are_drawn_with_their_findings() {
    let none = Fixture::new().await.get("/boundaries", None).await;
    assert!(none.text.contains("No boundary file is named.") && none.text.contains("boundaries = ["));

    let names: Vec<&str> = STARTING.iter().map(|(name, _)| *name).collect();
    let good = Fixture::configured(&configure(&names)).await.get("/boundaries", None).await;
    assert_eq!(good.text.matches("class=\"party\"").count(), 5, "{}", good.text);
    for part in
        ["Browser", "completes idempotency", "checks the key", "No finding: the files keep all rules."]
    {
        assert!(good.text.contains(part), "{part}: {}", good.text);
    }

    let fixture = Fixture::configured(&configure(&["weak.json"])).await;
    let weak = fixture.get("/boundaries", None).await;
    for part in
        ["no file about this boundary", "href=\"/boundaries/ICH-B001\"", "weak.json:1:", " findings</a>"]
    {
        assert!(weak.text.contains(part), "{part}: {}", weak.text);
    }
    assert!(!weak.text.contains("<b>"), "the text of a file is not markup");
    let rule = fixture.get("/boundaries/ICH-B001", None).await;
    assert!(rule.text.contains("How to fix it") && rule.text.contains("Every boundary declares"));
    assert_eq!(fixture.get("/boundaries/ICH-B999", None).await.status, StatusCode::NOT_FOUND);
}
