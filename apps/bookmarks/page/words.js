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
  more: 'Show more',
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
  bookmarkletHow: 'Drag this button to your bookmarks bar. Click it there to save the page you are on.',
  keys: 'Shortcuts: / search, n add, j and k move, Enter full summary, r retry, d delete.',
  phoneHow:
    'On Android, add this page to your home screen; other apps can then share pages to it. An iPhone cannot share to web pages: use a shortcut there. The person who runs this service can help you set it up.',
  toList: 'Go to your bookmarks',
  saved: 'Saved.',
  savedBefore: 'You have already saved this page. It is in the list.',
  savedLater: 'Stored on this device until the server can be reached.',
  nothing: 'Nothing saved yet',
  nothingHow: 'Paste a link above. The page is summarised in the background.',
  notFound: 'Nothing found',
  notFoundHow: 'Try another word from the title, the link or the summary.',
  noAddress: 'Paste a link first.',
  badAddress: 'This is not a link to a page. Links start with https:// or http://.',
  noAddressHere: 'The shared text does not contain a link.',
  retry: 'Retry',
  remove: 'Delete',
  giveUp: 'Discard',
  sendAnyway: 'Send anyway',
  removeSure: (/** @type {string} */ title) => `Delete “${title}”?`,
  removed: 'Deleted.',
  removeFailed: 'Could not delete it. Try again.',
  retryFailed: 'That did not work. Try again later.',
  noText: 'This page has no text to summarise.',
  byExtract: 'excerpt',
  state: { saving: 'Saving', processing: 'Summarising', retrying: 'Retrying', failed: 'Failed', done: 'Done' },
  waiting: 'Stored on this device. It will be sent when the server can be reached, and saved only once.',
  sending: 'Sending to the server.',
  reading: 'Reading the page.',
  summarising: 'Summarising the page.',
  retryAt: (/** @type {string} */ why, /** @type {string} */ time) => `${why && `${why} `}Next attempt at ${time}.`,
  gap: ' ',
  offline: 'You are offline.',
  toSend: (/** @type {number} */ count) => (count === 1 ? '1 page is waiting to be saved.' : `${count} pages are waiting to be saved.`),
  errors: {
    page_unreachable: 'The page could not be reached.',
    page_not_found: 'The page does not exist.',
    page_refused: 'The site did not show the page. You may have to sign in there.',
    page_untrusted: 'The certificate of the site is not trusted.',
    page_failing: 'The site has a problem at the moment.',
    page_busy: 'The site is too busy at the moment.',
    page_too_slow: 'The page took too long to load.',
    page_too_large: 'The page is too large to read.',
    page_not_text: 'This is not a text page, so it cannot be summarised.',
    address_refused: 'Pages at this address cannot be summarised.',
    model_busy: 'The summariser is too busy at the moment.',
    model_unavailable: 'The summariser could not be reached.',
    model_refused: 'The summariser rejected the request. The person who runs this service has to fix this.',
    model_unusable: 'The summariser did not return a usable summary.',
    job_failed: 'Something went wrong on our side.',
    job_parked: 'Summarising was interrupted. The person who runs this service has to decide what happens next.',
    job_cancelled: 'Summarising was cancelled.',
    held: 'This was sent a long time ago, and we do not know whether it arrived. Check the list before you send it again.',
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
  more: 'もっと見る',
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
  bookmarkletHow: 'このボタンをブックマークバーにドラッグしてください。クリックすると、開いているページを保存できます。',
  keys: 'ショートカット: / 検索、n 追加、j・k 移動、Enter 要約の全文、r 再試行、d 削除。',
  phoneHow:
    'Androidでは、このページをホーム画面に追加すると、ほかのアプリの「共有」から保存できます。iPhoneの「共有」はウェブページに対応していないため、「ショートカット」を使います。設定方法は、このサービスの管理者にお尋ねください。',
  toList: '一覧へ',
  saved: '保存しました。',
  savedBefore: 'このページは保存済みです。一覧にあります。',
  savedLater: 'サーバーに接続できるまで、この端末に保管します。',
  nothing: 'まだ何も保存されていません',
  nothingHow: '上の欄にURLを貼り付けてください。要約は自動で作成されます。',
  notFound: '見つかりませんでした',
  notFoundHow: 'タイトル、URL、要約に含まれる別の言葉で検索してください。',
  noAddress: 'URLを貼り付けてください。',
  badAddress: 'ページのURLではありません。URLは https:// か http:// で始まります。',
  noAddressHere: '共有された内容にURLが含まれていません。',
  retry: '再試行',
  remove: '削除',
  giveUp: '破棄',
  sendAnyway: 'それでも送信',
  removeSure: (title) => `「${title}」を削除しますか？`,
  removed: '削除しました。',
  removeFailed: '削除できませんでした。もう一度お試しください。',
  retryFailed: 'うまくいきませんでした。しばらくしてからもう一度お試しください。',
  noText: 'このページには要約できる文章がありません。',
  byExtract: '抜粋',
  state: { saving: '保存中', processing: '要約中', retrying: '再試行待ち', failed: '失敗', done: '完了' },
  waiting: 'この端末に保管しています。サーバーに接続でき次第、送信します。重複して保存されることはありません。',
  sending: 'サーバーに送信しています。',
  reading: 'ページを読み込んでいます。',
  summarising: 'ページを要約しています。',
  retryAt: (why, time) => `${why}${time}に再試行します。`,
  gap: '',
  offline: 'オフラインです。',
  toSend: (count) => `${count}件が保存待ちです。`,
  errors: {
    page_unreachable: 'ページに接続できませんでした。',
    page_not_found: 'このページは存在しません。',
    page_refused: 'サイトにページの表示を拒否されました。サインインが必要かもしれません。',
    page_untrusted: 'サイトの証明書を信頼できません。',
    page_failing: 'サイトで問題が起きています。',
    page_busy: 'サイトが混み合っています。',
    page_too_slow: 'ページの読み込みに時間がかかりすぎました。',
    page_too_large: 'ページが大きすぎて読み込めません。',
    page_not_text: '文章のページではないため、要約できません。',
    address_refused: 'このアドレスのページは要約できません。',
    model_busy: '要約サービスが混み合っています。',
    model_unavailable: '要約サービスに接続できませんでした。',
    model_refused: '要約サービスがリクエストを拒否しました。このサービスの管理者による対応が必要です。',
    model_unusable: '要約サービスから使える要約が返ってきませんでした。',
    job_failed: 'サーバー側で問題が起きました。',
    job_parked: '要約が中断されました。このサービスの管理者の判断を待っています。',
    job_cancelled: '要約は取り消されました。',
    held: 'かなり前に送信しましたが、届いたかどうか分かりません。もう一度送信する前に、一覧を確認してください。',
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
