// What a sanitised fragment becomes before it is shown: code with a head and a copy button, tables that scroll, links that
// open elsewhere, images of other hosts behind a link.
import { highlightInto } from './highlight';
import { setMath } from './math';

function element<K extends keyof HTMLElementTagNameMap>(name: K, className: string, text = ''): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  made.className = className;
  if (text) made.textContent = text;
  return made;
}

const languageOf = (code: Element): string => /^language-(\S+)/.exec(code.className)?.[1] ?? '';

export function copyButton(label: string, text: () => string): HTMLButtonElement {
  const button = element('button', 'copy', 'Copy');
  button.type = 'button';
  button.setAttribute('aria-label', label);
  button.addEventListener('click', () => {
    void copyText(text()).then((done) => {
      button.textContent = done ? 'Copied' : 'Not copied';
      setTimeout(() => (button.textContent = 'Copy'), 1500);
    });
  });
  return button;
}

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text); // plain http from another machine has no clipboard
  }
}

function copyBySelection(text: string): boolean {
  const area = element('textarea', 'visually-hidden');
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}

// The frame around a code block; `pre` is taken into it.
export function codeBlock(language: string, pre: HTMLPreElement, code: HTMLElement): HTMLElement {
  const frame = element('div', 'code-block');
  const head = element('div', 'code-head');
  head.append(element('span', 'code-language', language || 'text'), copyButton('Copy this code', () => code.textContent ?? ''));
  pre.tabIndex = 0; // it scrolls, so the keyboard must reach it
  pre.setAttribute('role', 'group');
  pre.setAttribute('aria-label', language ? `Code, ${language}` : 'Code');
  frame.append(head, pre);
  return frame;
}

function decorateCode(root: ParentNode): void {
  for (const code of root.querySelectorAll<HTMLElement>('pre > code')) {
    const pre = code.parentElement as HTMLPreElement;
    const language = languageOf(code);
    const place = document.createComment('');
    pre.replaceWith(place);
    place.replaceWith(codeBlock(language, pre, code));
    if (language !== 'math') highlightInto(code, language);
  }
  for (const code of root.querySelectorAll<HTMLElement>('code.language-math, code.language-math-block')) setMath(code);
}

function decorateTables(root: ParentNode): void {
  for (const head of root.querySelectorAll('th'))
    if (!head.textContent?.trim()) head.replaceWith(document.createElement('td')); // heads nothing
  for (const table of root.querySelectorAll('table')) {
    const frame = element('div', 'table-frame');
    frame.tabIndex = 0;
    frame.setAttribute('role', 'group');
    frame.setAttribute('aria-label', 'Table');
    table.replaceWith(frame);
    frame.append(table);
  }
}

function decorateLinks(root: ParentNode): void {
  for (const link of root.querySelectorAll('a[href]')) {
    link.setAttribute('target', '_blank');
    link.setAttribute('rel', 'noopener noreferrer nofollow');
  }
}

// An image of another host would tell that host what is read here. It is loaded by a click only, and in another tab.
function decorateImages(root: ParentNode): void {
  for (const image of root.querySelectorAll('img')) {
    const source = image.getAttribute('src') ?? '';
    if (source.startsWith('data:')) continue;
    const alt = image.getAttribute('alt') || 'no description';
    if (!/^https?:/i.test(source)) {
      image.replaceWith(`[image: ${alt}]`);
      continue;
    }
    const isInLink = image.closest('a') !== null;
    const stand = document.createElement(isInLink ? 'span' : 'a');
    stand.className = 'remote-image';
    stand.textContent = `Image from ${new URL(source).host}: ${alt}`;
    if (!isInLink) {
      stand.setAttribute('href', source);
      stand.setAttribute('title', 'Not loaded. Opens in a new tab.');
    }
    image.replaceWith(stand);
  }
}

export function decorate(fragment: DocumentFragment): DocumentFragment {
  decorateCode(fragment);
  decorateTables(fragment);
  decorateImages(fragment);
  decorateLinks(fragment);
  for (const box of fragment.querySelectorAll('input')) box.setAttribute('aria-label', box.hasAttribute('checked') ? 'done' : 'open');
  return fragment;
}
