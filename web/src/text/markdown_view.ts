// Shows Markdown that grows: blocks that are complete are set once and stay; only the last one is read again. A fenced block
// that is still open just takes more text. So an answer costs what its length is, not the square of it.
import type { Token } from 'marked';
import { codeBlock, decorate } from './decorate';
import { highlighted } from './highlight';
import { openFence, split, toHtml } from './parser';
import { sanitise } from './safe';

const REFERENCE = /^ {0,3}\[[^\]\n]+\]:/m;

// Block by block, as they also come while they stream: HTML that one leaves open must not swallow the next.
function render(tokens: Token[]): DocumentFragment {
  const fragment = document.createDocumentFragment();
  for (const token of tokens) if (token.type !== 'space') fragment.append(decorate(sanitise(toHtml([token]))));
  return fragment;
}

const length = (tokens: Token[]): number => tokens.reduce((sum, token) => sum + token.raw.length, 0);

// A code block that is still open. Its lines get their colours a moment after they came, all of them in a small share of the
// time; behind them stands the plain rest.
class GrowingCode {
  readonly block: HTMLElement;
  private readonly code = document.createElement('code');
  private rest = document.createTextNode('');
  private shown = 0; // characters of the body that stand there
  private colourAt = 0;

  // `from`: where its body begins in the source; `closes`: what its last line looks like.
  constructor(
    private readonly language: string,
    private readonly from: number,
    private readonly closes: RegExp,
  ) {
    const pre = document.createElement('pre');
    this.code.append(this.rest);
    pre.append(this.code);
    this.block = codeBlock(language, pre, this.code);
  }

  // Takes what has come; false when the block has been closed.
  grow(source: string): boolean {
    const body = source.slice(this.from);
    if (this.closes.test(body.slice(Math.max(0, this.shown - 200)))) return false;
    this.rest.appendData(body.slice(this.shown));
    this.shown = body.length;
    this.colour(body);
    return true;
  }

  private colour(body: string): void {
    const began = performance.now();
    if (began < this.colourAt) return;
    const end = body.lastIndexOf('\n') + 1;
    const coloured = highlighted(body.slice(0, end), this.language);
    if (!coloured) return;
    this.rest = document.createTextNode(body.slice(end));
    this.code.replaceChildren(coloured, this.rest);
    const ended = performance.now();
    this.colourAt = ended + 100 + 10 * (ended - began);
  }
}

export class MarkdownView {
  private source = '';
  private stable = 0; // characters whose blocks are complete
  private code: GrowingCode | null = null;
  private readonly tail = document.createElement('div');

  // `onBlock` is told the text of each block that is complete.
  constructor(
    private readonly root: HTMLElement,
    private readonly onBlock: (text: string) => void = () => {},
  ) {
    this.tail.className = 'tail';
    root.replaceChildren(this.tail);
  }

  update(text: string, isComplete: boolean): void {
    const source = text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text;
    // What is defined below is used above: such a text is read once more as a whole.
    if (!source.startsWith(this.source) || (isComplete && REFERENCE.test(source))) this.reset();
    this.source = source;
    if (!isComplete && this.code?.grow(this.source)) return;
    this.code = null;
    this.readTail(isComplete);
  }

  private reset(): void {
    this.stable = 0;
    this.code = null;
    this.root.replaceChildren(this.tail);
  }

  private readTail(isComplete: boolean): void {
    const { stable, tail } = split(this.source.slice(this.stable));
    if (stable.length > 0) {
      const fragment = render(stable);
      this.onBlock(fragment.textContent ?? '');
      this.tail.before(fragment);
      this.stable += length(stable);
    }
    this.tail.replaceChildren((isComplete ? null : this.openCode()) ?? render(tail));
  }

  // The last block as code that grows, if that is what it is.
  private openCode(): HTMLElement | null {
    const fence = openFence(this.source.slice(this.stable));
    if (!fence) return null;
    this.code = new GrowingCode(fence.info.split(/\s/)[0] ?? '', this.source.length - fence.body.length, fence.closes);
    this.code.grow(this.source);
    return this.code.block;
  }

  // Tells what onBlock has not been told yet.
  tellRest(): void {
    this.onBlock(this.tail.textContent ?? '');
  }
}
