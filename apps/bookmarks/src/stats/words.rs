//! The texts of the statistics page, in both languages.

/// The texts in one language.
pub(super) struct Words {
    /// The tag of the language.
    pub(super) language: &'static str,
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) measure: &'static str,
    pub(super) share: &'static str,
    pub(super) count: &'static str,
    pub(super) shares: [&'static str; 4],
    pub(super) model_title: &'static str,
    pub(super) model: [&'static str; 6],
    pub(super) back: &'static str,
}

pub(super) const EN: Words = Words {
    language: "en",
    title: "Statistics",
    about: "Totals of all people since the service started.",
    measure: "Measure",
    share: "Share",
    count: "Count",
    shares: [
        "Requests with a key",
        "Duplicates among requests with a key",
        "Automatic retries that succeeded",
        "Retries by a person",
    ],
    model_title: "Calls to the model",
    model: [
        "Calls",
        "Retries",
        "Throttled calls",
        "Unusable answers",
        "Abandoned summaries",
        "Possibly billed twice",
    ],
    back: "Go to your bookmarks",
};

pub(super) const JA: Words = Words {
    language: "ja",
    title: "統計",
    about: "サービスの起動後の、全利用者の合計です。",
    measure: "項目",
    share: "割合",
    count: "件数",
    shares: [
        "キー付きのリクエスト",
        "キー付きリクエストのうち重複したもの",
        "成功した自動再試行",
        "手動の再試行",
    ],
    model_title: "要約モデルの呼び出し",
    model: [
        "呼び出し",
        "再試行",
        "制限された呼び出し",
        "使えなかった回答",
        "断念した要約",
        "二重に課金された可能性があるもの",
    ],
    back: "一覧へ",
};
