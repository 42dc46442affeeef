//! Language models as destinations.

use super::*;

#[test]
fn all_model_errors_are_reported_at_once() {
    let text = r#"
[queues.a]
destination = "model"
lease = "1m"
[queues.b]
destination = "loop"
[destinations.model]
kind = "openai"
model = "a model"
base_urls = ["ftp://a.example", "https://api.test/v1"]
api_key = "s3cret"
prompt = "The same for all"
max_tokens = 0
schema = "broken.schema.json"
schema_mode = "json"
answers_to = "summaires"
connect_timeout = "10m"
retries = 3
[destinations.bare]
kind = "anthropic"
[destinations.loop]
kind = "anthropic"
model = "m"
prompt = "{/text}"
answers_to = "b"
limit_by = "max_tokens"
[destinations.astray]
kind = "openai"
model = "m"
prompt = "{/text}"
answers_to = "aa"
"#;
    let problems = problems_of(text);
    let expected = [
        ("ichido.toml:9:9 destinations.model.model", "without a space"),
        ("ichido.toml:10:14 destinations.model.base_urls[0]", "must begin with https:// or http://"),
        ("ichido.toml:11:11 destinations.model.api_key", "write \"env:NAME\""),
        ("ichido.toml:12:10 destinations.model.prompt", "has no placeholder"),
        ("ichido.toml:13:14 destinations.model.max_tokens", "a whole number from 1"),
        ("ichido.toml:14:10 destinations.model.schema", "cannot read"),
        ("ichido.toml:15:15 destinations.model.schema_mode", "did you mean json_object"),
        ("ichido.toml:17:19 destinations.model.connect_timeout", "at most timeout"),
        ("ichido.toml:18:1 destinations.model.retries", "unknown setting"),
        ("ichido.toml:19:15 destinations.bare.model", "is missing"),
        ("ichido.toml:19:15 destinations.bare.prompt", "is missing"),
        ("ichido.toml:19:15 destinations.bare.answers_to", "is missing"),
        ("ichido.toml:26:1 destinations.loop.limit_by", "unknown setting"),
        ("ichido.toml:25:14 destinations.loop.answers_to", "loop forever"),
        ("ichido.toml:31:14 destinations.astray.answers_to", "[queues.aa] does not exist; did you mean a"),
    ];
    let all = problems.join("\n");
    for (place, what) in expected {
        let found =
            problems.iter().any(|line| line.starts_with(&format!("{place}: ")) && line.contains(what));
        assert!(found, "{place}: {what}\nin\n{all}");
    }
    assert_eq!(problems.len(), expected.len(), "{all}");
    assert!(!all.contains("s3cret"), "{all}");
}

#[test]
fn a_model_shows_neither_secret_nor_prompt() {
    let text = r#"
[queues.articles]
destination = "model"
[queues.summaries]
destination = "mock"
max_retries = 2
[destinations.mock]
kind = "mock"
[destinations.model]
kind = "anthropic"
model = "claude-sonnet-5"
base_urls = ["https://eu.api.test", "https://us.api.test/x?key=s3cret"]
api_key = "env:ANTHROPIC_API_KEY"
prompt = "Judge the knee of {/text}"
schema = "summary.schema.json"
answers_to = "summaries"
"#;
    let config = resolved_with(text, &variables()).unwrap_or_else(|faults| panic!("{faults}"));
    let model = config.destinations.iter().find(|described| described.name == "model").expect("a model");
    assert_eq!((model.kind, model.guarantee()), ("anthropic", Some(Guarantee::Idempotent)));
    assert_eq!(model.endpoint, "claude-sonnet-5 at https://eu.api.test, https://us.api.test/x");
    assert_eq!(model.timeout(), Duration::from_secs(130), "the call, and storing the answer");
    let shown = format!("{config:?}");
    assert!(!shown.contains("s3cret") && !shown.contains("knee"), "{shown}");
}

#[test]
fn a_lease_must_outlast_a_models_answer() {
    let text = r#"
[queues.articles]
destination = "model"
lease = "1m"
[queues.summaries]
destination = "mock"
[destinations.mock]
kind = "mock"
[destinations.model]
kind = "openai"
model = "m"
prompt = "{/text}"
answers_to = "summaries"
"#;
    let problems = problems_of(text);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].starts_with("ichido.toml:4:9 queues.articles.lease: "), "{problems:?}");
}
