//! Ctrl-C before the end, and a port that is taken.

use std::net::TcpListener;

use super::program::{DemoProcess, ended, left};
use crate::folder;

#[test]
fn ctrl_c_stops_demo_and_fails_only_with_once() {
    for (flags, expected) in [(&[][..], Some(0)), (&["--once"][..], Some(3))] {
        let folder = folder::fresh();
        let mut demo = DemoProcess::start(&folder, &[&["--listen", "127.0.0.1:0"], flags].concat());
        demo.until("order-2: attempt 1 failed");
        demo.interrupt();
        let (code, output, err) = demo.wait();
        assert_eq!(code, expected, "{output}{err}");
        assert!(output.contains("\n0     an operator decided"), "what was not seen is not claimed: {output}");
        assert_eq!(err.contains("stopped before the scenario ended"), !flags.is_empty(), "{err}");
        assert_eq!(left(&folder), [""; 0]);
    }
}

#[test]
fn default_port_falls_back_and_requested_port_does_not() {
    // If another process has it, it is taken as well.
    let usual = TcpListener::bind("127.0.0.1:4180");
    let folder = folder::fresh();
    let mut demo = DemoProcess::start(&folder, &[]);
    let line = demo.until("server  http://");
    assert!(
        line.ends_with(" (a free port: 127.0.0.1:4180 is in use)") && !line.contains("//127.0.0.1:4180 "),
        "{line}"
    );
    demo.until("sent on the first attempt");
    demo.interrupt();
    assert_eq!(demo.wait().0, Some(0));
    drop(usual);

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, output, err) = ended(&folder, &["demo", "--listen", &address]);
    assert_eq!((code, output.as_str()), (Some(1), ""));
    assert!(err.contains(&format!("cannot listen on {address}")) && err.contains("--listen"), "{err}");
    assert_eq!(left(&folder), [""; 0]);
}
