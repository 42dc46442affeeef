// @ts-check
// Every word that a person reads here, in both languages. Nothing else in these files is shown to anybody.

/** @typedef {'en' | 'ja'} Language */

const en = {
  name: 'Bookmarks',
  skip: 'To the list',
  list: 'Your bookmarks',
  address: 'Address of a page',
  addressHint: 'Paste an address',
  save: 'Save',
  saveThis: 'Save this page',
  search: 'Search',
  more: 'More',
  signIn: 'Sign in',
  signOut: 'Sign out',
  token: 'Your token',
  signedInAs: (/** @type {string} */ name) => `You are signed in as ${name}. Signing in as somebody else ends that.`,
  signOutSure: (/** @type {number} */ count) =>
    `${count === 1 ? '1 page is' : `${count} pages are`} not saved yet. That stays on this device, and goes on when you sign in here again. Sign out?`,
  tokenHow: 'Whoever runs this service gave it to you, and can give you a new one.',
  tokenWrong: 'That is not a token of this server.',
  tooOften: 'Too many tries. Wait a minute.',
  unreachable: 'The server cannot be reached.',
  bookmarklet: 'Save to Bookmarks',
  bookmarkletHow: 'Drag it to your bookmarks bar: one press on any page saves it.',
  keys: 'Keys: / search, n new, j and k move, Enter the whole summary, r retry, d delete.',
  phoneHow: 'Put this page on your home screen; then other apps can share pages to it.',
  toList: 'To your bookmarks',
  saved: 'Saved.',
  savedBefore: 'You saved this before; it is in the list.',
  savedLater: 'Kept on this device until the server is reached.',
  nothing: 'Nothing saved yet',
  nothingHow: 'Paste an address above. It is summarised in the background.',
  notFound: 'Nothing found',
  notFoundHow: 'Look for another word of the title, the address or the summary.',
  noAddress: 'Paste the address of a page first.',
  badAddress: 'That is not the address of a page. It begins with https:// or http://.',
  noAddressHere: 'There is no address in what was shared.',
  retry: 'Retry',
  remove: 'Delete',
  giveUp: 'Discard',
  sendAnyway: 'Send anyway',
  removeSure: (/** @type {string} */ title) => `Delete “${title}”?`,
  removed: 'Deleted.',
  removeFailed: 'It could not be deleted. Try again.',
  retryFailed: 'It could not be tried again now. Try later.',
  noText: 'There is no text on the page to summarise.',
  byExtract: 'excerpt',
  state: { saving: 'Saving', processing: 'Summarising', retrying: 'Trying again', failed: 'Failed', done: 'Done' },
  waiting: 'It is kept on this device, and sent once, when the server is reached.',
  sending: 'Being sent to the server.',
  reading: 'The page is being read.',
  summarising: 'The page was read; its summary comes next.',
  retryAt: (/** @type {string} */ why, /** @type {string} */ time) => `${why && `${why} `}The next try is at ${time}.`,
  gap: ' ',
  offline: 'You are offline.',
  toSend: (/** @type {number} */ count) => (count === 1 ? '1 page waits to be saved.' : `${count} pages wait to be saved.`),
  errors: {
    page_unreachable: 'The page could not be reached.',
    page_not_found: 'There is no such page.',
    page_refused: 'The page cannot be read without signing in there.',
    page_untrusted: 'The certificate of the page cannot be trusted.',
    page_failing: 'The site is failing at the moment.',
    page_busy: 'The site has too much to do.',
    page_too_slow: 'The page took too long.',
    page_too_large: 'The page is too large to be read.',
    page_not_text: 'This is not a page with text.',
    address_refused: 'Pages at this address are not read.',
    model_busy: 'The summariser has too much to do.',
    model_unavailable: 'The summariser could not be reached.',
    model_refused: 'The summariser does not let us in. Whoever runs this service can mend that.',
    model_unusable: 'The summariser gave no usable answer.',
    job_failed: 'Something went wrong on our side.',
    held: 'It was sent once, long ago, and nobody knows whether it arrived. Look for it in the list before you send it again.',
    refused: 'The server refused it.',
    lost: 'The server could not be reached, or did not answer.',
  },
};

/** @type {typeof en} */
const ja = {
  name: 'しおり',
  skip: '一覧へ',
  list: '保存したページ',
  address: 'ページのアドレス',
  addressHint: 'アドレスを貼り付け',
  save: '保存',
  saveThis: 'このページを保存',
  search: '検索',
  more: 'もっと見る',
  signIn: 'サインイン',
  signOut: 'サインアウト',
  token: 'トークン',
  signedInAs: (name) => `${name} としてサインインしています。別の人がサインインすると入れ替わります。`,
  signOutSure: (count) => `${count}件がまだ保存されていません。この端末に残り、次にここでサインインしたときに続きます。サインアウトしますか？`,
  tokenHow: 'このサービスを動かしている人から受け取ったものです。新しいものに替えてもらうこともできます。',
  tokenWrong: 'このサーバーのトークンではありません。',
  tooOften: '試行が多すぎます。1分ほどお待ちください。',
  unreachable: 'サーバーにつながりません。',
  bookmarklet: 'しおりに保存',
  bookmarkletHow: 'ブックマークバーにドラッグすると、どのページでも一押しで保存できます。',
  keys: 'キー操作: / 検索、n 追加、j・k 移動、Enter 全文、r 再試行、d 削除。',
  phoneHow: 'ホーム画面に追加すると、ほかのアプリから「共有」で保存できます。',
  toList: '一覧へ',
  saved: '保存しました。',
  savedBefore: 'このページは保存済みです。一覧にあります。',
  savedLater: 'この端末に預かりました。つながり次第、送ります。',
  nothing: 'まだ何もありません',
  nothingHow: '上の欄にアドレスを貼り付けてください。要約は裏で作られます。',
  notFound: '見つかりません',
  notFoundHow: '題名・アドレス・要約にある別の言葉で探してください。',
  noAddress: 'ページのアドレスを貼り付けてください。',
  badAddress: 'ページのアドレスではありません。https:// か http:// で始まります。',
  noAddressHere: '共有された内容にアドレスがありません。',
  retry: '再試行',
  remove: '削除',
  giveUp: '取り消す',
  sendAnyway: 'それでも送る',
  removeSure: (title) => `「${title}」を削除しますか？`,
  removed: '削除しました。',
  removeFailed: '削除できませんでした。もう一度お試しください。',
  retryFailed: '今は再試行できませんでした。後でお試しください。',
  noText: 'このページには要約できる文章がありません。',
  byExtract: '抜粋',
  state: { saving: '保存中', processing: '要約中', retrying: '再試行待ち', failed: '失敗', done: '完了' },
  waiting: 'この端末に預かっています。サーバーにつながり次第、一度だけ送ります。',
  sending: 'サーバーに送っています。',
  reading: 'ページを読んでいます。',
  summarising: 'ページを読みました。次は要約です。',
  retryAt: (why, time) => `${why}次の試行は${time}です。`,
  gap: '',
  offline: 'オフラインです。',
  toSend: (count) => `${count}件が保存を待っています。`,
  errors: {
    page_unreachable: 'ページにつながりませんでした。',
    page_not_found: 'そのページはありません。',
    page_refused: 'このページはサインインしないと読めません。',
    page_untrusted: 'このページの証明書は信頼できません。',
    page_failing: '相手のサイトが不調です。',
    page_busy: '相手のサイトが混み合っています。',
    page_too_slow: 'ページの応答に時間がかかりすぎました。',
    page_too_large: 'ページが大きすぎて読めません。',
    page_not_text: '文章のあるページではありません。',
    address_refused: 'このアドレスのページは読みません。',
    model_busy: '要約サービスが混み合っています。',
    model_unavailable: '要約サービスにつながりませんでした。',
    model_refused: '要約サービスが受け付けませんでした。管理する人が直せます。',
    model_unusable: '要約サービスの答えが使えませんでした。',
    job_failed: 'こちら側で問題が起きました。',
    held: 'ずっと前に一度送られ、届いたかどうか分かりません。送り直す前に一覧を確かめてください。',
    refused: 'サーバーが受け付けませんでした。',
    lost: 'サーバーにつながらないか、応答がありませんでした。',
  },
};

const ALL = { en, ja };
const KEPT = 'language';

/** The language that was chosen here, or else the first of the reader's that there is. @returns {Language} */
export function language() {
  const kept = localStorage.getItem(KEPT);
  if (kept === 'en' || kept === 'ja') return kept;
  const first = navigator.languages.map((tag) => tag.slice(0, 2)).find((tag) => tag === 'en' || tag === 'ja');
  return first === 'ja' ? 'ja' : 'en';
}

export const words = () => ALL[language()];

/** Puts the words into the page, and shows it. @param {Document} page */
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

/** A button that changes the language; it names the other one, in its own words. @param {HTMLElement} button @param {() => void} changed */
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
