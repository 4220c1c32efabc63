// Colours of code. The highlighter is a file of its own, loaded with the first block that needs it.
import { sanitiseSpans } from './safe';

type Highlighter = typeof import('./highlighter');

let highlighter: Highlighter | null = null;
let loading: Promise<unknown> | null = null;
const MOST_CHARACTERS = 60_000;

function whenLoaded(then: () => void): void {
  if (highlighter) return then();
  loading ??= import('./highlighter').then((loaded) => (highlighter = loaded));
  void loading.then(then, () => {});
}

// The coloured text, or null for a language that is not known, a text that is too long, a highlighter still on its way.
export function highlighted(text: string, language: string): DocumentFragment | null {
  if (!language || text.length > MOST_CHARACTERS) return null;
  if (!highlighter) {
    whenLoaded(() => {});
    return null;
  }
  const html = highlighter.highlight(text, language);
  return html === null ? null : sanitiseSpans(html);
}

export function highlightInto(code: HTMLElement, language: string): void {
  const text = code.textContent ?? '';
  if (!language || text.length > MOST_CHARACTERS) return;
  whenLoaded(() => {
    const coloured = highlighted(text, language);
    if (coloured && code.textContent === text) code.replaceChildren(coloured);
  });
}
