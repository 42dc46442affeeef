// @ts-check
// The form to edit a bookmark's title and tags, inside its row.

import { edit, Refused } from './api.js';
import { make } from './view.js';
import { words } from './words.js';

/** @typedef {import('./api.js').Bookmark} Bookmark */

const MAX_TITLE_CHARS = 300;
const MAX_TAGS_CHARS = 900;

/** Reads tags as people type them. @param {string} text */
export const tagsIn = (text) => [...new Set(text.split(/[,\u3001\uff0c\n]/u).map((tag) => tag.trim().replace(/^[#\uff03]/u, '')).filter(Boolean))];

/** @param {string} name @param {string} label @param {string} hint @param {string} value @param {number} longest */
function fieldOf(name, label, hint, value, longest) {
  const wrapper = make('label', 'field');
  const input = make('input', name);
  input.value = value;
  input.placeholder = hint;
  input.maxLength = longest;
  input.autocomplete = 'off';
  wrapper.append(Object.assign(make('span', 'label'), { textContent: label }), input);
  return { wrapper, input };
}

/** Whether a row is being edited. @param {Element} row */
export const isEditing = (row) => row.querySelector('.editor') !== null;

/**
 * Opens the form in a row. @param {HTMLElement} row @param {Bookmark} bookmark
 * @param {{ saved: (bookmark: Bookmark) => void, failed: (error: unknown) => void }} calls
 */
export function openEditor(row, bookmark, { saved, failed }) {
  if (isEditing(row)) return;
  const said = words();
  const form = make('form', 'editor');
  const title = fieldOf('edit-title', said.title, said.titleHint, bookmark.title ?? '', MAX_TITLE_CHARS);
  const tags = fieldOf('edit-tags', said.tags, said.tagsHint, (bookmark.tags ?? []).join(', '), MAX_TAGS_CHARS);
  const hint = make('p', 'hint');
  hint.setAttribute('role', 'alert');
  const save = Object.assign(make('button', 'main'), { type: 'submit', textContent: said.save });
  const cancel = Object.assign(make('button', ''), { type: 'button', textContent: said.cancel });
  const buttons = make('div', 'buttons');
  buttons.append(save, cancel, hint);
  form.append(title.wrapper, tags.wrapper, buttons);
  const close = () => {
    form.remove();
    row.focus();
  };
  cancel.addEventListener('click', close);
  form.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    event.stopPropagation();
    close();
  });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    save.disabled = true;
    try {
      const changed = await edit(bookmark.id, { title: title.input.value.trim(), tags: tagsIn(tags.input.value) });
      close();
      saved(changed);
    } catch (error) {
      hint.textContent = error instanceof Refused && error.code === 'body_invalid' ? said.tagsRefused : said.editFailed;
      failed(error);
    }
    save.disabled = false;
  });
  row.append(form);
  title.input.focus();
}
