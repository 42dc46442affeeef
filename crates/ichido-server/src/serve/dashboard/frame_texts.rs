//! The texts of the frame around every page: what the page cost, whether it is live, and the keys.

use super::language::Language;
use super::texts::texts;

texts! {
    more_pages: "More", "その他";
    badge_letters: "{dead} dead, {parked} parked", "デッド {dead} 件、保留 {parked} 件";
    no_page: "This address has no page. Use the navigation, or go back.", "このアドレスにページはありません。ナビゲーションから選ぶか、前のページに戻ってください。";
    cost: "Statements: {statements} · rows: {rows} · {total}, of which {sql} in the database", "SQL {statements} 件 · {rows} 行 · {total}(うちデータベース {sql})";
    cost_none: "No statement of its own · {total}", "このページ固有の SQL はありません · {total}";
    cost_limit: "A statement of a page is stopped after {limit}.", "ページの SQL は {limit} で打ち切られます。";
    show_sql: "Show the SQL", "SQL を表示";
    hide_sql: "Hide the SQL", "SQL を隠す";
    statement_cost: "rows: {rows} · {took}", "{rows} 行 · {took}";
    page_slow: "This page took longer than {limit}, so it was stopped, and nothing was changed. The store is busy or does not respond; if you searched, narrow the filter, for example with queue: or since:.", "{limit} 以内に表示できなかったため中断しました。何も変更していません。ストアが混雑しているか応答していません。検索の場合は queue: や since: で条件を絞ってください。";
    server_away: "No connection to the server. What you see is from {time}; the page keeps trying.", "サーバーに接続できません。表示は {time} 時点の内容です。再接続を続けています。";
    store_away: "The server runs, but its store does not respond. What you see is from {time}; the page keeps trying.", "サーバーは動作中ですが、ストアが応答しません。表示は {time} 時点の内容です。再接続を続けています。";
    is_back: "Connected again.", "再接続しました。";
    newer_exist: "Newer entries exist, or some no longer match.", "新しい項目があるか、条件に合わなくなった項目があります。";
    has_changed: "This page has changed.", "ページの内容が変わりました。";
    show_changes: "Show the changes", "変更を表示";
    close: "Close", "閉じる";
    keys_off: "Switch these keys off", "キー操作を無効にする";
    keys_on: "Switch these keys on", "キー操作を有効にする";
    keys_about: "No key changes anything. While you write in a field, and together with Ctrl, Alt or Meta, keys do what they always do. The switch is for this browser.", "キー操作で変更されるものはありません。入力中や Ctrl・Alt・Meta との組み合わせでは働きません。設定はこのブラウザーに保存されます。";
    key_go_then: "then one of these letters", "に続けて次の文字";
    key_open: "open the row", "行を開く";
    key_close: "close what is open, or leave the field", "開いているものを閉じる、入力欄から出る";
    suggestions: "Suggestions", "候補";
    about_queue: "messages of one queue", "キューで絞り込み";
    about_state: "messages in one state", "状態で絞り込み";
    about_code: "with this code of the last error", "最後のエラーのコード";
    about_key: "with this idempotency key", "冪等キー";
    about_receipt: "with this receipt of the receiver", "宛先の受領番号";
    about_identity: "of this identity", "識別子";
    about_id: "with these first digits of the id", "ID の先頭";
    about_trace: "with this trace id", "トレース ID";
    about_since: "accepted since this time, such as 2026-11-18T03:12:00Z", "この時刻以降に受付(例 2026-11-18T03:12:00Z)";
    about_before: "accepted before this time", "この時刻より前に受付";
    about_payload: "with this value at a JSON pointer, such as payload./symbol:USDJPY", "リクエストの値(例 payload./symbol:USDJPY)";
    search_bound: "A search examines about 10,000 messages, or 1,000 requests for payload., and then says how far it came.", "一回の検索で調べるのは約 10,000 件(payload. では 1,000 件)までで、どこまで調べたかを表示します。";
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
