//! The texts of the pages of keys, of the audit trail and of boundary files, and of what they add to the page of a message.
//!
//! Guarantee: that of `texts`.

use super::language::Language;
use super::texts::texts;

texts! {
    keys: "Keys", "キー";
    audit: "Audit trail", "監査記録";
    boundaries: "Boundaries", "境界";
    key_or_hash: "Key or hash from a log", "冪等キーかハッシュ";
    look_up: "Look up", "検索";
    look_up_hint: "Finds all requests and messages of a key, whatever their operation, queue and identity. A hash has 16 hexadecimal digits.", "操作・キュー・識別子を問わず、キーのリクエストとメッセージを探します。ハッシュは 16 桁の 16 進数です。";
    key_wrong: "This is not a key: {why}", "キーとして使えません: {why}";
    found: "What was done under this key", "このキーで行われたこと";
    found_none: "Nothing here has this key: it was never used here, or its record has expired and was deleted.", "このキーの記録はありません。使われたことがないか、期限切れで削除されています。";
    found_more: "There may be more. Name the operation and the identity with “ichido keys find”.", "ほかにもある可能性があります。ichido keys find で操作と識別子を指定してください。";
    found_since: "Compared the newest {n} messages, back to {when}. For older ones use the key itself.", "新しい順に {n} 件({when} まで)を照合しました。それより古いものはキーで検索してください。";
    unknown_title: "Keys of unknown outcome", "結果が不明なキー";
    unknown_hint: "A request ran under each of them, and nobody knows whether it took effect. Oldest first.", "それぞれのキーでリクエストが実行されましたが、効果の有無が分かっていません。古い順です。";
    parked_wait: "Parked messages that wait for a decision: {n}", "判断待ちの保留メッセージ: {n} 件";
    unknown_none: "No key waits for a decision. A key appears here if its request may have taken effect, but got no clear response.", "判断待ちのキーはありません。効果があったかもしれないのに応答がはっきりしなかったキーが、ここに表示されます。";
    all_keys: "« All keys of unknown outcome", "« 結果が不明なキーの一覧";
    kind_request: "Request", "リクエスト";
    kind_message: "Message", "メッセージ";
    operation: "Operation", "操作名";
    subject: "Operation or queue", "操作名・キュー";
    first_seen: "First seen", "初回";
    state_claimed: "in flight", "実行中";
    state_unknown: "unknown", "不明";
    state_applied: "applied", "適用済み";
    state_refused: "refused", "拒否済み";
    because_stored: "The work ended, and its response is stored.", "処理が終わり、応答が保存されています。";
    because_refused: "The work refused the request. Its response is the proof.", "処理がリクエストを拒否しました。応答がその証拠です。";
    because_gave_up: "{who} decided that it cannot be found out.", "{who} が「確認できない」と判断しました。";
    because_running: "A request is running under this key.", "このキーのリクエストを実行中です。";
    because_lapsed: "The lease of the request has expired: its process is slow or gone, and the work may have taken effect.", "リクエストのリースが切れました。処理が遅れているか停止しており、効果があった可能性があります。";
    because_lost: "A request ran and got no clear response, or its process died: the work may have taken effect.", "リクエストの応答がはっきりしないか、途中でプロセスが停止し、効果があった可能性があります。";
    next_replays: "Next: each repetition of the request gets the stored response, until {when}. After that the key is new.", "次: 同じリクエストには {when} まで保存済みの応答を返します。その後、キーは新規として扱われます。";
    next_replays_held: "Next: each repetition of the request gets the stored response, as long as the request's message waits.", "次: リクエストのメッセージが待機している間、同じリクエストには保存済みの応答を返します。";
    next_request_ends: "Next: the request ends. If its lease is not renewed after {when}, its outcome counts as unknown.", "次: リクエストの終了を待ちます。リースが {when} 以降に更新されなければ、結果は不明として扱われます。";
    next_key_decide: "Next: a person decides. If the operation can ask the receiver, the next request with this key does so first.", "次: 人の判断を待ちます。操作が受信側に照会できる場合は、次のリクエストがまず照会します。";
    next_key_not_done_from: "“Not done” can be decided from {when}: until then the call may still arrive.", "「未実行」の判断は {when} からできます。それまでは呼び出しが届く可能性があります。";
    first_claimed: "First claimed", "最初の確保";
    last_claimed: "Last claimed", "最後の確保";
    settled_at: "Stored", "保存";
    expires: "Expires", "期限";
    key_hash: "Hash in logs", "ログのハッシュ";
    enqueued: "Enqueued message", "投入したメッセージ";
    asked_at: "Receiver asked", "受信側への照会";
    replay_title: "The stored response, as it is replayed", "保存された応答(再生される内容)";
    replay_hint: "A replay sends exactly this, and a marker header such as Idempotency-Replayed: true. A secret header is sent, but not shown.", "再生時はこのままの内容に、Idempotency-Replayed: true などの目印のヘッダーが付きます。秘密のヘッダーは送られますが表示しません。";
    replay_viewer: "Only operators see its headers and its body.", "ヘッダーと本文を見られるのは運用者だけです。";
    replay_no_body: "The body was not stored: it was streamed or too large. Repetitions get an error that says so.", "本文は保存されていません(ストリームか、大きすぎたため)。再送にはその旨のエラーを返します。";
    replay_large: "The body is too large to show: {bytes}.", "本文が大きすぎて表示できません: {bytes}。";
    replay_binary: "The body is not text: {bytes}.", "本文はテキストではありません: {bytes}。";
    decide_key_effect_local: "First look at the receiver: did the effect happen? Nobody signs in here, so your decision is recorded in the audit trail as “{who}”. It cannot be taken back.", "まず受信側で効果を確認してください。サインインがないため、判断は {who} として監査記録に残り、取り消せません。";
    decide_key_effect: "First look at the receiver: did the effect happen? Your decision is recorded in the audit trail with your name, and cannot be taken back.", "まず受信側で効果を確認してください。判断はあなたの名前とともに監査記録に残り、取り消せません。";
    decide_key_done: "It was done. Each repetition of the request gets 200, and the work does not run again.", "実行済み。同じリクエストには 200 を返し、処理は二度と行いません。";
    decide_key_not_done: "It was not done. The key is released, and the next request with it runs the work.", "未実行。キーを解放し、次のリクエストで処理を行います。";
    decide_key_give_up: "It cannot be found out. The key is refused for good: each repetition gets an error, and the work does not run again.", "確認できない。キーは恒久的に拒否され、同じリクエストにはエラーを返し、処理は行いません。";
    did_key_done: "The key is applied: repetitions get 200.", "適用済みにしました。同じリクエストには 200 を返します。";
    did_key_not_done: "The key is released: the next request with it runs the work.", "キーを解放しました。次のリクエストで処理を行います。";
    did_key_give_up: "The key is refused for good.", "キーを恒久的に拒否しました。";

    next_asked: "Next: a worker asks the receiver by key, again every {time}. A person can decide as well.", "次: ワーカーが受信側にキーで照会します({time} ごと)。人が判断することもできます。";
    next_asked_again: "Asked the receiver by key at {asked}; it did not know. Next: a worker asks again at about {when}, every {time}. A person can decide as well.", "受信側に {asked} にキーで照会しましたが、判明していません。次: {when} ごろワーカーが再び照会します({time} ごと)。人が判断することもできます。";
    next_asked_later: "Next: a worker asks the receiver by key from {when} on, when the call cannot arrive any more, and again every {time}. A person can decide as well.", "次: 呼び出しが届く可能性がなくなる {when} から、ワーカーが受信側にキーで照会します({time} ごと)。人が判断することもできます。";
    idle_for: "{time} without an event", "{time} の間、動きなし";
    earlier_entries: "Earlier entries", "これより前の経過";
    newest_entries: "Newest entries", "最新の経過";
    step_key_claimed: "Key claimed by {name}", "{name} がキーを確保";
    step_key_taken_over: "Key taken over by another request of {name}", "{name} の別のリクエストがキーを引き継ぎ";
    step_key_unknown: "Outcome of the key became unknown ({name})", "キーの結果が不明に({name})";
    step_key_settled: "Response stored under the key ({name})", "キーの応答を保存({name})";
    step_key_reconciled: "Receiver asked by key ({name})", "受信側にキーで照会({name})";
    replays_of_key: "Sent again {n}×: got the stored response ({name})", "再リクエスト {n} 回: 保存済みの応答を返却({name})";
    replays_of_message: "Sent again {n}×: nothing new was stored", "再リクエスト {n} 回: 新たな保存なし";
    first_replay: "First", "初回";
    step_key_decided: "A person decided about the key ({name})", "人がキーについて判断({name})";
    in_audit: "Audit trail of this message", "このメッセージの監査記録";
    curl_redacted: "Some values are redacted. Put in the real ones: a different request under the same key is a conflict.", "一部の値は伏せてあります。実際の値に置き換えてください。同じキーで内容が違うと競合になります。";

    edit: "Edit and retry…", "編集して再試行…";
    edit_title: "Edit and retry", "編集して再試行";
    edit_effect: "A new message with this request is enqueued under the new key, and the dead one is closed as replaced. The two refer to each other. To the receiver it is a new action.", "新しいキーでこの内容の新しいメッセージを投入し、デッドのものは置換済みとして閉じます。両者は互いを参照します。受信側には新しい操作として届きます。";
    edit_request: "Request", "リクエスト";
    edit_redacted: "A value may stay [redacted]: it is then the old request's value.", "[redacted] のままの値には、元のリクエストの値が使われます。";
    edit_key: "New idempotency key, never used before", "新しい冪等キー(未使用のもの)";
    edit_type: "Content type", "コンテンツタイプ";
    edit_button: "Enqueue the new message, close the old one", "新しいメッセージを投入し、元のものを閉じる";
    edit_back: "Back to the message", "メッセージへ戻る";
    edit_not_text: "This request cannot be edited here: it is not text, or larger than {bytes}. Send the new one with POST {path}.", "テキストでないか {bytes} を超えるため、ここでは編集できません。新しい内容を POST {path} で送ってください。";
    did_replace: "Enqueued. It replaces the dead message, which is closed.", "投入しました。元のデッドレターは置換済みとして閉じました。";

    audit_hint: "Who did what, to what, newest first. Workers' attempts are in the timeline of their message.", "誰が何に何をしたかの記録です(新しい順)。ワーカーの試行は各メッセージの経過にあります。";
    audit_seal_hint: "A sealed entry cannot be changed or removed unnoticed. “ichido audit verify” checks the whole trail.", "封印された記録は、気付かれずに変更や削除ができません。ichido audit verify で全体を検証できます。";
    audit_none: "Nobody has done anything yet. What people do, such as pausing a queue or deciding a message, is listed here.", "まだ操作はありません。キューの停止やメッセージの判断など、人の操作がここに記録されます。";
    audit_none_match: "No entry matches these filters. Entries about a message are deleted with it.", "条件に合う記録はありません。メッセージの記録はメッセージとともに削除されます。";
    audit_short: "The search stopped at its limit; older entries are on the next page.", "検索の上限に達しました。それより古いものは次のページです。";
    actor: "Who", "実行者";
    kind: "What", "操作";
    about: "About", "対象";
    subject_id: "Subject's id", "対象の ID";
    change: "Before and after", "変更前と変更後";
    detail: "Detail", "詳細";
    seal: "Seal", "封印";
    at: "When", "日時";
    the_system: "the system", "システム";
    sealed_by: "sealed, no. {n}", "封印済み(番号 {n})";
    sealed: "sealed", "封印済み";
    not_sealed: "waits for a seal", "封印待ち";
    all_of_subject: "all entries", "すべての記録";
    no_filter: "Show all", "すべて表示";
    before: "before", "変更前";
    after: "after", "変更後";

    boundaries_hint: "The key's way from the browser to the adapter, as the boundary files describe it, checked with the rules of “ichido check”.", "境界ファイルに書かれた、ブラウザーからアダプターまでのキーの経路です。ichido check の規則で検査しています。";
    boundaries_none: "No boundary file is named. A boundary file says what each component does with idempotency keys. Write a starting set with “ichido check --init”, name the files in ichido.toml, and restart the server:", "境界ファイルが指定されていません。境界ファイルには、各コンポーネントがキーをどう扱うかを書きます。ichido check --init でひな型を作り、ichido.toml で指定して再起動してください:";
    chain: "From browser to adapter", "ブラウザーからアダプターまで";
    no_findings: "No finding: the files keep all rules.", "指摘はありません。すべての規則を満たしています。";
    one_finding: "1 finding", "指摘 1 件";
    many_findings: "{n} findings", "指摘 {n} 件";
    findings: "Findings", "指摘";
    severity_error: "error", "エラー";
    severity_warning: "warning", "警告";
    how_to_fix: "How to fix it", "直し方";
    why_rule: "Why", "理由";
    party_browser: "Browser", "ブラウザー";
    party_bff: "BFF", "BFF(ブラウザー向けサーバー)";
    party_gateway: "Gateway", "ゲートウェイ";
    party_adapter: "Adapter", "アダプター";
    party_service: "Service", "サービス";
    mode_validate_only: "checks the key and passes it on", "キーを検査して渡す";
    mode_enabled: "completes idempotency: stores and replays", "冪等性を完結: 保存と再生";
    mode_disabled: "ignores the key", "キーを無視";
    mode_none: "does not say what it does with the key", "キーの扱いが未記載";
    no_file: "no file about this boundary", "この境界のファイルなし";
    files: "Files", "ファイル";
    rule_of_check: "A rule of “ichido check”. Its text is in English.", "ichido check の規則です(本文は英語)。";
}

#[cfg(test)]
mod tests {
    use super::super::texts::check_both_languages;
    use super::*;

    #[test]
    fn texts_of_keys_are_in_both_languages() {
        check_both_languages(ALL, &[]);
    }
}
