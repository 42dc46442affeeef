// @ts-check
// Every text that a person reads on these pages, in both languages. Nothing else in these files is shown.

/** @typedef {'en' | 'ja'} Language */

const en = {
  name: 'Bookmarks',
  skip: 'Skip to the list',
  list: 'Your bookmarks',
  address: 'Link to a page',
  addressHint: 'Paste a link',
  save: 'Save',
  saveThis: 'Save this page',
  search: 'Search',
  searchHint: 'Search, or #tag',
  more: 'Show more',
  menu: 'Menu',
  close: 'Close',
  cancel: 'Cancel',
  undo: 'Undo',
  edit: 'Edit',
  open: 'Open',
  unfold: 'More',
  title: 'Title',
  titleHint: 'Empty: the title of the page',
  tags: 'Tags',
  tagsHint: 'Separated by commas',
  signedIn: (/** @type {string} */ name) => `Signed in as ${name}`,
  anywhere: 'Save from anywhere',
  carry: 'Import and export',
  shortcuts: 'Keyboard shortcuts',
  importFile: 'Import a file',
  importHow: 'The bookmarks file of a browser (HTML), or our own export (JSON). A link that is already here is not added again.',
  importing: 'Importing. Keep this page open.',
  imported: (/** @type {number} */ found, /** @type {number} */ created, /** @type {number} */ existing, /** @type {number} */ skipped) =>
    `${found} links found: ${created} added, ${existing} already here${skipped > 0 ? `, ${skipped} skipped` : ''}.`,
  importStopped: 'The import stopped. Import the same file again: no link is added twice.',
  importTooLarge: 'The file is larger than 16 MB.',
  importRefused: 'This file cannot be imported. Choose a bookmarks file of a browser (HTML) or our own export (JSON), with at most 50,000 links.',
  exportFailed: 'Cannot reach the server, so there is nothing to export yet. Try again later.',
  exportHtml: 'Export as HTML',
  exportJson: 'Export as JSON',
  exportHow: 'HTML is for browsers and other bookmark managers. JSON also has the summaries, and restores your list here.',
  signIn: 'Sign in',
  signOut: 'Sign out',
  token: 'Your token',
  signedInAs: (/** @type {string} */ name) => `You are signed in as ${name}. If you sign in with another token, ${name} is signed out.`,
  signOutSure: (/** @type {number} */ count) =>
    `${count === 1 ? '1 page is not saved yet. It stays' : `${count} pages are not saved yet. They stay`} on this device and will be sent when you sign in here again. Sign out?`,
  tokenHow: 'Your token comes from the person who runs this service. If you lose it, ask them for a new one.',
  tokenWrong: 'This token is not valid.',
  tooOften: 'Too many attempts. Wait a minute, then try again.',
  unreachable: 'Cannot reach the server.',
  bookmarklet: 'Save to Bookmarks',
  bookmarkletHow: 'Drag this button to your bookmarks bar. One click on it there saves the page you are on.',
  bookmarkletPress: 'Drag this button to your bookmarks bar. One click on it there opens a small window; press Save in it. One click is enough if this service has an https address.',
  bookmarkletHere: 'Drag this button to your bookmarks bar. One click on it there saves the page you are on, in the browsers of this computer only: other devices cannot reach this address.',
  bookmarkletNot: 'Drag this button to your bookmarks bar. It does nothing here.',
  notSecure: 'This address is not encrypted, so the page does not open offline, and cannot be put on a home screen. Both work with an https address.',
  androidHow: 'Add this page to your home screen. Other apps can then share pages to it.',
  iphoneHow: 'An iPhone cannot share to web pages. Use a shortcut instead: the person who runs this service can help you set it up.',
  keysOf: {
    '/': 'search', n: 'add a link', 'j k': 'next, previous', o: 'open', Enter: 'full text', e: 'edit', r: 'retry', d: 'delete', u: 'undo', '?': 'this list',
  },
  toList: 'Go to your bookmarks',
  saved: 'Saved.',
  savedBefore: 'You saved this before. It is on top.',
  savedBeforeThere: 'You saved this before. It is in your list.',
  savedLater: 'Stored on this device for now.',
  closesSoon: 'This window closes automatically.',
  closeIt: 'You can close this window.',
  mark: { saved: 'Saved', before: 'Saved before' },
  count: (/** @type {string} */ count, /** @type {number} */ number) => (number === 1 ? '1 bookmark' : `${count} bookmarks`),
  found: (/** @type {string} */ count, /** @type {boolean} */ isMore) => (isMore ? `The first ${count} found` : `${count} found`),
  foundHere: (/** @type {string} */ found, /** @type {string} */ known) => `${found} found among the ${known} bookmarks on this device`,
  nothing: 'Nothing saved yet',
  nothingHow: 'Paste a link above, or set up one of these. Each page is summarised in the background.',
  wayBar: 'Save from the bookmarks bar',
  wayImport: 'Bring your bookmarks along',
  notFound: 'Nothing found',
  notFoundHow: 'Try another word from the title, the link, the tags or the text.',
  noAddress: 'Paste a link first.',
  badAddress: 'This is not a link to a page. Links start with https:// or http://.',
  credentialsInAddress: 'This link contains a user name or a password. Remove it, then save the link again.',
  addressTooLong: 'This link is too long. A link can have at most 2,048 characters.',
  tooManyAddresses: 'These are too many links. Paste at most 20 at once, or import them as a file.',
  notStored: 'Could not store the link on this device. Try again.',
  noAddressHere: 'The shared text does not contain a link.',
  retry: 'Retry',
  remove: 'Delete',
  giveUp: 'Discard',
  sendAnyway: 'Send anyway',
  removed: (/** @type {string} */ title) => `Deleted “${title}”.`,
  removedMany: (/** @type {number} */ count) => `${count} deleted.`,
  removedHere: 'Removed again.',
  restored: /** @returns {string} */ (/** @type {number} */ count) => (count === 1 ? 'It is back in the list.' : 'They are back in the list.'),
  removeFailed: (/** @type {string} */ title, /** @type {number} */ count) =>
    count === 1 ? `Could not delete “${title}”. It is back in the list.` : `Could not delete ${count} bookmarks. They are back in the list.`,
  retried: 'Trying again.',
  retryFailed: 'That did not work. Try again later.',
  tagsRefused: 'A bookmark can have at most 20 tags, each of at most 40 characters.',
  editFailed: 'Could not save the changes. Try again.',
  edited: 'Changes saved.',
  noText: 'This page has no text to summarise.',
  byExtract: 'excerpt',
  noSummary: 'Saved, no summary',
  why: 'show the reason',
  because: (/** @type {string} */ why) => `Saved, no summary. ${why}`,
  saving: 'Saving',
  waiting: 'Stored on this device. It will be sent when the server can be reached.',
  sending: 'Sending to the server',
  reading: 'Reading the page',
  summarising: 'Summarising the page',
  attempt: (/** @type {number} */ attempt, /** @type {number} */ of) => `, attempt ${attempt} of ${of}`,
  retryAt: (/** @type {string} */ when, /** @type {string} */ attempt, /** @type {string} */ why) => `Next attempt ${when}${attempt}.${why && ` ${why}`}`,
  gap: ' ',
  sendNow: 'Send now',
  offline: 'You are offline.',
  toSend: (/** @type {number} */ count) => (count === 1 ? '1 page is waiting to be saved.' : `${count} pages are waiting to be saved.`),
  errors: {
    page_unreachable: 'The page could not be reached.',
    page_not_found: 'The page does not exist.',
    page_refused: 'The site did not let us read the page.',
    page_untrusted: 'The certificate of the site is not trusted.',
    page_failing: 'The site has a problem at the moment.',
    page_busy: 'The site is too busy at the moment.',
    page_too_slow: 'The page took too long to load.',
    page_not_text: 'This is not a text page, so it cannot be summarised.',
    address_refused: 'Pages at this address cannot be summarised.',
    model_busy: 'The summariser is too busy at the moment.',
    model_unavailable: 'The summariser could not be reached.',
    model_refused: 'The summariser does not let us in. The person who runs this service has to fix this.',
    model_request: 'The summariser could not accept this page.',
    model_quota: 'The quota of the summariser is used up.',
    model_unusable: 'The summariser did not return a usable summary.',
    job_failed: 'Something went wrong on our side.',
    job_parked: 'Summarising was interrupted. The person who runs this service has to decide what happens next.',
    job_cancelled: 'Summarising was cancelled.',
    held: 'This was sent a long time ago, and we do not know whether it arrived. Check the list before you send it again.',
    url_refused: 'This link cannot be saved: it is too long, or it does not lead to a page.',
    refused: 'The server rejected it.',
    lost: 'The server could not be reached or did not respond.',
  },
};

/** @type {typeof en} */
const ja = {
  name: 'しおり',
  skip: '一覧へ移動',
  list: '保存したページ',
  address: 'ページのURL',
  addressHint: 'URLを貼り付け',
  save: '保存',
  saveThis: 'このページを保存',
  search: '検索',
  searchHint: '検索、または #タグ',
  more: 'もっと見る',
  menu: 'メニュー',
  close: '閉じる',
  cancel: 'キャンセル',
  undo: '元に戻す',
  edit: '編集',
  open: '開く',
  unfold: '詳しく',
  title: 'タイトル',
  titleHint: '空欄にすると、ページのタイトルに戻ります',
  tags: 'タグ',
  tagsHint: 'カンマで区切る',
  signedIn: (name) => `${name} としてサインイン中`,
  anywhere: 'どこからでも保存',
  carry: 'インポートとエクスポート',
  shortcuts: 'キーボードショートカット',
  importFile: 'ファイルをインポート',
  importHow: 'ブラウザーのブックマークファイル（HTML）、またはこのサービスからエクスポートしたファイル（JSON）を読み込みます。すでにあるリンクは追加されません。',
  importing: 'インポートしています。このページを開いたままにしてください。',
  imported: (found, created, existing, skipped) =>
    `${found}件中、${created}件を追加しました。${existing}件は保存済みです。${skipped > 0 ? `${skipped}件は追加できませんでした。` : ''}`,
  importStopped: 'インポートが中断されました。同じファイルをもう一度読み込んでください。重複して追加されることはありません。',
  importTooLarge: 'ファイルが16MBを超えています。',
  importRefused: 'このファイルは読み込めません。ブラウザーのブックマークファイル（HTML）か、このサービスからエクスポートしたファイル（JSON）を選んでください。リンクは5万件までです。',
  exportFailed: 'サーバーに接続できないため、エクスポートできません。しばらくしてからもう一度お試しください。',
  exportHtml: 'HTMLでエクスポート',
  exportJson: 'JSONでエクスポート',
  exportHow: 'HTMLは、ブラウザーやほかのブックマークサービスで読み込めます。JSONには要約も含まれ、ここで一覧を元どおりに復元できます。',
  signIn: 'サインイン',
  signOut: 'サインアウト',
  token: 'トークン',
  signedInAs: (name) => `${name} としてサインインしています。別のトークンでサインインすると、${name} はサインアウトされます。`,
  signOutSure: (count) => `${count}件がまだ保存されていません。この端末に残り、次にここでサインインしたときに送信されます。サインアウトしますか？`,
  tokenHow: 'トークンは、このサービスの管理者から受け取ります。なくした場合は、新しいトークンを発行してもらってください。',
  tokenWrong: 'トークンが正しくありません。',
  tooOften: '試行回数が多すぎます。1分ほど待ってから、もう一度お試しください。',
  unreachable: 'サーバーに接続できません。',
  bookmarklet: 'しおりに保存',
  bookmarkletHow: 'このボタンをブックマークバーにドラッグしてください。そこで1回クリックすると、開いているページが保存されます。',
  bookmarkletPress: 'このボタンをブックマークバーにドラッグしてください。そこで1回クリックすると小さなウィンドウが開くので、「保存」を押します。このサービスのアドレスが https なら、1回のクリックで保存できます。',
  bookmarkletHere: 'このボタンをブックマークバーにドラッグしてください。そこで1回クリックすると、開いているページが保存されます。このアドレスには、ほかの端末からは接続できません。',
  bookmarkletNot: 'このボタンは、ブックマークバーにドラッグして使います。ここでは何も起きません。',
  notSecure: 'このアドレスは暗号化されていないため、オフラインで開いたり、ホーム画面に追加したりできません。https のアドレスなら、どちらもできます。',
  androidHow: 'このページをホーム画面に追加すると、ほかのアプリの「共有」から保存できます。',
  iphoneHow: 'iPhoneの「共有」はウェブページに対応していません。代わりに「ショートカット」を使います。設定方法は、このサービスの管理者にお尋ねください。',
  keysOf: {
    '/': '検索', n: 'リンクを追加', 'j k': '次へ・前へ', o: '開く', Enter: '全文', e: '編集', r: '再試行', d: '削除', u: '元に戻す', '?': 'この一覧',
  },
  toList: '一覧へ',
  saved: '保存しました。',
  savedBefore: '保存済みのページです。一覧の先頭に表示します。',
  savedBeforeThere: 'このページは保存済みです。',
  savedLater: 'この端末に保管しました。',
  closesSoon: 'このウィンドウは自動で閉じます。',
  closeIt: 'このウィンドウは閉じてかまいません。',
  mark: { saved: '保存しました', before: '保存済み' },
  count: (count) => `${count}件`,
  found: (count, isMore) => (isMore ? `先頭の${count}件を表示` : `${count}件見つかりました`),
  foundHere: (found, known) => `この端末にある${known}件のうち${found}件`,
  nothing: 'まだ何も保存されていません',
  nothingHow: '上の欄にURLを貼り付けるか、次の方法で保存します。要約は自動で作成されます。',
  wayBar: 'ブックマークバーから保存',
  wayImport: 'ブックマークを引き継ぐ',
  notFound: '見つかりませんでした',
  notFoundHow: 'タイトル、URL、タグ、本文に含まれる別の言葉で検索してください。',
  noAddress: 'URLを貼り付けてください。',
  badAddress: 'ページのURLではありません。URLは https:// か http:// で始まります。',
  credentialsInAddress: 'URLにユーザー名かパスワードが含まれています。取り除いてから、もう一度保存してください。',
  addressTooLong: 'URLが長すぎます。2,048文字以内のURLを保存できます。',
  tooManyAddresses: 'URLが多すぎます。一度に貼り付けられるのは20件までです。それより多い場合は、ファイルからインポートしてください。',
  notStored: 'リンクをこの端末に保管できませんでした。もう一度お試しください。',
  noAddressHere: '共有された内容にURLが含まれていません。',
  retry: '再試行',
  remove: '削除',
  giveUp: '破棄',
  sendAnyway: 'それでも送信',
  removed: (title) => `「${title}」を削除しました。`,
  removedMany: (count) => `${count}件を削除しました。`,
  removedHere: '保存を取り消しました。',
  restored: () => '一覧に戻しました。',
  removeFailed: (title, count) => `${count === 1 ? `「${title}」` : `${count}件`}を削除できなかったため、一覧に戻しました。`,
  retried: 'もう一度試しています。',
  retryFailed: 'うまくいきませんでした。しばらくしてからもう一度お試しください。',
  tagsRefused: 'タグは20個まで、1個につき40文字までです。',
  editFailed: '変更を保存できませんでした。もう一度お試しください。',
  edited: '変更を保存しました。',
  noText: 'このページには要約できる文章がありません。',
  byExtract: '抜粋',
  noSummary: '保存済み。要約に失敗しました',
  why: '理由を表示',
  because: (why) => `保存済み。要約に失敗しました。${why}`,
  saving: '保存しています',
  waiting: 'この端末に保管しています。サーバーに接続でき次第、送信します。',
  sending: 'サーバーに送信しています',
  reading: 'ページを読み込んでいます',
  summarising: 'ページを要約しています',
  attempt: (attempt, of) => `（${of}回中${attempt}回目）`,
  retryAt: (when, attempt, why) => `${when}に再試行します${attempt}。${why}`,
  gap: '',
  sendNow: '今すぐ送信',
  offline: 'オフラインです。',
  toSend: (count) => `${count}件が保存待ちです。`,
  errors: {
    page_unreachable: 'ページに接続できませんでした。',
    page_not_found: 'このページは存在しません。',
    page_refused: 'サイトにページの読み込みを拒否されました。',
    page_untrusted: 'サイトの証明書を信頼できません。',
    page_failing: 'サイトで問題が起きています。',
    page_busy: 'サイトが混み合っています。',
    page_too_slow: 'ページの読み込みに時間がかかりすぎました。',
    page_not_text: '文章のページではないため、要約できません。',
    address_refused: 'このアドレスのページは要約できません。',
    model_busy: '要約サービスが混み合っています。',
    model_unavailable: '要約サービスに接続できませんでした。',
    model_refused: '要約サービスにアクセスを拒否されました。このサービスの管理者による対応が必要です。',
    model_request: '要約サービスがこのページを受け付けませんでした。',
    model_quota: '要約サービスの利用枠を使い切りました。',
    model_unusable: '要約サービスから使える要約が返ってきませんでした。',
    job_failed: 'サーバー側で問題が起きました。',
    job_parked: '要約が中断されました。このサービスの管理者の判断を待っています。',
    job_cancelled: '要約は取り消されました。',
    held: 'かなり前に送信しましたが、届いたかどうか分かりません。もう一度送信する前に、一覧を確認してください。',
    url_refused: 'このリンクは保存できません。長すぎるか、ページのURLではありません。',
    refused: 'サーバーが受け付けませんでした。',
    lost: 'サーバーに接続できないか、応答がありませんでした。',
  },
};

const ALL = { en, ja };
const KEPT = 'language';

/** The language chosen on this page, or else the first supported one of the browser's languages. @returns {Language} */
export function language() {
  const kept = localStorage.getItem(KEPT);
  if (kept === 'en' || kept === 'ja') return kept;
  const first = navigator.languages.map((tag) => tag.slice(0, 2)).find((tag) => tag === 'en' || tag === 'ja');
  return first === 'ja' ? 'ja' : 'en';
}

export const words = () => ALL[language()];

/** Returns why a save failed, in words. @param {string} code */
export const errorText = (code) => /** @type {Record<string, string>} */ (words().errors)[code] ?? words().errors.refused;

/** Returns what is wrong with a text that should contain an address. @param {import('./address.js').Problem} problem */
export function problemText(problem) {
  const { noAddress: none, badAddress: bad, credentialsInAddress: credentials, addressTooLong: long, tooManyAddresses: many } = words();
  return { none, bad, credentials, long, many }[problem];
}

/** Fills the page with its texts and shows it. @param {Document} page */
export function speak(page) {
  const said = /** @type {Record<string, unknown>} */ (words());
  page.documentElement.lang = language();
  page.title = words().name;
  for (const element of page.querySelectorAll('[data-word]')) {
    element.textContent = String(said[element.getAttribute('data-word') ?? '']);
  }
  for (const element of page.querySelectorAll('[data-placeholder]')) {
    element.setAttribute('placeholder', String(said[element.getAttribute('data-placeholder') ?? '']));
  }
  page.documentElement.setAttribute('data-ready', '');
}

/** A button that changes the language. It names the other language in that language. @param {HTMLElement} button @param {() => void} changed */
export function languageButton(button, changed) {
  const other = () => (language() === 'ja' ? 'en' : 'ja');
  const show = () => {
    button.textContent = other() === 'ja' ? '日本語' : 'English';
    button.lang = other();
  };
  button.addEventListener('click', () => {
    localStorage.setItem(KEPT, other());
    speak(document);
    show();
    changed();
  });
  show();
}
