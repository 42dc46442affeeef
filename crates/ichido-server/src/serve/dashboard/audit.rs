//! The page of the audit trail: who did what, to what, before and after, and whether it is sealed.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use form_urlencoded::Serializer;
use http::{StatusCode, Uri};
use ichido_core::text::{visible, visible_lines};

use super::super::audit::{AuditEntries, AuditEntry};
use super::super::request::query_pairs;
use super::Dashboard;
use super::key_texts::Texts as KeyTexts;
use super::moments::ShownTime;
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::texts::fill;

/// The filters, which are also the API's.
const FILTERS: [&str; 3] = ["actor", "kind", "subject"];
/// The first digits of a key's name in the trail are the hash of the key.
const HASH_CHARS: usize = 16;

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    shell: Shell,
    k: &'static KeyTexts,
    filter: AuditFilterText,
    error: Option<String>,
    rows: Vec<AuditLine>,
    empty: &'static str,
    /// Whether the search ended at its limit.
    is_short: bool,
    newest: Option<String>,
    next: Option<String>,
}

/// The filters and the position, as in the address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct AuditFilterText {
    actor: String,
    kind: String,
    subject: String,
}

impl AuditFilterText {
    fn values(&self) -> impl Iterator<Item = (&'static str, &str)> {
        FILTERS
            .into_iter()
            .zip([&*self.actor, &*self.kind, &*self.subject])
            .filter(|(_, value)| !value.is_empty())
    }

    fn is_empty(&self) -> bool {
        self.values().next().is_none()
    }

    /// Returns an address with these filters.
    fn address(&self, path: &str, cursor: Option<&str>) -> String {
        let mut address = Serializer::for_suffix(format!("{path}?"), path.len() + 1);
        address.extend_pairs(self.values()).extend_pairs(cursor.map(|cursor| ("cursor", cursor)));
        address.finish()
    }
}

/// An entry in the table.
struct AuditLine {
    /// Of the row, so an open page knows it again.
    id: String,
    at: ShownTime,
    actor: String,
    actor_href: Option<String>,
    kind: String,
    kind_href: String,
    about: String,
    about_href: Option<String>,
    subject_href: String,
    from: String,
    to: String,
    detail: Option<String>,
    seal: String,
    seal_mark: &'static str,
    seal_class: &'static str,
}

/// Lists the audit trail.
pub(super) async fn list(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    uri: Uri,
) -> Result<Response, PageRefusal> {
    let k = visitor.key_texts();
    let query = query_pairs(&uri)?;
    let get = |wanted: &str| query.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.trim());
    let text = |wanted: &str| get(wanted).unwrap_or_default().to_owned();
    let filter = AuditFilterText { actor: text("actor"), kind: text("kind"), subject: text("subject") };
    let cursor = get("cursor");
    let found = dashboard.read::<AuditEntries>(visitor.caller()?, &filter.address("/v1/audit", cursor)).await;
    let (status, found, error) = match found {
        Ok(found) => (StatusCode::OK, found, None),
        // A filter is wrong, so the page says why beside it.
        Err(refusal) if refusal.status == StatusCode::BAD_REQUEST.as_u16() => {
            let none = AuditEntries { entries: Vec::new(), next: None };
            (StatusCode::BAD_REQUEST, none, Some(refusal.detail))
        }
        Err(refusal) => return Err(refusal),
    };
    let mut shell = dashboard.shell(&visitor, k.audit);
    shell.live = Some("/live".to_owned());
    let page = AuditPage {
        k,
        rows: found.entries.into_iter().map(|entry| line(&visitor, entry)).collect(),
        empty: if filter.is_empty() && cursor.is_none() { k.audit_none } else { k.audit_none_match },
        is_short: found.next.is_some() && 1 < filter.values().count(),
        newest: cursor.map(|_| filter.address("/audit", None)),
        next: found.next.as_deref().map(|next| filter.address("/audit", Some(next))),
        filter,
        error,
        shell,
    };
    Ok(html(status, &page))
}

fn line(visitor: &Visitor, entry: AuditEntry) -> AuditLine {
    let k = visitor.key_texts();
    let only = |actor: &str, kind: &str, subject: &str| {
        let filter =
            AuditFilterText { actor: actor.to_owned(), kind: kind.to_owned(), subject: subject.to_owned() };
        filter.address("/audit", None)
    };
    let (seal, seal_mark, seal_class) = match (entry.sealed, entry.seal) {
        (true, Some(number)) => (fill(k.sealed_by, &[("n", &number.to_string())]), "check", "good"),
        (true, None) => (k.sealed.to_owned(), "check", "good"),
        (false, _) => (k.not_sealed.to_owned(), "wait", "quiet"),
    };
    AuditLine {
        id: format!("a-{}-{}-{}", entry.at, entry.subject, entry.kind),
        at: visitor.time(&entry.at),
        actor_href: entry.actor.as_deref().map(|actor| only(actor, "", "")),
        actor: entry.actor.map_or_else(|| k.the_system.to_owned(), |actor| visible(&actor)),
        kind_href: only("", &entry.kind, ""),
        kind: entry.kind,
        about_href: about_href(&entry.about),
        about: visible(&entry.about),
        subject_href: only("", "", &entry.subject.to_string()),
        from: entry.from,
        to: entry.to,
        detail: entry.detail.map(|detail| visible_lines(&detail)),
        seal,
        seal_mark,
        seal_class,
    }
}

/// Returns the page of a subject.
fn about_href(about: &str) -> Option<String> {
    let (what, name) = about.split_once(' ')?;
    match what {
        "message" => Some(format!("/messages/{name}")),
        "queue" => Some(format!("/messages?q=queue:{name}")),
        "key" => name.get(..HASH_CHARS).map(|hash| format!("/keys?key={hash}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_leads_to_its_page() {
        for (about, href) in [
            ("message 0199", Some("/messages/0199")),
            ("queue orders", Some("/messages?q=queue:orders")),
            ("key 00112233445566778899", Some("/keys?key=0011223344556677")),
            ("key 0011", None),
            ("identity 0199", None),
            ("letters", None),
        ] {
            assert_eq!(about_href(about).as_deref(), href, "{about}");
        }
    }

    #[test]
    fn filters_stay_in_the_address() {
        let filter = AuditFilterText {
            actor: "a b".to_owned(),
            subject: "s".to_owned(),
            ..AuditFilterText::default()
        };
        assert_eq!(filter.address("/audit", Some("c")), "/audit?actor=a+b&subject=s&cursor=c");
        assert_eq!(AuditFilterText::default().address("/audit", None), "/audit?");
    }
}
