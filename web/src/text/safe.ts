// From untrusted HTML to a fragment that may be shown: an allow list, no style, no ids, nothing loaded from elsewhere.
import DOMPurify, { type Config } from 'dompurify';

const TAGS = [
  'a', 'abbr', 'b', 'blockquote', 'br', 'caption', 'code', 'dd', 'del', 'details', 'div', 'dl', 'dt', 'em', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6',
  'hr', 'i', 'img', 'input', 'ins', 'kbd', 'li', 'mark', 'ol', 'p', 'pre', 'q', 's', 'samp', 'small', 'span', 'strong', 'sub', 'summary', 'sup',
  'table', 'tbody', 'td', 'tfoot', 'th', 'thead', 'tr', 'u', 'ul', 'var',
];
const ATTRIBUTES = ['align', 'alt', 'checked', 'class', 'colspan', 'disabled', 'href', 'open', 'rowspan', 'src', 'start', 'title', 'type'];

const FOREIGN_CLASS = /^language-[\w+#.-]{1,40}$/;
const OWN_CLASS = /^[\w -]+$/;
const LINK = /^(?:https?:|mailto:)/i;
const IMAGE = /^(?:https?:|data:image\/(?:png|jpeg|gif|webp);base64,)/i;
let classes = FOREIGN_CLASS; // which may stay in the call that runs

DOMPurify.addHook('uponSanitizeAttribute', (_node, data) => {
  if (data.attrName === 'class' && !classes.test(data.attrValue)) data.keepAttr = false;
  if (data.attrName === 'href' && !LINK.test(data.attrValue)) data.keepAttr = false;
  if (data.attrName === 'src' && !IMAGE.test(data.attrValue)) data.keepAttr = false;
});
DOMPurify.addHook('afterSanitizeAttributes', (node) => {
  // Of all inputs only the boxes of task lists are Markdown.
  if (node.nodeName !== 'INPUT') return;
  if (node.getAttribute('type') !== 'checkbox') return node.remove();
  node.setAttribute('disabled', '');
});

function purify(html: string, allowed: RegExp, config: Config): DocumentFragment {
  classes = allowed;
  return DOMPurify.sanitize(html, { ...config, RETURN_DOM_FRAGMENT: true });
}

export function sanitise(html: string): DocumentFragment {
  return purify(html, FOREIGN_CLASS, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  });
}

// What our highlighter made: spans with classes.
export const sanitiseSpans = (html: string): DocumentFragment =>
  purify(html, OWN_CLASS, { ALLOWED_TAGS: ['span'], ALLOWED_ATTR: ['class'] });

// What our TeX setter made. Its styles come back as data-css, since attributes named style are not let through.
export const sanitiseMath = (html: string): DocumentFragment =>
  purify(html, OWN_CLASS, { USE_PROFILES: { mathMl: true }, ADD_ATTR: ['data-css'], FORBID_ATTR: ['style', 'href', 'id'] });
