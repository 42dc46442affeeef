//! Every command has `--json`, and prints JSON objects.

use serde_json::Value;

use super::fixture::{objects, run, store};
use crate::dead::fixture::StoreFixture;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_output_consists_of_objects() {
    let fixture = StoreFixture::on_sqlite().await;
    fixture.dead("orders", 1).await;
    let text = |arguments: &[&str]| -> Value {
        let left = run(store(&fixture, &[arguments, &["--json"]].concat()));
        assert_eq!((left.code, left.err.as_str()), (Some(0), ""), "{arguments:?}: {left:?}");
        let objects = objects(&left.out);
        assert!(objects.len() == 1 && objects[0].is_object(), "{arguments:?}: {left:?}");
        objects[0].clone()
    };
    let made = text(&["token", "create", "night watch", "--role", "operator"]);
    assert!(made["token"].as_str().unwrap().starts_with("ichido_"), "a token");
    let id = made["id"].as_str().unwrap();
    assert_eq!((&made["name"], &made["role"]), (&"night watch".into(), &"operator".into()));
    assert_eq!(text(&["token", "revoke", id])["revoked"], true);
    assert_eq!(text(&["audit", "seal"])["keyed"], false);
    text(&["audit", "verify"]);
    text(&["dead", "list"]);
    assert_eq!(text(&["queues", "resume", "orders"])["name"], "orders");
    assert_eq!(text(&["messages", "list"])["status"], "dead");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn check_prints_findings_as_json() {
    let fixture = StoreFixture::on_sqlite().await;
    let check = |flags: &[&str]| {
        let mut command = super::fixture::bare(&fixture);
        command.arg("check").args(flags);
        run(command)
    };
    assert_eq!(check(&["--init"]).code, Some(0));
    let (short, long) = (check(&["--json", "."]), check(&["--format", "json", "."]));
    assert!(serde_json::from_str::<Value>(&short.out).unwrap().is_object(), "{short:?}");
    assert_eq!((short.code, short.out), (long.code, long.out));
    assert_eq!(check(&["--json", "--format", "sarif", "."]).code, Some(2));
    let object = |flags: &[&str]| serde_json::from_str::<Value>(&check(flags).out).unwrap();
    let rules = object(&["--list", "--json"]);
    assert!(rules["rules"].as_array().unwrap().iter().any(|rule| rule["id"] == "ICH-B020"), "{rules}");
    assert_eq!(object(&["--explain", "b020", "--json"])["id"], "ICH-B020");
}
