//! The texts of charts, and of the pages of queues, destinations and models.
//!
//! Guarantee: that of `texts`.

use super::language::Language;
use super::texts::texts;

texts! {
    over_time: "Over time", "推移";
    range: "Range", "期間";
    range_5m: "5 minutes", "5 分";
    range_1h: "1 hour", "1 時間";
    range_24h: "24 hours", "24 時間";
    range_note: "Counted since {from} UTC. Each bar is {step}; the last bar is still filling.", "{from}(UTC)以降の集計です。棒 1 本が {step}。最後の棒はまだ増えます。";
    step_60: "1 minute", "1 分";
    step_120: "2 minutes", "2 分";
    step_1800: "30 minutes", "30 分";
    accepted: "Accepted", "受付";
    sent: "Sent", "送信済み";
    retried: "Retried", "再試行";
    given_up: "Became dead + parked", "デッド + 保留になった数";
    calls: "Calls", "呼び出し";
    throttled: "Throttled (429)", "流量制限(429)";
    to_claim: "Wait before the first attempt", "最初の試行までの待ち";
    to_end: "Time until sent or dead", "送信済みかデッドになるまで";
    percentiles: "half within {p50}, 99 % within {p99}", "半数が {p50} 以内、99 % が {p99} 以内";
    no_times: "nothing to measure", "計測対象なし";
    peak: "highest bar: {peak}", "最大 {peak}";
    nothing_counted: "none", "なし";
    chart_label: "{title}: {total}; {peak}", "{title}: {total}、{peak}";
    numbers: "The same as numbers", "数値で見る";
    numbers_empty: "Nothing was counted in this time.", "この期間の記録はありません。";
    numbers_note: "Rows without counts are left out. Counts appear within a few seconds, and times are off by less than a quarter.", "値のない行は省略しています。反映まで数秒かかり、時間の誤差は 4 分の 1 未満です。";
    time: "Time (UTC)", "時刻(UTC)";
    claim_p50: "Wait p50", "待ち p50";
    end_p50: "Sent or dead p50", "完了 p50";
    a_second: "{n} a second", "毎秒 {n} 件";
    a_minute: "{n} a minute", "毎分 {n} 件";
    healthy: "Healthy: {rate}, oldest waiting {oldest}.", "正常: {rate}、最長の待ち {oldest}。";
    healthy_next: "Healthy: {rate}, nothing is late.", "正常: {rate}、遅れはありません。";
    waiting_detail: "Waiting: {waiting}. {rest}", "待機中: {waiting} 件。{rest}";
    stalled: "Nothing was sent for {minutes} minutes, although messages wait.", "待機中のメッセージがあるのに、{minutes} 分間何も送信されていません。";
    stalled_detail: "The oldest waits for {oldest}. See whether the destination is paused or down, and whether the workers of the queue are alive.", "最長の待ちは {oldest} です。宛先が停止・障害中でないか、キューのワーカーが稼働中かを確認してください。";
    sent_rate: "Sent a minute", "毎分の送信";
    messages_of: "Messages of {queue}", "{queue} のメッセージ";
    letters_of: "Dead letters of {queue}", "{queue} のデッドレター";
    parked_of: "Parked messages of {queue}", "{queue} の保留メッセージ";
    who_serves: "Who serves it", "担当";
    served_by: "A worker with this queue in its configuration:", "このキューを設定したワーカー:";
    served_by_none: "No worker has this queue in its configuration. Add it there, and start “ichido serve” or “ichido worker” on this store.", "このキューを設定したワーカーがありません。設定に追加し、このストアで ichido serve か ichido worker を起動してください。";
    max_attempts: "Maximum attempts", "試行の上限";
    guarantee: "Guarantee", "保証";
    guarantee_idempotent: "idempotent: a repeated call is harmless", "idempotent(繰り返しても無害)";
    guarantee_keyed: "keyed: the receiver deduplicates by key for {time}", "keyed(受信側が {time} の間キーで重複を除く)";
    guarantee_transactional: "transactional: in the caller's own database", "transactional(呼び出し側のデータベース内)";
    guarantee_none: "none: an unknown outcome is parked", "none(結果が不明なら保留)";
    parallelism: "Parallelism", "並列数";
    set_by: "set by {who}, {when}; the file says {file}", "{who} が {when} に設定(設定ファイルでは {file})";
    as_in_file: "as in the configuration file", "設定ファイルのとおり";
    not_in_file: "nothing, because this server does not serve it", "設定なし(このサーバーの担当外)";
    file_unlimited: "no limit", "制限なし";
    set_elsewhere: "Its own worker's configuration applies; this server does not serve it.", "担当ワーカーの設定に従います(このサーバーの担当外)。";
    change_parallelism: "Change the parallelism…", "並列数を変更…";
    parallelism_effect: "Every worker of the queue follows within about a second, without a restart. With more, more calls reach the destination at the same time; with fewer, those in flight finish first. Leave it empty to go back to the configuration file.", "このキューの全ワーカーが再起動なしで約 1 秒以内に従います。増やすと宛先への同時呼び出しが増え、減らすと送信中のものは先に完了します。空欄にすると設定ファイルの値に戻ります。";
    new_parallelism: "Messages at the same time, 1 to 100,000", "同時に処理する数(1〜100,000)";
    set_button: "Set for all workers", "全ワーカーに設定";
    pause_queue: "Pause this queue…", "このキューを停止…";
    resume_queue: "Resume this queue…", "このキューを再開…";
    field_missing: "Nothing was changed: the form has no field {name}. Leave it empty to use the configuration.", "変更していません: フォームに {name} がありません。設定値に戻す場合は空欄にしてください。";
    did_parallelism: "The parallelism is set. Workers follow within about a second.", "並列数を設定しました。約 1 秒以内に反映されます。";
    not_a_number: "“{text}” is not a number", "「{text}」は数値ではありません";
    destinations: "Destinations", "宛先";
    destination: "Destination", "宛先";
    no_destinations: "This server's configuration has no destination. A destination is where a queue's messages go; “ichido config init” writes an example.", "このサーバーの設定に宛先がありません。宛先はキューのメッセージの届け先です(ichido config init で例を作成)。";
    address: "Address", "アドレス";
    pace: "Pace", "速度";
    pace_unlimited: "no limit", "制限なし";
    pace_a_second: "at most {rate} calls a second", "毎秒最大 {rate} 回";
    slowed: "slowed down, because it refused calls", "拒否されたため自動で減速中";
    concurrency: "Concurrency", "同時呼び出し";
    concurrency_of: "at most {n} calls at the same time from each worker", "ワーカーごとに最大 {n} 件";
    concurrency_by_queue: "as its queues' parallelism allows", "キューの並列数による";
    circuit: "Circuit breaker", "サーキットブレーカー";
    circuit_closed: "closed: it is called", "閉: 呼び出し可";
    circuit_open: "open: it counts as down and is not called; the next probe is {until}", "開: 障害とみなし呼び出しを停止(次の試行は{until})";
    circuit_half_open: "half open: one call at a time probes it", "半開: 1 件ずつ試行中";
    asked_pause: "It asked for a pause, which ends {until}.", "宛先の要求により停止中です({until}に終了)。";
    not_paused: "not paused", "停止なし";
    up: "called", "呼び出し中";
    quiet: "idle", "アイドル";
    down: "counts as down", "障害とみなし停止";
    probing: "is probed", "試行中";
    slow: "slowed", "減速中";
    waits: "paused", "停止中";
    change_pace: "Change the pace…", "速度を変更…";
    pace_effect: "All workers together make at most so many calls a second, within a second from now. More messages wait if it is too low; the destination may refuse calls if it is too high. Leave it empty to go back to the configuration file.", "1 秒以内に、全ワーカー合計の呼び出しがこの上限に従います。低すぎると待ちが増え、高すぎると宛先に拒否されるおそれがあります。空欄にすると設定ファイルの値に戻ります。";
    new_pace: "Calls a second, such as 2.5", "毎秒の呼び出し数(例: 2.5)";
    did_pace: "The pace is set. All workers follow within a second.", "速度を設定しました。全ワーカーが 1 秒以内に従います。";
    end_pause: "End its pause…", "停止を終了…";
    end_pause_effect: "The destination asked not to be called yet. One call probes it first; the others follow if it is accepted.", "宛先が呼び出しを控えるよう求めています。まず 1 件だけ試し、受け付けられれば残りを続けます。";
    end_pause_button: "End the pause now", "停止を今すぐ終了";
    did_resume_destination: "The pause has ended on all nodes.", "全ノードで停止を終了しました。";
    did_pause_destination: "The destination is paused on all nodes.", "宛先を全ノードで停止しました。";
    resume_effect: "All workers call it again within about a second.", "約 1 秒以内に、全ワーカーが呼び出しを再開します。";
    pause: "Pause", "停止";
    pause_destination: "Pause this destination…", "この宛先を停止…";
    pause_effect: "No worker calls it until somebody resumes it. Its queues still accept messages, which wait, and calls in flight finish.", "再開するまで、どのワーカーも呼び出しません。キューは受付を続けてメッセージは待機し、呼び出し中のものは完了します。";
    pause_button: "Pause on all nodes", "全ノードで停止";
    kind: "Kind", "種類";
    by_model: "By model", "モデル別";
    counted_within: "Calls and 429s are counted over the last {minutes} minutes.", "呼び出しと 429 は直近 {minutes} 分間の集計です。";
    models: "Models", "モデル";
    model: "Model", "モデル";
    no_models: "No call to a language model was counted in this time. A destination of the kind “anthropic”, “bedrock” or “openai” asks a model about each message, and “ichido judge” asks about many articles; their calls appear here.", "この期間に言語モデルの呼び出しはありません。種類が anthropic、bedrock、openai の宛先や ichido judge の呼び出しがここに表示されます。";
    tokens_in: "Tokens of prompts", "入力トークン";
    tokens_out: "Tokens of answers", "出力トークン";
    billed_twice: "Possibly billed twice", "二重課金の可能性";
    models_note: "Calls of workers and of “ichido judge” on this store, as the providers count the tokens. Answers that came from the store cost nothing and are not counted.", "このストアのワーカーと ichido judge の呼び出しです。トークン数は提供元の集計です。保存済みの回答は費用がかからず、含まれません。";
}

#[cfg(test)]
mod tests {
    use super::super::texts::check_both_languages;
    use super::*;

    #[test]
    fn both_languages_are_complete() {
        check_both_languages(ALL, &[]);
    }
}
