//! Addresses where clouds serve credentials are not called, whatever name leads there.

use ichido_core::verdict::{Advice, Effect};

use super::tried::{SHORT, order, resolved, settings, tried};

/// 169.254.169.254 as one number: not an address in a URL, but one to every resolver, as a DNS name would be.
const A_NAME_THAT_LEADS_THERE: &str = "2852039166";

#[tokio::test]
async fn name_of_link_local_address_is_not_called() {
    let mut settings = settings(format!("http://{A_NAME_THAT_LEADS_THERE}/latest/meta-data/"));
    let (verdict, note) = tried(&resolved(&settings), &order("k")).await;
    assert_eq!((verdict.effect, verdict.advice), (Effect::NotDone, Advice::Retry));
    assert_eq!(verdict.pace_report(), None, "it was held back by us, which says nothing of the receiver");
    let why = note.excerpt.expect("it says why");
    assert!(why.contains("link-local"), "{why}");

    // If named, it is called; nobody needs to be there.
    settings.allow_link_local = vec![A_NAME_THAT_LEADS_THERE.to_owned()];
    settings.connect_timeout = SHORT;
    let (_, note) = tried(&resolved(&settings), &order("k")).await;
    let why = note.excerpt.unwrap_or_default();
    assert!(!why.contains("link-local"), "{why}");
}

#[test]
fn link_local_url_is_refused_unless_allowed() {
    for host in ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "[fd00:ec2::254]"] {
        let mut settings = settings(format!("http://{host}/"));
        let problems = settings.resolve().expect_err("it is link-local");
        assert!(problems.to_string().contains("link-local"), "{problems}");
        settings.allow_link_local = vec![host.to_owned()];
        assert!(settings.resolve().is_ok(), "{host}");
    }
}
