//! The texts of the dashboard, in English and Japanese.
//!
//! Guarantee: every text exists in both languages, because a language is a struct whose fields are the texts. Both have the same
//! placeholders, such as `{n}`.

use super::language::Language;

macro_rules! texts {
    ($($name:ident: $english:literal, $japanese:literal;)+) => {
        /// The texts of one language.
        pub(super) struct Texts {
            $(pub(super) $name: &'static str,)+
        }

        static ENGLISH: Texts = Texts { $($name: $english,)+ };
        static JAPANESE: Texts = Texts { $($name: $japanese,)+ };

        #[cfg(test)]
        const ALL: &[(&str, &str, &str)] = &[$((stringify!($name), $english, $japanese),)+];

        impl Texts {
            /// Returns the texts of a language.
            pub(super) fn of(language: Language) -> &'static Self {
                match language {
                    Language::English => &ENGLISH,
                    Language::Japanese => &JAPANESE,
                }
            }
        }
    };
}
/// For the texts of other pages.
pub(super) use texts;

/// Returns a text of the API with quotation marks around its code: people see no Markdown.
pub(super) fn without_backticks(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`') {
        let Some((code, after)) = after.split_once('`') else { break };
        plain.extend([before, "“", code, "”"]);
        rest = after;
    }
    plain.push_str(rest);
    plain
}

/// Returns a text with its placeholders replaced.
pub(super) fn fill(text: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let Some((name, after)) = after.split_once('}') else { break };
        let value = values.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value);
        filled.push_str(value);
        rest = after;
    }
    filled.push_str(rest);
    filled
}

texts! {
    code: "en", "ja";
    other_code: "ja", "en";
    other_name: "日本語", "English";
    skip: "Skip to content", "本文へ移動";
    navigation: "Pages", "ページ";
    overview: "Overview", "概要";
    messages: "Messages", "メッセージ";
    message: "Message", "メッセージ";
    dead_letters: "Dead letters", "デッドレター";
    queues: "Queues", "キュー";
    queue: "Queue", "キュー";
    alerts: "Alerts", "アラート";
    nodes: "Nodes", "ノード";
    node: "Node", "ノード";
    help: "Help", "ヘルプ";
    error_codes: "Error codes", "エラーコード";
    keys_hint: "Press ? for keys", "? でキー操作を表示";
    sign_in: "Sign in", "サインイン";
    sign_out: "Sign out", "サインアウト";
    token: "API token", "API トークン";
    token_hint: "Use a viewer's, an operator's or an admin's token. Create one on the server's store:", "viewer、operator、admin のいずれかのトークンを使います。サーバーのストアで作成できます:";
    token_wrong: "This token is not valid: it is malformed, unknown, revoked or expired.", "このトークンは使えません。形式の誤り、未登録、失効、期限切れのいずれかです。";
    token_producer: "A producer's token sends messages and cannot open the dashboard. Use a viewer's, an operator's or an admin's token.", "producer のトークンはメッセージの送信用で、ダッシュボードは開けません。viewer、operator、admin のトークンを使ってください。";
    plain_http: "This page was loaded over plain HTTP from another machine, so everybody on the network could read your token. Open it over HTTPS, or through a tunnel:", "このページは別のマシンから暗号化されない HTTP で読み込まれたため、トークンをネットワーク上で盗み見られるおそれがあります。HTTPS で開くか、トンネルを使ってください:";
    origin_wrong: "The request did not come from this dashboard, so nothing was done. Open the page again, and repeat the action there.", "ダッシュボード以外から送られたリクエストのため、何も行いませんでした。ページを開き直して操作してください。";
    open_note: "No token exists, so everybody on this machine may do everything here.", "トークンが一つもないため、このマシンの利用者は誰でもすべての操作ができます。";
    to_overview: "To the overview", "概要へ";
    failure: "This did not work", "処理できませんでした";
    copied: "Copied", "コピーしました";
    copy: "Copy", "コピー";
    download: "Download", "ダウンロード";
    more: "More", "詳しく";
    what_is: "What is:", "用語:";
    all_messages: "All messages", "全メッセージ";
    needs_title: "What needs you, most urgent first", "対応が必要なもの(緊急順)";
    nothing_needs: "Nothing needs you now.", "今、対応が必要なものはありません。";
    nothing_needs_detail: "Failures, parked messages and alerts appear here.", "失敗、保留中のメッセージ、アラートがここに表示されます。";
    healthy_idle: "Healthy and idle: nothing waits.", "正常(アイドル): 処理待ちはありません。";
    one_needs_you: "1 thing needs you.", "対応が必要なものが 1 件あります。";
    many_need_you: "{n} things need you.", "対応が必要なものが {n} 件あります。";
    is_new: "Ready for the first message.", "最初のメッセージを受け付けられます。";
    nodes_alive: "Nodes alive: {alive}. Sent so far: {sent}.", "稼働中のノード: {alive}。送信済み: {sent}。";
    nobody_works: "No worker is running: nothing is delivered.", "ワーカーが動いていません。配信は止まっています。";
    nobody_works_detail: "Messages are still accepted and wait. Start “ichido serve” or “ichido worker” on this store.", "メッセージの受付は続き、待機します。このストアで ichido serve か ichido worker を起動してください。";
    parked_need: "Parked messages, of unknown effect: {n}", "保留中のメッセージ(効果が不明): {n} 件";
    parked_need_queue: "Queue {queue}", "キュー {queue}";
    parked_need_since: "the oldest {since}", "最も古いもの: {since}";
    parked_need_cause: "{cause}. {detail}", "{cause}。{detail}";
    parked_need_detail: "Nobody knows whether they took effect, and sending them again could apply them twice. Find out, then decide.", "効果があったか分からず、再送すると二重になるおそれがあります。確認して判断してください。";
    dead_need: "Dead letters: {n}", "デッドレター: {n} 件";
    dead_need_detail: "Ichido gave up on them. Read why, repair the cause, then requeue or discard them.", "配信を断念したメッセージです。原因を確認して直し、再投入または破棄してください。";
    keys_need: "Requests of unknown outcome: {n}", "結果が不明なリクエスト: {n} 件";
    keys_need_detail: "Their keys stay blocked until somebody decides.", "判断するまでキーは使えません。";
    unserved_need: "Queue {queue}: nobody serves it", "キュー {queue}: 担当するワーカーがありません";
    unserved_need_detail: "Waiting: {n}. No worker has this queue in its configuration.", "{n} 件が待っていますが、このキューを設定したワーカーがありません。";
    paused_need: "Queue {queue} is paused. Waiting: {n}", "キュー {queue} は停止中で、{n} 件が待っています";
    paused_by: "by {who}, {when}", "{who} が{when}に停止";
    condition: "Condition", "状態";
    served: "served", "配信中";
    idle: "idle", "アイドル";
    paused: "paused", "停止中";
    unserved: "nobody serves it", "担当なし";
    waiting: "Waiting", "待機中";
    retrying: "Retrying", "再試行待ち";
    oldest: "Oldest", "最長の待ち";
    pause: "Pause", "停止";
    resume: "Resume", "再開";
    pause_hint: "A paused queue accepts messages and sends none, on all nodes. Messages in flight finish.", "停止したキューは全ノードで受付だけを続け、送信しません。送信中のものは完了します。";
    resume_hint: "Sends its messages again, on all nodes.", "全ノードで送信を再開します。";
    did_pause: "The queue is paused on all nodes.", "キューを全ノードで停止しました。";
    did_resume: "The queue sends its messages again.", "キューの送信を再開しました。";
    no_queues: "No queue yet. Queues come from the configuration (“ichido config init” writes one) or from the first message.", "キューはまだありません。設定(ichido config init で作成)か最初のメッセージで作られます。";
    first_message: "Send a first message", "最初のメッセージを送る";
    first_message_hint: "Send it twice: the second response is a replay, and the message takes effect once.", "2 回送ってみてください。2 回目は再生された応答になり、効果は一度だけです。";
    state: "State", "状態";
    state_queued: "queued", "待機";
    state_sending: "sending", "送信中";
    state_failed: "failed", "再試行待ち";
    state_parked: "parked", "保留";
    state_sent: "sent", "送信済み";
    state_dead: "dead", "デッド";
    state_cancelled: "cancelled", "取消済み";
    about_queued: "It waits for a worker, or for the time of its first attempt.", "ワーカーか、最初の試行の時刻を待っています。";
    about_sending: "A worker has claimed it and calls the receiver.", "ワーカーが受け持ち、受信側を呼び出しています。";
    about_failed: "An attempt failed, and the next one is scheduled.", "試行が失敗し、次の試行が予定されています。";
    about_parked: "Nobody knows whether it took effect, so a person decides.", "効果があったか分からないため、人の判断を待っています。";
    about_sent: "It took effect, once.", "効果がありました(一度だけ)。";
    about_dead: "Ichido gave up on it. It is kept until somebody requeues or discards it.", "配信を断念しました。再投入か破棄まで保存されます。";
    about_cancelled: "Somebody cancelled it before it was sent.", "送信前に取り消されました。";
    retries_at: "retries {when}", "再試行 {when}";
    first_at: "first attempt {when}", "最初の試行 {when}";
    filter: "Filter", "絞り込み";
    search: "Search", "検索";
    filter_hint: "Type an id, the first digits of one, a key or a receipt; or filters: queue:, state:, code:, key:, identity:, trace:, receipt:, since:, before:, payload./field:.", "ID(先頭の数桁でも可)、キー、受領番号、または queue:、state:、code:、key:、identity:、trace:、receipt:、since:、before:、payload./項目: で絞り込みます。";
    filter_unknown: "Unknown filter {name}. Known filters: {names}.", "{name} という絞り込みはありません。使えるもの: {names}。";
    filter_repeated: "The filter {name} is repeated; use it once.", "絞り込み {name} が重複しています。";
    alert_opened: "Numbers of {at}, when it opened", "数値は発生時({at})のもの";
    filter_time: "{term} is not a time. Write it like {name}:2026-11-18T09:30:00Z.", "{term} は時刻ではありません。{name}:2026-11-18T09:30:00Z のように入力してください。";
    name_unknown: "Nothing was done: the request names {name}, which is not known here. Known names: {names}.", "何も行いませんでした: {name} という名前はここでは使えません。使えるもの: {names}。";
    name_repeated: "Nothing was done: the request names {name} more than once. Name it once.", "何も行いませんでした: {name} が重複しています。一つだけ指定してください。";
    filter_two: "Use one id or key at a time; put a value with spaces in double quotes.", "ID かキーは一つだけ指定してください。空白を含む値は二重引用符で囲みます。";
    chip_all: "All", "すべて";
    key: "Idempotency key", "冪等キー";
    attempts: "Attempts", "試行";
    last_error: "Last error", "最後のエラー";
    accepted_at: "Accepted", "受付";
    look_up_key: "Look it up under Keys", "「キー」で調べる";
    none_match: "No message matches this filter. Sent and cancelled messages are deleted after their retention.", "条件に合うメッセージはありません。送信済みと取消済みは保存期間の後に削除されます。";
    none_yet: "No message yet. Send one with POST /v1/queues/{queue}/messages and an Idempotency-Key.", "メッセージはまだありません。POST /v1/queues/{queue}/messages に Idempotency-Key を付けて送ってください。";
    searched_back_to: "Searched back to {when}; older messages are on the next page.", "{when} まで検索しました。それより古いものは次のページです。";
    paging: "Paging", "ページ送り";
    newest: "« Newest", "« 最新";
    older: "Older ›", "以前 ›";
    was_it_done: "Was it done?", "実行されましたか?";
    yes: "Yes", "はい";
    no: "No", "いいえ";
    not_yet: "No, not yet", "いいえ、まだです";
    not_known: "Not known yet", "まだ分かりません";
    because_accepted: "The receiver accepted attempt {n}.", "試行 {n} を受信側が受け付けました。";
    because_processed: "The receiver said at attempt {n} that it had already processed this key.", "試行 {n} で受信側が、このキーは処理済みと回答しました。";
    because_late: "A response that arrived late proves attempt {n}.", "遅れて届いた応答が試行 {n} の実行を証明しています。";
    because_receiver_yes: "The receiver was asked by key, and said that it was done.", "受信側にキーで照会し、実行済みとの回答を得ました。";
    because_receiver_no: "The receiver was asked by key, and said that it was not done.", "受信側にキーで照会し、未実行との回答を得ました。";
    because_person_yes: "{who} decided that it was done.", "{who} が実行済みと判断しました。";
    because_person_no: "{who} decided that it was not done.", "{who} が未実行と判断しました。";
    because_never_called: "No worker ever called the receiver.", "受信側はまだ一度も呼び出されていません。";
    because_no_effect: "Every call ended, and none took effect.", "すべての呼び出しが終わり、どれも効果がありませんでした。";
    because_in_flight: "Attempt {n} is in flight.", "試行 {n} を送信中です。";
    because_no_answer: "Attempt {n} got no clear response: the call may have taken effect.", "試行 {n} の応答がはっきりせず、効果があった可能性があります。";
    because_worker_died: "The worker died during attempt {n}: the call may have taken effect.", "試行 {n} の途中でワーカーが停止し、効果があった可能性があります。";
    a_person: "a person", "担当者";
    next_when_free: "Next: a worker takes it as soon as one is free.", "次: ワーカーが空きしだい送信します。";
    next_attempt_at: "Next: attempt {n} of {max}, {when}.", "次: 試行 {n} / {max}({when})。";
    next_queue_paused: "Next: nothing, the queue is paused by {who} since {when}. It is sent once somebody resumes the queue.", "次: キューが停止中です({who} が {when} に停止)。再開後に送信します。";
    next_destination_paused: "Next: nothing, the destination {name} is paused by {who} since {when}. It is sent once somebody resumes the destination.", "次: 宛先 {name} が停止中です({who} が {when} に停止)。再開後に送信します。";
    next_attempt_ends: "Next: the attempt ends, or its node is declared dead and another takes over.", "次: 試行の終了、またはノード停止時は別のノードが引き継ぎます。";
    next_decide: "Next: nothing, until a person decides. Search the receiver for the key that was sent to it.", "次: 人が判断するまで何も起こりません。受信側をキーで確認してください。";
    next_decide_later: "Next: a person decides. The call may still arrive until {when}; “not done” can be decided after that.", "次: 人の判断を待ちます。呼び出しは {when} まで届く可能性があり、「未実行」の判断はその後にできます。";
    next_decide_or_requeue: "Next: nothing happens automatically. The settings of this queue allow a requeue: it sends the same key, so a receiver that deduplicates by key does it once. Or look at the receiver, and decide.", "次: 自動では何も起こりません。このキューの設定では再投入できます。同じキーで送るため、キーで重複を除く受信側では一度だけ実行されます。または受信側を確認して判断してください。";
    next_requeue: "Next: nothing happens automatically. Repair the cause, then requeue it.", "次: 自動では何も起こりません。原因を直してから再投入してください。";
    next_nothing: "Next: nothing. Ichido does not send it again.", "次: 何も起こりません。再送は行いません。";
    evidence: "Evidence", "根拠";
    receipt: "Receipt", "受領番号";
    known_since: "Known since", "判明時刻";
    unknown_since: "Unknown since", "不明になった時刻";
    receiver: "Receiver", "受信側";
    effect: "Effect", "効果";
    effect_done: "done", "あり";
    effect_not_done: "not done", "なし";
    effect_unknown: "unknown", "不明";
    effect_in_flight: "in flight", "送信中";
    response_status: "Response", "応答";
    result_digest: "Result digest", "結果のダイジェスト";
    outbound_key: "Key sent to the receiver", "受信側に送ったキー";
    held_by: "Held by", "担当ノード";
    lease_until: "Lease until", "リース期限";
    in_flight_until: "May still arrive until", "到着の可能性がある期限";
    of_max: "{n} of {max}", "{n} / {max}";
    what_to_press: "What to press", "操作";
    action: "Action", "操作";
    reason_given: "Reason of the decision", "判断の理由";
    reason: "Reason, for the audit trail", "理由(監査記録に残ります)";
    requeue: "Requeue…", "再投入…";
    requeue_effect: "The message is sent again with the same body and key, and its attempts start at 0. Ichido refuses if it could take effect twice.", "同じ本文とキーでもう一度送信し、試行回数は 0 に戻ります。二重の効果になるおそれがあれば拒否されます。";
    requeue_button: "Requeue this message", "このメッセージを再投入";
    retry_now: "Retry now…", "今すぐ再試行…";
    retry_now_effect: "The next attempt is due at once instead of at its scheduled time. Its attempts still count.", "予定の時刻を待たずに次の試行を行います。試行回数はそのままです。";
    retry_now_button: "Retry this message now", "今すぐ再試行する";
    cancel: "Cancel…", "取消…";
    cancel_effect: "A waiting message is never sent. One in flight is asked to stop, and is cancelled only if it had no effect.", "待機中のものは送信されません。送信中のものには停止を求め、効果がなかった場合だけ取り消されます。";
    cancel_button: "Cancel this message", "このメッセージを取り消す";
    discard: "Discard…", "破棄…";
    discard_effect: "The message stays dead and is kept, but needs no more attention. Nothing is sent.", "デッドのまま保存され、対応済みになります。何も送信しません。";
    discard_button: "Discard this message", "このメッセージを破棄";
    decide: "Decide…", "判断…";
    decide_effect: "First look at the receiver: did the effect happen? Your decision is recorded with your name.", "まず受信側で効果を確認してください。判断はあなたの名前とともに記録されます。";
    decision: "What did you find?", "確認の結果";
    decide_effect_local: "First look at the receiver: did the effect happen? Nobody signs in here, so your decision is recorded as “{who}”.", "まず受信側で効果を確認してください。サインインがないため、判断は {who} として記録されます。";
    decide_done: "It was done. This message becomes sent.", "実行済み。このメッセージは送信済みになります。";
    decide_done_dead: "It was done. The message stays dead.", "実行済み。デッドのままです。";
    decide_not_done: "It was not done. This message is sent again.", "未実行。このメッセージは再送されます。";
    decide_not_done_dead: "It was not done. The message stays dead, and can then be requeued.", "未実行。デッドのままで、再投入できるようになります。";
    decide_give_up: "It cannot be found out. This message becomes dead.", "確認できない。このメッセージはデッドになります。";
    decide_button: "Record this decision", "判断を記録";
    did_requeue: "Requeued.", "再投入しました。";
    did_cancel: "Cancelled, or its worker was asked to stop.", "取り消しました。送信中の場合はワーカーに停止を求めました。";
    did_discard: "Discarded. It is kept, and needs no more attention.", "破棄しました。保存されますが、対応は不要です。";
    did_decide: "The decision is recorded.", "判断を記録しました。";
    reason_needed: "Nothing was changed: a discard needs a reason. Write why the message needs no more attention.", "変更していません: 破棄には理由が必要です。対応が不要な理由を入力してください。";
    discarded_before: "Nothing was changed: the message was discarded before. Your reason is not recorded.", "変更していません: すでに破棄されています。入力した理由は記録していません。";
    not_done_notice: "Nothing was changed: {why}", "変更していません: {why}";
    timeline: "Timeline", "経過";
    hop: "Passed {name}", "{name} を通過";
    attempt_one: "Attempt {n}: {outcome}", "試行 {n}: {outcome}";
    attempt_many: "Attempts {n} to {last}, all: {outcome}", "試行 {n}〜{last}(すべて同じ): {outcome}";
    attempt_again_one: "Attempt {n} after {what}: {outcome}", "{what}後の試行 {n}: {outcome}";
    attempt_again_many: "Attempts {n} to {last} after {what}, all: {outcome}", "{what}後の試行 {n}〜{last}(すべて同じ): {outcome}";
    the_requeue: "the requeue", "再投入";
    the_decision: "the decision", "判断";
    outcome_unclear: "no clear response", "応答が不明確";
    outcome_succeeded: "accepted", "受付";
    outcome_failed: "failed", "失敗";
    outcome_given_back: "given back without a call", "呼び出さずに返却";
    outcome_stopped: "stopped on request", "要求により停止";
    outcome_worker_died: "its worker died", "ワーカーが停止";
    outcome_in_flight: "in flight", "送信中";
    step_accepted: "Accepted: stored durably", "受付: 永続化しました";
    step_spent: "No attempts left: dead letter", "試行回数の上限: デッドレター";
    step_late_success: "A late response proved that it was done", "遅れて届いた応答で実行済みと判明";
    step_reconciled: "The receiver was asked by key", "受信側にキーで照会";
    step_decided: "A person decided", "人が判断";
    step_requeued: "Requeued", "再投入";
    step_discarded: "Discarded", "破棄";
    step_replaced: "Replaced by a new message", "新しいメッセージに置換";
    step_cancelled: "Cancelled", "取消";
    fence: "fence", "フェンス";
    took: "took", "所要";
    until: "until", "終了";
    by: "by", "実行者";
    details: "Details", "詳細";
    identity: "Identity", "識別子";
    priority: "Priority", "優先度";
    trace_id: "Trace id", "トレース ID";
    digest: "Request digest", "リクエストのダイジェスト";
    replaces: "Replaces", "置換元";
    replaced_by: "Replaced by", "置換先";
    updated_at: "Last change", "最終更新";
    cancel_requested: "Cancellation requested", "取消の要求";
    payload: "Request", "リクエスト";
    payload_note: "{type}, {bytes}", "{type}、{bytes}";
    payload_cut: "{type}, {bytes}; the first {shown} are shown", "{type}、{bytes}(先頭 {shown} を表示)";
    payload_binary: "Not text. Download it to see its bytes.", "テキストではありません。ダウンロードして確認してください。";
    response: "Response of the receiver", "受信側の応答";
    response_not_kept: "It was not kept: it is larger than the queue's keep_response.", "キューの keep_response より大きいため保存されていません。";
    as_curl: "Repeat its request with curl", "同じリクエストを curl で送る";
    as_curl_hint: "The same key and request: Ichido replays its first response, and nothing takes effect twice.", "同じキーと内容なので最初の応答が再生され、二重の効果にはなりません。";
    since: "Since", "発生";
    can_requeue: "Can be requeued", "再投入";
    letters_dead: "Dead", "デッド";
    letters_parked: "Parked: effect unknown", "保留: 効果不明";
    letters_discarded: "Discarded", "破棄済み";
    no_dead: "No dead letters. Messages that Ichido gives up on appear here, with the reason and what you can do.", "デッドレターはありません。配信を断念したメッセージが、理由と対処とともにここに表示されます。";
    no_parked: "Nothing is parked. A message is parked if nobody knows whether it took effect.", "保留はありません。効果があったか分からないメッセージがここに表示されます。";
    no_discarded: "Nothing was discarded.", "破棄されたものはありません。";
    no_alerts: "No alert has fired. Alerts watch dead letters, waiting times and failures, and tell a webhook or Slack.", "アラートは発生していません。デッドレター、待ち時間、失敗を監視し、Webhook や Slack に通知します。";
    firing: "firing", "発生中";
    resolved: "resolved", "解消";
    no_nodes: "No node has ever worked on this store.", "このストアで動いたノードはありません。";
    alive: "alive", "稼働中";
    gone: "gone", "停止";
    started: "Started", "起動";
    last_seen: "Last heartbeat", "最終確認";
    older_nodes: "Older nodes that are not shown:", "省略した古いノード:";
    words: "Words", "用語";
    guide: "Guide:", "ガイド:";
    states: "States of a message", "メッセージの状態";
    keyboard: "Keyboard", "キーボード";
    key_search: "go to the filter", "絞り込みへ移動";
    key_rows: "next and previous row", "次と前の行";
    key_help: "this list", "この一覧";
    ago_seconds: "{n} s ago", "{n} 秒前";
    ago_minutes: "{n} min ago", "{n} 分前";
    ago_hours: "{n} h ago", "{n} 時間前";
    ago_days: "{n} d ago", "{n} 日前";
    in_seconds: "in {n} s", "{n} 秒後";
    in_minutes: "in {n} min", "{n} 分後";
    in_hours: "in {n} h", "{n} 時間後";
    in_days: "in {n} d", "{n} 日後";
    role_viewer: "viewer", "閲覧者";
    role_operator: "operator", "運用者";
    role_admin: "admin", "管理者";
}

/// Checks that every text exists in both languages, with the same placeholders. Texts in `same` may be equal.
#[cfg(test)]
pub(super) fn check_both_languages(all: &[(&str, &str, &str)], same: &[&str]) {
    use std::collections::BTreeSet;
    fn placeholders(text: &str) -> BTreeSet<&str> {
        text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name).collect()
    }
    fn is_japanese(mark: char) -> bool {
        matches!(mark, '\u{3001}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}')
    }
    for (name, english, japanese) in all {
        assert!(!english.is_empty() && !japanese.is_empty(), "{name}");
        assert_eq!(placeholders(english), placeholders(japanese), "{name}");
        if !same.contains(name) {
            assert!(!english.contains(is_japanese), "{name}: {english}");
            assert!(japanese.contains(is_japanese), "{name}: {japanese}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts that are the same in both languages on purpose, or are in the other language.
    const SAME: [&str; 4] = ["code", "other_code", "other_name", "of_max"];

    #[test]
    fn both_languages_are_complete() {
        check_both_languages(ALL, &SAME);
    }

    #[test]
    fn code_is_quoted_instead_of_marked() {
        for (text, shown) in [
            (
                "a person must decide (`ichido keys unknown` lists them)",
                "a person must decide (“ichido keys unknown” lists them)",
            ),
            ("`a` and `b`", "“a” and “b”"),
            ("one ` alone", "one ` alone"),
            ("plain", "plain"),
        ] {
            assert_eq!(without_backticks(text), shown);
        }
    }

    #[test]
    fn placeholders_are_filled_once() {
        assert_eq!(fill("{a} and {b} and {a}", &[("a", "{b}"), ("b", "2")]), "{b} and 2 and {b}");
        assert_eq!(fill("plain", &[]), "plain");
        assert_eq!(fill("{missing}!", &[]), "!");
    }
}
