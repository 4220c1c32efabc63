// TeX to MathML, which browsers set themselves. The setter is a file of its own, loaded with the first formula.
import { sanitiseMath } from './safe';

type Temml = typeof import('temml').default;

let temml: Temml | null = null;
let loading: Promise<unknown> | null = null;
const HARMLESS_STYLE = /^(?!.*url)[\w\s:;.,%#()+-]*$/i;

// `style` attributes are refused by the page's policy; the same through the object model is not.
function restyle(root: ParentNode): void {
  for (const node of root.querySelectorAll<MathMLElement>('[data-css]')) {
    const css = node.getAttribute('data-css') ?? '';
    node.removeAttribute('data-css');
    if (HARMLESS_STYLE.test(css)) node.style.cssText = css;
  }
}

// Replaces <code> that holds TeX by the formula; what is no TeX stays as it is.
export function setMath(code: HTMLElement): void {
  const tex = code.textContent ?? '';
  const displayMode = code.className.endsWith('-block');
  const set = (): void => {
    let html: string;
    try {
      html = temml!.renderToString(tex, { displayMode, trust: false, throwOnError: true, maxExpand: 200, maxSize: [20, 20] });
    } catch {
      return;
    }
    const fragment = sanitiseMath(html.replaceAll(' style="', ' data-css="'));
    restyle(fragment);
    const frame = document.createElement('span');
    frame.className = displayMode ? 'formula formula-block' : 'formula';
    frame.append(fragment);
    code.replaceWith(frame);
  };
  if (temml) return set();
  loading ??= import('temml').then((loaded) => (temml = loaded.default));
  void loading.then(set, () => {});
}
