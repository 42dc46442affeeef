use std::ffi::OsString;

use super::*;

const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");

fn resolved(endpoint: Option<&str>, variables: &[(&str, &str)]) -> Result<Option<Collector>, ConfigErrors> {
    resolve(TRACES, endpoint, |name| {
        let found = variables.iter().find(|(set, _)| *set == name);
        found.map(|(_, value)| (*value).to_owned()).ok_or(VarError::NotPresent)
    })
}

fn collector(variables: &[(&str, &str)]) -> Collector {
    resolved(None, &[&[ENDPOINT], variables].concat()).unwrap().expect("it has an endpoint")
}

fn refused(variables: &[(&str, &str)]) -> String {
    resolved(None, &[&[ENDPOINT], variables].concat()).unwrap_err().to_string()
}

#[test]
fn without_an_endpoint_nothing_else_is_read() {
    assert!(resolved(None, &[]).unwrap().is_none());
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", ""), ("OTEL_RESOURCE_ATTRIBUTES", "wrong")];
    assert!(resolved(None, &variables).unwrap().is_none());
}

#[test]
fn an_endpoint_for_traces_is_used_as_it_is() {
    let base = "https://otlp.example/otlp/";
    let traces = [("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://otlp.example/in?tenant=1")];
    for (place, url, path) in [
        (SETTING, base, "/otlp/v1/traces"),
        (TRACES.endpoints[1], base, "/otlp/v1/traces"),
        (TRACES.endpoints[0], base, "/otlp/"),
        (TRACES.endpoints[0], "https://otlp.example", "/"),
        (TRACES.endpoints[0], "https://otlp.example?tenant=1", "/?tenant=1"),
    ] {
        let found = endpoint(TRACES, place, url).unwrap();
        assert_eq!(found, ("https://otlp.example".to_owned(), path.to_owned()), "{place} {url}");
    }
    assert_eq!(collector(&traces).path, "/in?tenant=1", "it wins over the endpoint of all signals");
    let found = resolved(Some("nonsense"), &[ENDPOINT]).unwrap().unwrap();
    assert_eq!(found.path, "/v1/traces", "a variable wins over the configuration");
}

#[test]
fn a_list_is_decoded_and_its_blanks_are_dropped() {
    let mut variables = Variables {
        signal: TRACES,
        variable: |_: &str| Err(VarError::NotPresent),
        faults: ConfigErrors::default(),
    };
    let entries =
        variables.entries(TRACES.headers[0], " Authorization = Basic%20YTpi== ,, api-key=a%2Cb+c,empty=,");
    let expected = [(1, "Authorization", "Basic YTpi=="), (3, "api-key", "a,b+c"), (4, "empty", "")];
    let expected = expected.map(|(position, name, value)| (position, name.to_owned(), value.to_owned()));
    assert_eq!(entries, expected);
    assert!(variables.faults.or(Some(())).is_ok());
}

#[test]
fn headers_for_traces_replace_those_for_all_signals() {
    let mut variables = Variables {
        signal: TRACES,
        variable: |name: &str| Ok(format!("x-from={name}")),
        faults: ConfigErrors::default(),
    };
    let (place, list) = variables.first(TRACES.headers).unwrap();
    let headers = variables.headers(place, &list);
    assert_eq!(headers["x-from"], "OTEL_EXPORTER_OTLP_TRACES_HEADERS");
    assert_eq!(headers.len(), 1);
    assert!(headers["x-from"].is_sensitive());
}

#[test]
fn resource_attributes_replace_ours_and_the_service_name_wins() {
    let plain = collector(&[]).resource;
    assert_eq!(plain["service.name"], "ichido");
    assert_eq!(plain["service.version"], env!("CARGO_PKG_VERSION"));
    assert!(Uuid::parse_str(&plain["service.instance.id"]).is_ok());

    let list = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=shop,deployment.environment.name=M%C3%BCnchen");
    let listed = collector(&[list]).resource;
    assert_eq!(listed["service.name"], "shop");
    assert_eq!(listed["deployment.environment.name"], "München");

    let named = collector(&[list, ("OTEL_SERVICE_NAME", "orders, north")]).resource;
    assert_eq!(
        named,
        BTreeMap::from_iter([
            (NAME.to_owned(), "orders, north".to_owned()),
            ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("service.instance.id".to_owned(), named["service.instance.id"].clone()),
            ("deployment.environment.name".to_owned(), "München".to_owned()),
        ])
    );
}

#[test]
fn a_wrong_value_is_named_by_its_variable_and_never_shown() {
    for (name, value, what) in [
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "s3cret", "must begin with https:// or http://"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://a.example/s3cret/ö", "is not a URL"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://a:s3cret@a.example/", "user name"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=b,s3cret", "entry 2 has no `=`"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "=s3cret", "entry 1 has no name"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=s3cret%", "entry 1 is not percent-encoded correctly"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "s3 cret=b", "entry 1 has an invalid HTTP header name"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=s3cret%0A", "entry 1 has a value with characters"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "Host=s3cret", "the client sets the header host"),
        ("OTEL_RESOURCE_ATTRIBUTES", "s3cret", "entry 1 has no `=`"),
        ("OTEL_RESOURCE_ATTRIBUTES", "s3cret=%ff", "entry 1 is not percent-encoded correctly"),
    ] {
        let shown = refused(&[(name, value)]);
        assert!(shown.contains(&format!("{name}: ")) && shown.contains(what), "{shown}");
        assert!(!shown.contains("s3") && !shown.contains("cret"), "{shown}");
    }
}

#[test]
fn all_problems_are_reported_at_once() {
    let shown = refused(&[
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "nowhere"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a"),
        ("OTEL_RESOURCE_ATTRIBUTES", "b"),
    ]);
    assert!(shown.starts_with("3 problems\n"), "{shown}");
}

#[test]
fn a_variable_that_is_not_text_is_refused() {
    let read = |name: &str| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Err(VarError::NotUnicode(OsString::new())),
        _ => Err(VarError::NotPresent),
    };
    let shown = resolve(TRACES, None, read).unwrap_err().to_string();
    assert!(shown.contains("OTEL_EXPORTER_OTLP_ENDPOINT: is not UTF-8"), "{shown}");
}

#[test]
fn an_https_endpoint_is_accepted_and_no_header_is_shown() {
    let found = collector(&[
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://otlp.example/v1/traces"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20s3cret"),
    ]);
    assert!(!format!("{found:?}").contains("s3cret"), "{found:?}");
}
