//! What an alert says and where its rows are.
//!
//! Guarantee: an alert of a later release is shown as the API says it, with a link to the list of alerts.

use std::time::Duration;

use form_urlencoded::Serializer;
use ichido_core::alert::{AlertRule, AlertSubject, MeasureUnit};
use ichido_core::time::Timestamp;

use super::super::alerts::Alert;
use super::bulk_plan::address;
use super::filter::quoted;
use super::language::Language;
use super::moments::{duration, full};
use super::texts::{Texts, fill, without_backticks};

/// Returns an alert in one sentence.
pub(super) fn sentence(language: Language, alert: &Alert) -> String {
    let shown = match language {
        Language::English => None,
        Language::Japanese => japanese(alert),
    };
    shown.unwrap_or_else(|| without_backticks(&alert.text))
}

/// Says when the numbers of an alert were true: they do not change while it fires.
pub(super) fn opened(language: Language, alert: &Alert) -> String {
    fill(Texts::of(language).alert_opened, &[("at", &full(&alert.opened_at))])
}

/// Returns the page of the rows that an alert is about.
pub(super) fn rows_href(alert: &Alert) -> String {
    let rule = AlertRule::parse(&alert.rule);
    let Some((rule, about)) = rule.zip(AlertSubject::parse(&alert.about)) else {
        return "/alerts".to_owned();
    };
    let AlertSubject::Queue(queue) = about else {
        return match about {
            AlertSubject::Destination(name) => super::destinations::path_of(&name),
            AlertSubject::Operation(_) => "/keys".to_owned(),
            AlertSubject::Trail | AlertSubject::Queue(_) => "/audit".to_owned(),
        };
    };
    let letters = |state: &str, from: Option<String>| {
        let pairs = [("state", state.to_owned()), ("queue", queue.clone())];
        let pairs: Vec<_> = pairs.into_iter().chain(from.map(|from| ("since_from", from))).collect();
        address("/dead-letters", &pairs)
    };
    let messages = |rest: &str| {
        let filter = format!("queue:{}{rest}", quoted(&queue));
        Serializer::for_suffix("/messages?".to_owned(), "/messages?".len()).append_pair("q", &filter).finish()
    };
    match rule {
        AlertRule::DeadLetter | AlertRule::DeadLetters | AlertRule::DeadSurge => {
            letters("dead", window_start(alert))
        }
        AlertRule::Parked => letters("parked", None),
        AlertRule::FailedRetries => messages(" state:failed"),
        AlertRule::OldestWaiting => messages(" state:queued"),
        AlertRule::Duplicates => {
            messages(&window_start(alert).map(|from| format!(" since:{from}")).unwrap_or_default())
        }
        AlertRule::ProcessingDelay
        | AlertRule::LagP95
        | AlertRule::CircuitOpen
        | AlertRule::AuditBroken
        | AlertRule::UnknownOutcome => messages(""),
    }
}

/// Returns how far the alert looked back when it opened.
fn window_start(alert: &Alert) -> Option<String> {
    let opened = Timestamp::parse(&alert.opened_at)?;
    let window = i64::try_from(Duration::from_secs(alert.window_seconds?).as_micros()).ok()?;
    Some(Timestamp::from_micros(opened.as_micros().saturating_sub(window)).to_string())
}

fn japanese(alert: &Alert) -> Option<String> {
    let rule = AlertRule::parse(&alert.rule)?;
    let about = match AlertSubject::parse(&alert.about)? {
        AlertSubject::Queue(name) => format!("キュー {name}"),
        AlertSubject::Operation(name) => format!("操作 {name}"),
        AlertSubject::Destination(name) => format!("宛先 {name}"),
        AlertSubject::Trail => "監査証跡".to_owned(),
    };
    let what = match rule {
        AlertRule::DeadLetter => "{window} 以内に {value} 件がデッドレターになりました",
        AlertRule::DeadLetters => "{window} 以内に {value} 件がデッドレターになりました(しきい値 {above} 件)",
        AlertRule::DeadSurge => {
            "{window} 以内に {samples} 件がデッドレターになりました。通常の {value} 倍です(しきい値 {above} 倍)"
        }
        AlertRule::FailedRetries => {
            "{window} 以内の再試行 {samples} 件のうち {value} が失敗しました(しきい値 {above})"
        }
        AlertRule::Duplicates => {
            "{window} 以内のリクエスト {samples} 件のうち {value} が重複でした(しきい値 {above})"
        }
        AlertRule::ProcessingDelay => {
            "{window} 以内に完了した {samples} 件の所要時間は平均 {value} でした(しきい値 {above})"
        }
        AlertRule::LagP95 => {
            "{window} 以内に完了した {samples} 件のうち 5 % は {value} 以上かかりました(しきい値 {above})"
        }
        AlertRule::OldestWaiting => "送信できる最も古いメッセージが {value} 待っています(しきい値 {above})",
        AlertRule::Parked => "{value} 件が効果不明で保留中です。人の判断が必要です",
        AlertRule::CircuitOpen => "サーキットが開いています。停止とみなし、確認以外の呼び出しを止めています",
        AlertRule::AuditBroken => {
            "記録または封印 {value} 件が封印時と異なります。ichido audit verify で一覧できます"
        }
        AlertRule::UnknownOutcome => "結果不明のリクエストが {value} 件あります。人の判断が必要です",
    };
    let window =
        alert.window_seconds.map(|seconds| duration(Duration::from_secs(seconds))).unwrap_or_default();
    let (value, above) = (amount(rule, alert.value), amount(rule, alert.above));
    let values = [
        ("value", &*value),
        ("above", &*above),
        ("window", &*window),
        ("samples", &*alert.samples.to_string()),
    ];
    Some(format!("{about}: {}", fill(what, &values)))
}

fn amount(rule: AlertRule, value: f64) -> String {
    let plain = |value: f64| {
        let text = format!("{value:.1}");
        text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
    };
    match rule.unit() {
        MeasureUnit::Count | MeasureUnit::Times => plain(value),
        MeasureUnit::Share => format!("{} %", plain(value * 100.0)),
        MeasureUnit::Seconds => duration(Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn alert(rule: &str, about: &str, value: f64) -> Alert {
        Alert {
            id: Uuid::nil(),
            rule: rule.to_owned(),
            about: about.to_owned(),
            state: "firing".to_owned(),
            opened_at: "2026-11-15T03:15:00Z".to_owned(),
            clear_since: None,
            resolved_at: None,
            value,
            samples: 40,
            above: 0.5,
            unit: String::new(),
            window_seconds: Some(900),
            text: "as the API says it".to_owned(),
        }
    }

    #[test]
    fn each_alert_leads_to_its_rows() {
        let letters = "/dead-letters?state=dead&queue=orders&since_from=2026-11-15T03%3A00%3A00Z";
        for (rule, about, href) in [
            ("dead_letter", "queue orders", letters),
            ("dead_letters", "queue orders", letters),
            ("dead_surge", "queue orders", letters),
            ("parked", "queue orders", "/dead-letters?state=parked&queue=orders"),
            ("failed_retries", "queue orders", "/messages?q=queue%3Aorders+state%3Afailed"),
            ("oldest_waiting", "queue orders", "/messages?q=queue%3Aorders+state%3Aqueued"),
            ("duplicates", "queue orders", "/messages?q=queue%3Aorders+since%3A2026-11-15T03%3A00%3A00Z"),
            ("lag_p95", "queue orders", "/messages?q=queue%3Aorders"),
            ("processing_delay", "queue orders", "/messages?q=queue%3Aorders"),
            ("circuit_open", "destination broker", "/destinations/broker"),
            ("unknown_outcome", "operation POST /transfers", "/keys"),
            ("audit_broken", "trail", "/audit"),
            ("of_a_later_release", "queue orders", "/alerts"),
        ] {
            assert_eq!(rows_href(&alert(rule, about, 1.0)), href, "{rule}");
        }
    }

    #[test]
    fn an_alert_says_when_its_numbers_were_true() {
        let alert = alert("parked", "queue orders", 3.0);
        for (language, said) in [
            (Language::English, "Numbers of 2026-11-15 03:15:00 UTC, when it opened"),
            (Language::Japanese, "数値は発生時(2026-11-15 03:15:00 UTC)のもの"),
        ] {
            assert_eq!(opened(language, &alert), said);
        }
    }

    #[test]
    fn alerts_are_in_both_languages() {
        for rule in AlertRule::ALL {
            let alert = alert(rule.as_str(), "queue orders", 0.75);
            assert_eq!(sentence(Language::English, &alert), "as the API says it");
            let shown = sentence(Language::Japanese, &alert);
            assert!(shown.starts_with("キュー orders: ") && !shown.contains(['{', '}']), "{shown}");
        }
        let shown = sentence(Language::Japanese, &alert("failed_retries", "queue orders", 0.75));
        let expected = "キュー orders: 15 min 以内の再試行 40 件のうち 75 % が失敗しました(しきい値 50 %)";
        assert_eq!(shown, expected);
        let later = alert("of_a_later_release", "queue orders", 1.0);
        assert_eq!(sentence(Language::Japanese, &later), "as the API says it");
    }
}
