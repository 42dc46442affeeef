//! The words that a page explains: two sentences, and the guide with the rest.
//!
//! Guarantee: every term has a text in both languages, and its guide exists.

use super::language::Language;

/// A term in one language.
#[derive(Clone, Copy)]
pub(super) struct Term {
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    /// The page of `docs` with the rest.
    pub(super) guide: &'static str,
    /// The text of that page, in Markdown.
    pub(super) guide_text: &'static str,
}

macro_rules! guide {
    ($name:literal) => {
        include_str!(concat!("../../../../../docs/", $name))
    };
}

macro_rules! terms {
    ($($id:ident, $guide:literal, $english:literal: $english_text:literal, $japanese:literal: $japanese_text:literal;)+) => {
        /// The terms in one language.
        pub(super) struct Terms {
            $(pub(super) $id: Term,)+
        }

        static ENGLISH: Terms = Terms {
            $($id: Term { id: stringify!($id), name: $english, text: $english_text, guide: $guide, guide_text: guide!($guide) },)+
        };
        static JAPANESE: Terms = Terms {
            $($id: Term { id: stringify!($id), name: $japanese, text: $japanese_text, guide: $guide, guide_text: guide!($guide) },)+
        };

        impl Terms {
            /// Returns all of them.
            pub(super) fn all(&self) -> Vec<Term> {
                vec![$(self.$id,)+]
            }
        }
    };
}

impl Terms {
    /// Returns the terms in a language.
    pub(super) fn of(language: Language) -> &'static Self {
        match language {
            Language::English => &ENGLISH,
            Language::Japanese => &JAPANESE,
        }
    }
}

terms! {
    message, "concepts.md",
        "Message": "One piece of work for a receiver, stored before it is acknowledged. Queue, identity and idempotency key together are unique, so sending it again changes nothing.",
        "メッセージ": "受信側に届ける一つの仕事で、受付の応答より前に保存されます。キュー、識別子、冪等キーの組は一意なので、再送しても何も変わりません。";
    effect, "guides/choose-a-guarantee.md",
        "Effect": "What the receiver did because of the message: done, not done, or unknown. Ichido never guesses an unknown effect, because a wrong guess loses an order or repeats it.",
        "効果": "メッセージによって受信側で起きたことで、あり・なし・不明のいずれかです。誤れば注文が失われるか二重になるため、不明なものは推測しません。";
    parked, "guides/dead-letters.md",
        "Parked": "Nobody knows whether the message took effect, and sending it again could apply it twice. It waits until the receiver can be asked or a person decides.",
        "保留": "効果があったか分からず、再送すると二重になるおそれがあるメッセージです。受信側に照会できるか、人が判断するまで待ちます。";
    dead_letter, "guides/dead-letters.md",
        "Dead letter": "A message that Ichido gave up on, because the receiver refused it or no attempts are left. It is kept with its reason until somebody requeues, edits or discards it.",
        "デッドレター": "受信側の拒否や試行回数の上限により、配信を断念したメッセージです。再投入、編集、破棄のいずれかまで理由とともに保存されます。";
    queue, "guides/run-a-server.md",
        "Queue": "A place where messages for one destination wait. A worker serves it within its limits of parallelism and pace.",
        "キュー": "一つの宛先に向かうメッセージが待つ場所です。ワーカーが並列数と速度の上限内で処理します。";
    fence, "concepts.md",
        "Fence": "A number that grows with every claim of a message. A worker that comes back too late has an old fence, and cannot change the outcome.",
        "フェンス": "メッセージを受け持つたびに増える番号です。遅れて戻ったワーカーの番号は古く、結果を変えられません。";
    idempotency_key, "concepts.md",
        "Idempotency key": "The caller's name for one action. The same key with the same request gets the same response, and the action takes effect once.",
        "冪等キー": "一つの操作に呼び出し側が付ける名前です。同じキーと内容には同じ応答が返り、効果は一度だけです。";
    alert, "runbook.md",
        "Alert": "A rule about a queue or destination, such as too many dead letters. It fires when a value exceeds its threshold, and resolves when the value stays below it.",
        "アラート": "デッドレターの増加など、キューや宛先についての規則です。しきい値を超えると発生し、下回り続けると解消します。";
    node, "guides/run-a-worker.md",
        "Node": "A process with a worker that shares this store. When its heartbeats stop, another node rescues its messages within seconds.",
        "ノード": "このストアを共有するワーカーのプロセスです。応答が途絶えると、数秒以内に別のノードがメッセージを引き継ぎます。";
    destination, "runbook.md",
        "Destination": "Where the messages of a queue go, such as a broker or a language model. All workers share its pace, its pauses and its circuit breaker.",
        "宛先": "ブローカーや言語モデルなど、キューのメッセージの届け先です。速度、停止、サーキットブレーカーは全ワーカーで共有されます。";
    parallelism, "guides/run-a-worker.md",
        "Parallelism": "How many messages of a queue each worker runs at the same time. An operator can change it while workers run.",
        "並列数": "各ワーカーがキューのメッセージを同時に処理する数です。稼働中でも運用者が変更できます。";
    possibly_billed_twice, "concepts.md",
        "Possibly billed twice": "A call to a model whose response was lost: it may have been billed, and its question was asked again. Repeating it harms nothing, so Ichido repeats it and counts it.",
        "二重課金の可能性": "応答が失われたモデル呼び出しで、課金された可能性があり、同じ質問をもう一度行いました。繰り返しても害はないため、再実行して数えます。";
    failure_group, "guides/dead-letters.md",
        "Failure group": "The dead and parked messages of one queue with the same error; numbers, ids, times and quoted text do not count. A worker updates the groups every few seconds.",
        "失敗グループ": "同じキューで同じエラーになったデッドと保留のメッセージです(数値、ID、時刻、引用部分の違いは無視)。ワーカーが数秒ごとに更新します。";
    canary, "guides/dead-letters.md",
        "Canary": "A bulk operation that sends 1 % of the messages first (at least one), then 5 %, 25 % and the rest, each after the messages before it were sent. It halts if too many fail, so a cause that was not repaired costs little.",
        "カナリア": "まず 1 %(1 件以上)、次に 5 %、25 %、残りの順に、前の段階の送信を確認しながら進む一括操作です。失敗が多いと止まるので、原因が直っていなくても影響は小さく済みます。";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_term_has_two_sentences_and_a_guide() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/");
        for (language, end) in [(Language::English, ". "), (Language::Japanese, "。")] {
            for term in Terms::of(language).all() {
                assert_eq!(format!("{} ", term.text).matches(end).count(), 2, "{}: {}", term.id, term.text);
                assert!(std::path::Path::new(&format!("{docs}{}", term.guide)).exists(), "{}", term.guide);
            }
        }
    }
}
