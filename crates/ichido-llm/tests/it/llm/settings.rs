//! Invalid settings, all reported at once.

use std::time::Duration;

use ichido_llm::models::{AnthropicSettings, MAX_ENDPOINTS, Model as _, OpenAiSettings, ServiceSettings};

fn problem_settings(service: ServiceSettings) -> Vec<String> {
    let openai = OpenAiSettings::new(service.clone()).resolve().err().unwrap_or_default();
    let anthropic = AnthropicSettings::new(service).resolve().err().unwrap_or_default();
    assert_eq!(openai, anthropic, "they share them");
    openai.0.into_iter().map(|problem| problem.place).collect()
}

fn service() -> ServiceSettings {
    ServiceSettings::new("m", "http://localhost:1/v1")
}

#[test]
fn all_errors_are_reported_together_with_their_settings() {
    let wrong = ServiceSettings {
        model: "a model".to_owned(),
        base_urls: vec![
            "ftp://a.example".to_owned(),
            "http://169.254.169.254/v1".to_owned(),
            "nowhere".to_owned(),
        ],
        api_key: Some(" ".to_owned()),
        connect_timeout: Duration::from_secs(9),
        timeout: Duration::from_secs(1),
        ..service()
    };
    let expected = ["model", "connect_timeout", "api_key", "base_urls[0]", "base_urls[1]", "base_urls[2]"];
    assert_eq!(problem_settings(wrong), expected);
}

#[test]
fn every_limit_is_enforced() {
    assert_eq!(problem_settings(service()), [""; 0]);
    assert_eq!(problem_settings(ServiceSettings { model: String::new(), ..service() }), ["model"]);
    assert_eq!(problem_settings(ServiceSettings { base_urls: vec![], ..service() }), ["base_urls"]);
    let many = |count: usize| (0..count).map(|number| format!("http://h{number}/v1")).collect();
    assert_eq!(problem_settings(ServiceSettings { base_urls: many(MAX_ENDPOINTS), ..service() }), [""; 0]);
    assert_eq!(
        problem_settings(ServiceSettings { base_urls: many(MAX_ENDPOINTS + 1), ..service() }),
        ["base_urls"]
    );
    let twice = vec!["http://h/v1".to_owned(), "http://h/v1/".to_owned()];
    assert_eq!(problem_settings(ServiceSettings { base_urls: twice, ..service() }), ["base_urls[1]"]);
    assert_eq!(
        problem_settings(ServiceSettings { timeout: Duration::ZERO, ..service() }),
        ["timeout", "connect_timeout"]
    );
    assert_eq!(
        problem_settings(ServiceSettings { api_key: Some("a\nb".to_owned()), ..service() }),
        ["api_key"]
    );
    let roots = Some("no PEM".to_owned());
    let tls =
        ServiceSettings { base_urls: vec!["https://h/v1".to_owned()], trusted_roots: roots, ..service() };
    assert_eq!(problem_settings(tls), ["trusted_roots"]);
}

#[test]
fn an_endpoint_is_named_by_its_url_without_a_query() {
    let service = ServiceSettings { base_urls: vec!["http://h:8/v1/?token=secret".to_owned()], ..service() };
    let model = OpenAiSettings::new(service).resolve().expect("settings");
    assert_eq!(model.endpoints(), ["http://h:8/v1"]);
    assert!(!format!("{model:?}").contains("secret"));
}
