//! Boundary files: read when the server starts, and shown with what the rules find.

// Spec: C8.

use std::io;
use std::path::{Path, PathBuf};

use ichido_boundary::STARTING;
use ichido_server::config::{self, Config, ConfigSources};
use ichido_store::Store;
use ichido_store::testing::sqlite::fresh_file;

use crate::api::TestApi;

/// Resolves a configuration that names these files, of which the first four are those of `ichido check --init`.
fn configure(names: &[&str]) -> Result<Config, String> {
    let read = |path: &Path| {
        let name = path.strip_prefix("here").unwrap().to_str().unwrap();
        let starting = STARTING.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
        match name {
            "broken.json" => Ok("{\n  \"boundary\": \"nowhere\"\n}".to_owned()),
            "weak.json" => Ok(r#"{ "boundary": "browser_to_bff" }"#.to_owned()),
            _ => starting.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound)),
        }
    };
    let outside = ConfigSources { file: &read, ..ConfigSources::of_files(PathBuf::from("here")) };
    let text = format!("[serve]\nboundaries = {names:?}\n");
    config::resolve("ichido.toml", &text, &outside).map_err(|errors| errors.to_string())
}

#[tokio::test]
async fn boundary_files_are_listed_from_the_browser_on_with_their_findings() {
    let file = fresh_file();
    let store = Store::open(&file.url, 2).await.unwrap();
    let names: Vec<&str> = STARTING.iter().rev().map(|(name, _)| *name).collect();
    let listed = TestApi::new(&store, &configure(&names).unwrap()).get("/v1/boundaries").await;
    let boundaries: Vec<&str> =
        listed["files"].as_array().unwrap().iter().map(|file| file["boundary"].as_str().unwrap()).collect();
    assert_eq!(boundaries, ["browser_to_bff", "bff_to_gateway", "gateway_to_adapter", "adapter"]);
    assert_eq!(listed["findings"].as_array().unwrap().len(), 0, "{listed}");
    let first = &listed["files"][0];
    assert_eq!((first["sender"].as_str(), first["receiver"].as_str()), (Some("browser"), Some("bff")));
    assert!(first["text"].as_str().unwrap().contains("browser_to_bff"));

    let listed = TestApi::new(&store, &configure(&["weak.json"]).unwrap()).get("/v1/boundaries").await;
    let finding = &listed["findings"][0];
    assert!(finding["rule"].as_str().unwrap().starts_with("ICH-B"), "{listed}");
    assert_eq!(
        (finding["file"].as_str(), finding["line"].as_u64()),
        (Some("weak.json"), Some(1)),
        "{finding}"
    );

    let none = TestApi::new(&store, &configure(&[]).unwrap()).get("/v1/boundaries").await;
    assert_eq!(none, serde_json::json!({ "files": [], "findings": [] }));
}

#[test]
fn boundary_file_that_cannot_be_read_is_refused_with_its_place() {
    let errors = configure(&["weak.json", "broken.json", "gone.json"]).unwrap_err();
    assert!(errors.contains("ichido.toml:2") && errors.contains("broken.json:2:15"), "{errors}");
    assert!(errors.contains("cannot read here/gone.json"), "{errors}");
}
