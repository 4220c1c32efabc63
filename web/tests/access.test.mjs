// By key, by screen reader, on a phone, in the dark, with a long past; and the pictures of it (GODWIT_WEB_SHOTS).
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { world } from './support/world.mjs';
import { screenshot } from './support/browser.mjs';
import { generator } from './support/bundle.mjs';
import { eventually, expectCount, expectText, expectTexts } from './support/expect.mjs';
import { delta, ending, figures, says } from './support/fake_server.mjs';
import { answers, ask, bubbles, button, field, openSettings, say, settled } from './support/steps.mjs';

const { scene } = world();
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

async function expectAccessible(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  const told = violations.map((item) => `${item.id}: ${item.help}\n  ${item.nodes.map((node) => `${node.html} ${node.failureSummary}`).join('\n  ')}`);
  assert.deepEqual(told, [], what);
}

const rich = `Postgres and SQLite differ in **where they run**, less in how well they keep data.

| | SQLite | Postgres |
|---|---|---:|
| Runs | in your program | as a server |
| Writers at once | 1 | many |
| Backup | copy a file | \`pg_dump\` |

# When to move

1. Several machines write.
2. You need *row level* rights.
   - and roles
- [x] read the [manual](https://example.org/)
- [ ] measure

> A small shop has a hundred writes a minute.

\`\`\`python
def merge(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge overlapping intervals."""
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))  # a new one
    return merged
\`\`\`

The sum takes $O(n)$ steps: $$\\sum_{i=1}^{n} i = \\frac{n(n+1)}{2}$$ and $5 is a price.

![chart](https://evil.example/p.png)`;

const answerRichly = (fake) => {
  fake.answer = (body, stream) =>
    stream.play([delta({ reasoning_content: 'A comparison; a table will do.' }), ...says(rich).slice(1, -1), figures(1200, 300, 900)]);
};

const looks = [
  ['light', { colorScheme: 'light' }],
  ['dark', { colorScheme: 'dark' }],
  ['mobile', { colorScheme: 'light', viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }],
];

for (const [name, context] of looks)
  scene(`${name}: accessible in every state`, async (page, fake) => {
    answerRichly(fake);
    await screenshot(page, `${name}-empty`);
    await expectAccessible(page, 'empty');
    await ask(page, 'Compare Postgres and SQLite for a small web shop.\nUse a table.');
    await page.locator('.prose math').first().waitFor();
    await page.locator('.hljs-keyword').first().waitFor();
    await screenshot(page, `${name}-chat`);
    await page.locator('.thread').evaluate((thread) => (thread.scrollTop = 0));
    await screenshot(page, `${name}-top`);
    await expectAccessible(page, 'chat');
    fake.answer = (body, stream) => stream.play([delta({ tool_calls: [{ index: 0, id: 'c', function: { name: 'weather', arguments: '{"city":"Oslo"}' } }] }), ending('tool_calls')]);
    await ask(page, 'weather?');
    fake.answer = (body, stream) => stream.error(400, 'the prompt has 5000 tokens, and the maximum context length is 4096');
    await page.locator('.call textarea').fill('rain');
    await page.locator('.call button').click();
    await expectText(page.locator('.failure'), 'maximum context length');
    await screenshot(page, `${name}-calls`);
    await expectAccessible(page, 'calls and failures');
    await button(page, 'Chat settings').click();
    await screenshot(page, `${name}-panel`);
    await expectAccessible(page, 'chat settings');
    await page.keyboard.press('Escape');
    if (name === 'mobile') {
      await button(page, 'Conversations').click();
      await page.waitForTimeout(250);
      await screenshot(page, 'mobile-list');
      await expectAccessible(page, 'list');
      await page.keyboard.press('Escape');
    }
    await page.keyboard.press('Control+,');
    await page.getByRole('dialog', { name: 'Settings' }).waitFor();
    await screenshot(page, `${name}-settings`);
    await expectAccessible(page, 'settings');
  }, { context });

scene('everything is reached and done by key', async (page, fake) => {
  fake.answer = (body, stream, index) => stream.play(says(`Answer ${index + 1}.`));
  const focused = () => page.evaluate(() => document.activeElement.getAttribute('aria-label') || document.activeElement.textContent);
  const tabTo = async (name) => {
    for (let i = 0; i < 40; i++) {
      if ((await focused()) === name) return;
      await page.keyboard.press('Tab');
    }
    assert.fail(`no way by Tab to ${name}`);
  };
  await page.evaluate(() => {
    document.body.tabIndex = -1; // as a page begins that gives the focus to nobody
    document.body.focus();
  });
  await page.keyboard.press('Tab');
  assert.equal(await focused(), 'Skip to the message field');
  await page.keyboard.press('Enter');
  assert.equal(await focused(), 'Message');
  await page.keyboard.type('by key');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('two lines');
  await page.keyboard.press('Enter');
  await settled(page, 1);
  await expectTexts(bubbles(page), ['by key\ntwo lines']);
  assert.equal(await focused(), 'Message', 'the field keeps the focus');
  await page.keyboard.press('Control+k');
  await eventually(async () => assert.equal(await focused(), 'Search the conversations'));
  await page.keyboard.press('Tab');
  assert.match(await focused(), /^by key/);
  await tabTo('Rename “by key”');
  await page.keyboard.press('Enter');
  await page.keyboard.type('renamed');
  await page.keyboard.press('Enter');
  await expectTexts(page.locator('.opener'), ['renamed']);
  await eventually(async () => assert.equal(await focused(), 'renamed'));
  await tabTo('Edit');
  await page.keyboard.press('Enter');
  await page.keyboard.type(' now');
  await page.keyboard.press('Control+Enter');
  await expectTexts(answers(page).locator('.prose'), ['Answer 2.']);
  await page.keyboard.press('Control+.');
  await eventually(async () => assert.equal(await focused(), 'Chat settings'));
  await page.keyboard.press('Escape');
  await eventually(async () => assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-controls')), 'panel'), 'back on its button');
  await page.keyboard.press('Control+,');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await expectCount(page.getByRole('dialog'), 0);
  await page.keyboard.press('Control+Shift+o');
  await expectText(page.locator('.empty h2'), 'What would you like to know?');
  await eventually(async () => assert.equal(await focused(), 'Message'));
  fake.answer = (body, stream) => stream.send(delta({ content: 'endless' }));
  await page.keyboard.type('stop me');
  await page.keyboard.press('Enter');
  await expectText(answers(page).locator('.prose'), 'endless');
  await page.keyboard.press('Escape');
  await expectText(answers(page).locator('.ending'), 'Stopped.');
});

scene('a screen reader is told what comes, block by block, and how it ends', async (page, fake) => {
  await page.evaluate(() => {
    window.told = [];
    new MutationObserver((changes) => {
      for (const { addedNodes } of changes) for (const node of addedNodes) window.told.push(node.textContent.trim());
    }).observe(document.getElementById('announcer'), { childList: true });
  });
  fake.answer = (body, stream) => stream.play(says('First **block**.\n\nSecond block.\n\nThird one.\n\nLast.'), 40);
  await ask(page, 'x');
  await expectText(page.locator('#announcer'), 'Answer finished.');
  const told = (await page.evaluate(() => window.told)).join(' ').replace(/\s+/g, ' ');
  assert.equal(told, 'Godwit is answering. First block. Second block. Third one. Last. Answer finished.');
  assert.equal(await page.getByRole('log', { name: 'Conversation' }).getAttribute('aria-live'), 'off');
});

scene('a conversation of 500 messages opens at its end, and its far past is plain until it is near', async (page) => {
  const messages = Array.from({ length: 500 }, (_, i) => ({
    id: `m${i}`,
    parent: i ? `m${i - 1}` : null,
    role: i % 2 ? 'assistant' : 'user',
    created: i + 1,
    content: i % 2 ? `Answer **${i}**\n\n${'Some text of a paragraph. '.repeat(12)}\n\n\`\`\`js\nlet a = ${i};\n\`\`\`` : `Question ${i}`,
  }));
  const file = { format: 'godwit-conversations', conversations: [{ title: 'long', leaf: 'm499', messages }] };
  await openSettings(page);
  await page.locator('#import').setInputFiles({ name: 'x.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(file)) });
  await expectCount(page.locator('.message'), 500);
  await expectText(answers(page).last().locator('strong'), '499');
  await eventually(async () => assert.ok(await answers(page).last().locator('.code-block').isVisible()));
  const plain = await page.locator('.prose.is-plain').count();
  assert.ok(plain > 200 && plain < 250, `${plain} of 250 answers are plain`);
  const isAtEnd = () => page.locator('.thread').evaluate((thread) => thread.scrollHeight - thread.scrollTop - thread.clientHeight < 5);
  await eventually(async () => assert.ok(await isAtEnd()), 'shown from its end');
  await page.locator('.thread').evaluate((thread) => (thread.scrollTop = 0));
  await expectText(answers(page).first().locator('strong'), '1');
  await button(page, 'Latest').click();
  await eventually(async () => assert.ok(await isAtEnd()));
});

scene('an answer that streams looks as it does afterwards, however it is cut', async (page, fake) => {
  const seed = Date.now() % 1_000_000;
  console.log(`seed ${seed}`);
  const random = generator(seed);
  const text = `${rich}\n\nSee [the text][ref] and <b>html</b>.\n\n~~~sh\necho a\n~~~\n\n[ref]: https://example.org/\n\nThe very end.`;
  const pieces = [];
  for (let at = 0; at < text.length; ) {
    const next = at + 1 + Math.floor(random() * 12);
    pieces.push(delta({ content: text.slice(at, next) }));
    at = next;
  }
  fake.answer = async (body, stream) => {
    for (const piece of pieces) stream.send(piece), await new Promise((done) => setTimeout(done, 2));
    await new Promise((done) => (fake.goOn = done));
    await stream.play([ending()]);
  };
  const prose = answers(page).locator('.prose');
  const html = () =>
    prose.evaluate((root) => {
      const copy = root.cloneNode(true);
      copy.querySelector('.tail').replaceWith(...copy.querySelector('.tail').childNodes);
      return copy.innerHTML.replace(/>\s+</g, '><').trim();
    });
  await say(page, 'x');
  await expectText(prose, /The very end\.$/);
  await page.locator('.prose math').first().waitFor();
  await page.locator('.hljs-keyword').first().waitFor();
  await page.locator('.hljs-built_in').last().waitFor();
  const grown = await html();
  assert.ok(grown.includes('<table>'));
  fake.goOn();
  await settled(page, 1);
  // A reference is known when its definition has come: the one thing that may be read again at the end.
  const wanted = grown.replace('[the text][ref]', '<a href="https://example.org/" target="_blank" rel="noopener noreferrer nofollow">the text</a>');
  await eventually(async () => assert.equal(await html(), wanted));
});

scene('code has its colours while it is written, and every character', async (page, fake) => {
  const lines = Array.from({ length: 400 }, (_, i) => `def f${i}(a):\n    return a < "${i}"\n`);
  fake.answer = async (body, stream) => {
    stream.send(delta({ content: '```python\n' }));
    for (const line of lines) {
      if (stream.isClosed || fake.isEnough) break;
      fake.written = (fake.written ?? '') + line;
      for (const piece of line.match(/[\s\S]{1,9}/g)) stream.send(delta({ content: piece }));
      await new Promise((done) => setTimeout(done, 20));
    }
    await new Promise((done) => (fake.goOn = done));
    await stream.play([ending()]);
  };
  await say(page, 'x');
  const growing = page.locator('article.answer[aria-busy=true] .code-block code');
  await growing.locator('.hljs-keyword').nth(20).waitFor();
  fake.isEnough = true;
  await eventually(async () => assert.equal(await growing.textContent(), fake.written));
  fake.goOn();
  await settled(page, 1);
});

scene('the reader who scrolls up stays there while the answer grows', async (page, fake) => {
  fake.answer = async (body, stream) => {
    for (let i = 0; i < 120 && !stream.isClosed; i++) {
      stream.send(delta({ content: `Line ${i}\n\n` }));
      await new Promise((done) => setTimeout(done, 10));
    }
    await stream.play([ending()]);
  };
  await say(page, 'x');
  await expectText(answers(page).locator('.prose'), 'Line 40');
  const top = () => page.locator('.thread').evaluate((thread) => thread.scrollTop);
  assert.ok((await top()) > 100, 'it follows');
  await page.locator('.thread').hover();
  await page.mouse.wheel(0, -300);
  await page.waitForTimeout(100);
  const left = await top();
  await expectText(answers(page).locator('.prose'), 'Line 100');
  assert.ok(Math.abs((await top()) - left) < 5, 'it was moved');
  await settled(page, 1);
  await field(page).focus();
});
