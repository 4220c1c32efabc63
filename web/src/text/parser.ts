// GFM plus TeX between dollars, as marked reads it. One instance with our extensions: marked's global one stays as it is.
import { Marked, type TokenizerAndRendererExtension, type Token, type TokensList } from 'marked';

const escapes: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => escapes[character]!);

// Mathematics travels through the sanitiser as code of a language of its own and is set afterwards.
const mathHtml = (tex: string, display: boolean): string =>
  `<code class="language-${display ? 'math-block' : 'math'}">${escapeHtml(tex)}</code>`;

// A blank line ends a formula, as it does in TeX.
const mathBlock: TokenizerAndRendererExtension = {
  name: 'mathBlock',
  level: 'block',
  start: (source) => source.match(/(?:^|\n) {0,3}(?:\$\$|\\\[)/)?.index,
  tokenizer(source) {
    const match = /^ {0,3}(?:\$\$((?:(?!\n[ \t]*\n)[\s\S])+?)\$\$|\\\[((?:(?!\n[ \t]*\n)[\s\S])+?)\\\])[ \t]*(?:\n|$)/.exec(source);
    return match ? { type: 'mathBlock', raw: match[0], text: (match[1] ?? match[2])!.trim() } : undefined;
  },
  renderer: (token) => `<p>${mathHtml(token.text as string, true)}</p>`,
};

// A dollar that opens has no space behind it, one that closes none before it and no digit behind it: prices are text.
const mathInline: TokenizerAndRendererExtension = {
  name: 'mathInline',
  level: 'inline',
  start: (source) => source.search(/\$|\\\(/),
  tokenizer(source) {
    const match =
      /^\$\$([^$\n]+?)\$\$/.exec(source) ?? /^\$(?![\s$])([^$\n]*?[^\s$\\])\$(?!\d)/.exec(source) ?? /^\\\(([\s\S]+?)\\\)/.exec(source);
    return match ? { type: 'mathInline', raw: match[0], text: match[1]!.trim() } : undefined;
  },
  renderer: (token) => mathHtml(token.text as string, false),
};

const marked = new Marked({ gfm: true, extensions: [mathBlock, mathInline] } as never);
marked.use({ extensions: [mathBlock, mathInline] });
marked.use({
  renderer: {
    // The page has headings of its own above those of an answer.
    heading({ tokens, depth }) {
      const level = Math.min(6, depth + 2);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
    },
  },
});

export const lex = (source: string): TokensList => marked.lexer(source);

// HTML that nobody has sanitised yet.
export const toHtml = (tokens: Token[]): string => marked.parser(tokens);

export interface Split {
  stable: Token[]; // nothing that follows can change these
  tail: Token[]; // the last block and what stands behind it
}

const rawLength = (tokens: Token[]): number => tokens.reduce((sum, token) => sum + token.raw.length, 0);

// Where a formula has begun that may still close: until then it reads as other blocks.
function openFormula(tokens: Token[], source: string): number {
  let offset = 0;
  for (const [i, token] of tokens.entries()) {
    const rest = source.slice(offset);
    if (token.type !== 'mathBlock' && /^ {0,3}(?:\$\$|\\\[)/.test(rest) && !/\n[ \t]*\n/.test(rest)) return i;
    offset += token.raw.length;
  }
  return tokens.length;
}

// More text can only change the last block of a text: Markdown's blocks close when the next one opens. What the next one is
// shows when its line is complete: "2" behind a list is a paragraph until it has become "2. second".
export function split(source: string): Split {
  const tokens: Token[] = lex(source.slice(0, source.lastIndexOf('\n') + 1));
  let last = tokens.length - 1;
  while (last > 0 && tokens[last]!.type === 'space') last--;
  const stable = tokens.slice(0, Math.max(0, Math.min(last, openFormula(tokens, source))));
  return { stable, tail: lex(source.slice(rawLength(stable))) };
}

export interface OpenFence {
  info: string;
  body: string; // what stands behind the opening line
  closes: RegExp; // matches at the line that would close it
}

// The fenced code block that `source` begins with, when nothing has closed it yet.
export function openFence(source: string): OpenFence | null {
  const match = /^( {0,3})(`{3,}|~{3,})([^\n]*)\n/.exec(source);
  if (!match || (match[2]!.startsWith('`') && match[3]!.includes('`'))) return null;
  const closes = new RegExp(`(?:^|\\n) {0,3}\\${match[2]![0]}{${match[2]!.length},}[ \\t]*(?=\\n|$)`);
  const body = source.slice(match[0].length);
  return closes.test(body) ? null : { info: match[3]!.trim(), body, closes };
}
