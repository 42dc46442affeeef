//! The demo refuses to write to an existing store or to accept other machines.

use super::program::{DemoProcess, ended, left};
use crate::folder;

#[test]
fn demo_refuses_existing_stores_and_public_addresses() {
    let folder = folder::fresh();
    folder.write("there.db", "somebody's");
    for (flags, why) in [
        (["--store", "postgres://ichido@db/ichido"], "is not an SQLite store"),
        (["--store", "sqlite:there.db"], "already exists"),
        (["--store", "mysql://root@localhost/shop"], "is not a supported database"),
        (["--listen", "0.0.0.0:0"], "is reachable from other machines"),
    ] {
        let (code, output, err) = ended(&folder, &[&["demo"], &flags[..]].concat());
        assert_eq!((code, output.as_str()), (Some(2), ""), "{flags:?}");
        assert!(err.contains(why), "{err}");
    }
    assert_eq!(left(&folder), ["there.db"]);
    assert_eq!(std::fs::read_to_string(folder.path().join("there.db")).unwrap(), "somebody's");
}

#[test]
fn demo_keeps_a_complete_store_on_request() {
    let folder = folder::fresh();
    let mut demo = DemoProcess::start(&folder, &["--listen", "127.0.0.1:0", "--store", "sqlite:kept.db"]);
    demo.until("order-1: sent on the first attempt");
    demo.interrupt();
    let (code, output, err) = demo.wait();
    assert_eq!((code, err.as_str()), (Some(0), ""), "{output}");
    assert!(output.ends_with("the store is kept\n"), "{output}");
    assert_eq!(left(&folder), ["kept.db"], "and no log beside it");
    let (code, listed, err) = ended(&folder, &["messages", "list", "--store", "sqlite:kept.db"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(listed.lines().any(|line| line.contains("orders") && line.contains("sent")), "{listed}");
}
