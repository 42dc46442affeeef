//! The texts of the pages of failure groups and of bulk operations.
//!
//! Guarantee: that of `texts`.

use super::language::Language;
use super::texts::texts;

texts! {
    groups: "By cause", "原因別";
    groups_hint: "Messages of one queue with the same error are one group. Repair the cause, then act on the whole group.", "同じキューで同じエラーのメッセージを一つのグループにまとめています。原因を直してから、グループ全体を操作できます。";
    group: "Failure group", "失敗グループ";
    group_open: "open", "未対応";
    group_acknowledged: "acknowledged", "対応中";
    group_resolved: "resolved", "解決済み";
    group_came_back: "came back", "再発";
    about_open: "Nobody takes care of it yet.", "まだ誰も対応していません。";
    about_acknowledged: "Somebody works on it. Later failures do not change that.", "担当者が対応中です。失敗が増えてもこの状態のままです。";
    about_resolved: "Its cause was marked as fixed. A later failure brings it back.", "原因は解決済みです。再び失敗すると「再発」になります。";
    about_came_back: "It was resolved, and the same error happened again.", "解決済みでしたが、同じエラーが再び起きました。";
    no_code: "no code", "コードなし";
    no_text: "The error has no text.", "エラーの文面はありません。";
    open_messages: "Open messages", "未処理のメッセージ";
    first_seen: "First failure", "最初の失敗";
    last_seen: "Last failure", "最後の失敗";
    no_groups: "No failure groups. If Ichido gives up on messages, each cause appears here once, with the number of its messages and what you can do.", "失敗グループはありません。配信を断念したメッセージは、原因ごとに一つにまとめて件数と対処とともに表示されます。";
    groups_wait: "{n} dead letters are not grouped yet. A worker updates the groups every few seconds.", "デッドレター {n} 件がまだ分類されていません。ワーカーが数秒ごとに更新します。";
    show_rows: "Show the messages", "メッセージを表示";
    acknowledge: "Acknowledge", "対応中にする";
    acknowledge_effect: "Says that you work on it, under your name. The messages do not change.", "あなたが対応していることを記録します。メッセージは変わりません。";
    resolve: "Mark as fixed", "解決済みにする";
    resolve_effect: "Says that the cause is fixed. The messages do not change: requeue or discard them. If the error happens again, the group comes back.", "原因が直ったことを記録します。メッセージは変わらないため、再投入か破棄をしてください。同じエラーが起きると再発になります。";
    did_acknowledge: "Acknowledged. The group stays here until its messages are settled.", "対応中にしました。メッセージが片付くまで表示されます。";
    did_resolve: "Marked as fixed. If the error happens again, the group comes back.", "解決済みにしました。同じエラーが起きると再発として表示されます。";
    group_need: "{queue}: {cause}. Open messages: {n}", "{queue}: {cause}({n} 件)";
    group_need_back: "{queue}: {cause} came back. Open messages: {n}", "{queue}: {cause} が再発({n} 件)";
    more_groups: "More failure groups", "その他の失敗グループ";
    more_groups_detail: "The list shows the {n} that need a person most.", "優先度の高い {n} 件だけを表示しています。";
    dead_of_group: "Dead", "デッド";
    parked_of_group: "Parked", "保留";
    all_of_them: "All of them", "すべて表示";
    none_left: "The group has no open messages any more.", "このグループに未処理のメッセージはもうありません。";
    bulk_title: "Act on all that match", "条件に合うものをまとめて操作";
    bulk_title_hint: "Each first shows what would happen, and starts only after you confirm the number.", "まず結果の予測を表示し、件数を確認してから開始します。";
    bulk_requeue: "Requeue all…", "まとめて再投入…";
    bulk_release: "Release all…", "まとめて解放…";
    bulk_discard: "Discard all…", "まとめて破棄…";
    bulk_decide: "Decide all…", "まとめて判断…";
    operations: "Bulk operations", "一括操作";
    no_operations: "No bulk operation yet. Start one from a failure group, or from a filtered list of dead letters. Each gets a page that stays.", "一括操作はまだありません。失敗グループか、絞り込んだデッドレターから開始できます。結果のページは残ります。";
    latest_operations: "The latest {n} are shown; the audit trail has them all.", "最新の {n} 件を表示しています。すべては監査記録にあります。";
    requeue_dead: "Requeue dead letters", "デッドレターを再投入";
    requeue_parked: "Release parked messages", "保留メッセージを解放";
    discard_dead: "Discard dead letters", "デッドレターを破棄";
    decide_any: "Decide unknown effects", "不明な効果を判断";
    decide_as_done: "Decide: it was done", "判断: 実行済み";
    decide_as_not_done: "Decide: it was not done", "判断: 未実行";
    decide_as_give_up: "Decide: it cannot be found out", "判断: 確認できない";
    requeue_dead_effect: "Each message is sent again under the same key, and its attempts start at 0. One that could take effect twice is refused.", "同じキーでもう一度送信し、試行回数は 0 に戻ります。二重の効果になるおそれがあるものは拒否されます。";
    requeue_parked_effect: "Each message whose destination makes a repetition safe by now is sent again under the same key. The others stay parked.", "宛先の保証により再送しても安全なものだけを同じキーで送信します。ほかは保留のままです。";
    discard_dead_effect: "The messages stay dead and are kept, but need no more attention. Nothing is sent. A discarded message can still be requeued.", "デッドのまま保存され、対応済みになります。何も送信しません。後から再投入もできます。";
    decide_done_effect: "Parked messages become sent, dead ones stay dead with the effect done. Nothing is sent.", "保留のものは送信済みに、デッドのものは効果ありのデッドになります。何も送信しません。";
    decide_not_done_effect: "Parked messages are sent again, with their attempts at 0. Dead ones stay dead, and can then be requeued.", "保留のものは試行 0 回から再送されます。デッドのものはデッドのままで、再投入できるようになります。";
    decide_give_up_effect: "Parked messages become dead, with the effect unknown. Nothing is sent.", "保留のものは効果不明のデッドになります。何も送信しません。";
    choose_decision: "First look at the receiver. What holds for all of these messages?", "まず受信側を確認してください。これらすべてに当てはまるのはどれですか?";
    scope: "Which messages", "対象";
    look_at_rows: "Look at them", "対象を見る";
    counted_at: "Counted at {when}. Messages that die later are not included.", "{when} に集計しました。それ以降に失敗したものは含まれません。";
    will_all: "{eligible} of {matched} will be {done}.", "{matched} 件中 {eligible} 件を{done}します。";
    will_some: "{eligible} of {matched} will be {done}. Refused: {refused}.", "{matched} 件中 {eligible} 件を{done}します({refused} 件は拒否)。";
    will_none: "None of {matched} can be {done}.", "{matched} 件のうち{done}できるものはありません。";
    nothing_matches: "No message matches.", "条件に合うメッセージはありません。";
    done_requeue: "requeued", "再投入";
    done_discard: "discarded", "破棄";
    done_decide: "decided", "判断";
    refused_title: "Refused, and why", "拒否されるものと理由";
    count: "Messages", "件数";
    why: "Why", "理由";
    by_code: "By error", "エラー別";
    by_queue: "By queue", "キュー別";
    start_title: "Start it", "開始";
    with_canary: "Start with a few (canary)", "少数から始める(カナリア)";
    canary_steps: "First {first}, then up to {steps}, then all. Each step waits until the messages before it were sent. It halts if more than {percent} % of them fail, or if they do not end within {minutes} minutes.", "最初に {first} 件、次に {steps} 件まで、その後すべて。前の段階の送信を待って進み、失敗が {percent} % を超えるか {minutes} 分以内に終わらなければ止まります。";
    canary_step: "First {first}, then all. The rest waits until those were sent. It halts if more than {percent} % of them fail, or if they do not end within {minutes} minutes.", "最初に {first} 件、その後すべて。最初の送信を待って進み、失敗が {percent} % を超えるか {minutes} 分以内に終わらなければ止まります。";
    type_count: "Type the number {n} to confirm", "確認のため件数 {n} を入力";
    start_requeue: "Requeue {n}", "{n} 件を再投入";
    start_discard: "Discard {n}", "{n} 件を破棄";
    start_decide: "Decide {n}", "{n} 件を判断";
    typed_wrong: "Nothing was started: type {n} to confirm, not “{typed}”.", "開始していません。確認には {n} を入力してください(入力: {typed})。";
    not_started: "Nothing was started: {why}", "開始していません: {why}";
    nothing_to_do: "Nothing was started: no message can be moved any more.", "開始していません。操作できるメッセージがもうありません。";
    action_unknown: "The address names no bulk action. Start one from a failure group, or from a list of dead letters.", "このアドレスに一括操作の指定がありません。失敗グループかデッドレターの一覧から開始してください。";
    op_running: "running", "実行中";
    op_stopping: "stopping", "停止処理中";
    op_silent: "no news", "応答なし";
    op_ended: "done", "完了";
    op_stopped: "stopped", "停止";
    op_halted: "halted", "中断";
    op_failed: "failed", "失敗";
    op_abandoned: "interrupted", "途絶";
    say_running: "{moved} of {total} {done}.", "{total} 件中 {moved} 件を{done}しました。";
    say_ended: "{moved} {done}.", "{moved} 件を{done}しました。";
    say_ended_unknown: "It has ended.", "終了しました。";
    say_stopping: "It stops before its next batch. So far {moved} of {total} {done}.", "次のまとまりの前に止まります。これまでに {total} 件中 {moved} 件を{done}しました。";
    say_silent: "Nothing is known here of its progress.", "進捗はこのサーバーでは分かりません。";
    say_stopped: "Stopped by {who}: {moved} {done}.", "{who} が停止しました({moved} 件を{done})。";
    say_stopped_server: "Its server was stopped: {moved} {done}.", "サーバーの停止により中止しました({moved} 件を{done})。";
    say_stopped_unknown: "It was asked to stop, and its process is gone.", "停止を求められ、プロセスも終了しました。";
    say_halted: "Its canary halted it: {failed} of {watched} failed again.", "カナリアが止めました。{watched} 件中 {failed} 件が再び失敗しました。";
    say_halted_slow: "Its canary halted it: {pending} of {watched} did not end within {minutes} minutes.", "カナリアが止めました。{watched} 件中 {pending} 件が {minutes} 分以内に終わりませんでした。";
    say_halted_unknown: "Its canary halted it.", "カナリアが止めました。";
    say_failed: "It could not continue after {moved}.", "{moved} 件の後、続行できませんでした。";
    say_abandoned: "Its server was killed, or lost the store, before it had finished.", "完了する前に、サーバーが強制終了したかストアとの接続を失いました。";
    then_running: "It continues if you close this page.", "このページを閉じても続きます。";
    then_silent: "Either it runs in another server of this store, which shows its progress. Or its server was killed; then this page says so {seconds} s after its last sign of life.", "このストアの別のサーバーで実行中なら、進捗はそちらに表示されます。サーバーが強制終了した場合は、最後の応答から {seconds} 秒後にここに表示されます。";
    then_halted: "More than {percent} % may not fail, so the rest is unchanged. Read the errors, repair the cause, then continue with the rest.", "失敗の許容は {percent} % のため、残りは変更していません。エラーを読んで原因を直し、残りを続けてください。";
    then_halted_slow: "The rest is unchanged. Check that a worker serves the queue and that it is not paused, then continue with the rest.", "残りは変更していません。ワーカーが動き、キューが停止していないことを確認してから、残りを続けてください。";
    then_stopped: "What was {done} stays so. The rest is unchanged.", "{done}したものはそのままです。残りは変更していません。";
    then_failed: "What was {done} stays so, and the last batch may be in addition. Nothing more happens automatically.", "{done}したものはそのままです(最後のまとまりが加わる場合があります)。自動では続行しません。";
    then_abandoned: "What was {done} stays so; how many is not recorded, and the rest is unchanged. Nothing more happens automatically. To continue, count the rest and confirm it.", "{done}したものはそのままですが件数の記録はありません。残りは変更していません。自動では続行しないため、残りを数えて確認してください。";
    canary_now: "The canary waits for these messages before it continues: {succeeded} sent, {failed} failed, {pending} not ended yet.", "カナリアが結果を待っています: 送信済み {succeeded}、失敗 {failed}、未完了 {pending}。";
    canary_end: "Sent {succeeded}, failed {failed}, not ended {pending}", "送信済み {succeeded}、失敗 {failed}、未完了 {pending}";
    canary: "Canary", "カナリア";
    failed_title: "What failed in the canary", "カナリアで失敗したもの";
    gone: "Changed meanwhile by somebody else", "その間に他で変更されたもの";
    refused: "Refused", "拒否";
    stop: "Stop", "停止する";
    stop_effect: "It stops before its next batch. Messages that were moved stay so.", "次のまとまりの前に止まります。済んだものは元に戻りません。";
    go_on: "Count the rest, to continue…", "残りを数えて続ける…";
    started_by: "Started by", "開始者";
    started_at: "Started", "開始";
    ended_at: "Last entry", "最終記録";
    outcome: "Outcome", "結果";
    record: "Record", "記録";
    f_state: "State", "状態";
    f_standing: "Standing", "区分";
    f_group: "Failure group", "失敗グループ";
    f_from: "Since", "開始時刻";
    f_before: "Before", "終了時刻";
    f_text: "Error contains", "エラーに含む";
}

#[cfg(test)]
mod tests {
    use super::super::texts::check_both_languages;
    use super::*;

    #[test]
    fn texts_of_bulk_operations_are_in_both_languages() {
        check_both_languages(ALL, &[]);
    }
}
