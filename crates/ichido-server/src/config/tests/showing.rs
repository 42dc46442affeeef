//! What `ichido config show` shows.

use super::*;

#[test]
fn settings_are_shown_with_origin_and_without_secrets() {
    let variables = BTreeMap::from([
        ("ICHIDO__STORE__URL", "postgres://ann:s3cret@db/ichido".to_owned()),
        ("ICHIDO__QUEUES__ORDERS__LEASE", "5m".to_owned()),
        ("OUTBOX_PARALLELISM", "9".to_owned()),
        ("OUTBOX_IDLE_SLEEP_MS", "50".to_owned()),
    ]);
    let traced = traced_with(NAMED, &variables).unwrap_or_else(|faults| panic!("{faults}"));
    let text = shown(&traced, &[], true);
    for line in [
        "[store]\nurl = \"…\"  # the variable ICHIDO__STORE__URL\nmax_connections = 16  # default\n",
        "idle_sleep = \"50ms\"  # the variable OUTBOX_IDLE_SLEEP_MS\n",
        "# audit_key is not set\n",
        "[queue_defaults]\nparallelism = 9  # the variable OUTBOX_PARALLELISM\n",
        "[queues.Mail-EU]\ndestination = \"mock\"  # ichido.toml:7:15\nparallelism = 5  # ichido.toml:8:15\nbatch_size = 32  # default\n",
        "lease = \"3m\"  # ichido.toml:5:9\nretry = \"order\"  # default\n",
        "[queues.orders]\ndestination = \"mock\"  # ichido.toml:10:15\nparallelism = 9  # the variable OUTBOX_PARALLELISM\n",
        "lease = \"5m\"  # the variable ICHIDO__QUEUES__ORDERS__LEASE\nretry = \"order\"  # ichido.toml:11:9\n",
        "[destinations.mock]\nkind = \"mock\"  # ichido.toml:13:8\n",
    ] {
        assert!(text.contains(line), "{line}\nin\n{text}");
    }
    assert!(!text.contains("s3cret"), "{text}");
    let flagged = shown(&traced, &[Override::store("sqlite:b.db", "the flag --store")], true);
    assert!(flagged.contains("url = \"sqlite:b.db\"  # the flag --store\n"), "{flagged}");
    // Without origins it is TOML, with the same values.
    let plain = shown(&traced, &[], false);
    assert!(!plain.contains("# the") && DeTable::parse(&plain).is_ok(), "{plain}");
}

#[test]
fn shown_destinations_are_complete_and_read_back() {
    let whole = uncommented();
    let short = "[destinations.slow]\nkind = \"http\"\nurl = \"http://a.test/\"\nguarantee = \"none\"\ntotal_timeout = \"2s\"\ncircuit = { rest = \"9m\" }\n";
    for text in [&commented_file(), &whole, short, NAMED] {
        let traced = traced_with(text, &variables()).unwrap_or_else(|faults| panic!("{faults}"));
        let plain = shown(&traced, &[], false);
        let again = resolved_with(&plain, &variables()).unwrap_or_else(|faults| panic!("{faults}\n{plain}"));
        assert_eq!(
            format!("{:?}", again.destinations),
            format!("{:?}", traced.config.destinations),
            "{plain}"
        );
        assert_eq!(format!("{:?}", again.queues), format!("{:?}", traced.config.queues), "{plain}");
        assert_eq!(format!("{:?}", again.serve), format!("{:?}", traced.config.serve), "{plain}");
    }
    let traced = traced_with(short, &variables()).unwrap_or_else(|faults| panic!("{faults}"));
    let text = shown(&traced, &[], true);
    for line in [
        "url = \"http://a.test/\"  # ichido.toml:3:7\n",
        "# signing_secrets is not set\n",
        "connect_timeout = \"2s\"  # default\n",
        "guarantee = \"none\"  # ichido.toml:4:13\n",
        "[destinations.slow.circuit]\nfailures = 10  # default\nrest = \"9m\"  # ichido.toml:6:20\nmax_rest = \"9m\"  # default\n",
    ] {
        assert!(text.contains(line), "{line}\nin\n{text}");
    }
}

#[test]
fn possible_secrets_in_urls_are_not_shown() {
    let text = "[destinations.a]\nkind = \"http\"\nurl = \"https://a.test/in?apikey=s3cret\"\nguarantee = \"none\"\nreconcile = { url = \"https://a.test/by-key/{key}?apikey=s3cret\", rules = [{ status = \"200\", means = \"done\" }] }\n[destinations.b]\nkind = \"http\"\nurl = \"https://hooks.slack.test/services/T0AAAAAAA/B0BBBBBBB/s3cretABCDEFGHIJKLMNOP\"\nguarantee = \"none\"\n";
    let traced = traced_with(text, &variables()).unwrap_or_else(|faults| panic!("{faults}"));
    let all = traced.display(&[]);
    for text in [show::text(&all, true), show::json(&all).to_string()] {
        assert!(!text.contains("s3cret"), "{text}");
        assert!(
            text.contains("https://a.test/in?apikey=…")
                && text.contains("https://hooks.slack.test/services/…"),
            "{text}"
        );
    }
}

#[test]
fn possible_secrets_in_destinations_are_not_shown() {
    let text = "[destinations.a]\nkind = \"http\"\nurl = \"env:URL\"\nguarantee = \"none\"\nsigning_secrets = [\"env:SIGNING\"]\nheaders = { Accept = \"*/*\" }\n[destinations.b]\nkind = \"http\"\nurl = \"http://b.test/\"\nguarantee = \"none\"\n[destinations.c]\nkind = \"nats\"\nurls = [\"nats://c\"]\nsubject = \"x\"\ncredentials = { user = \"ann\", password = \"env:NATS_PASSWORD\" }\n";
    let mut variables = variables();
    variables.extend([
        ("URL", "https://a.test/s3cret".to_owned()),
        ("SIGNING", SECRET.to_owned()),
        ("ICHIDO__DESTINATIONS__A__HEADERS", "{ Accept = \"s3cret\" }".to_owned()),
        ("ICHIDO__DESTINATIONS__B__URL", "https://b.test/s3cret".to_owned()),
    ]);
    let traced = traced_with(text, &variables).unwrap_or_else(|faults| panic!("{faults}"));
    let all = traced.display(&[]);
    for text in [show::text(&all, true), show::json(&all).to_string()] {
        assert!(!text.contains("s3cret") && !text.contains(SECRET), "{text}");
        assert!(
            text.contains("env:URL") && text.contains("env:SIGNING") && text.contains("env:NATS_PASSWORD"),
            "{text}"
        );
        assert!(text.contains("the variable ICHIDO__DESTINATIONS__B__URL"), "{text}");
    }
}
