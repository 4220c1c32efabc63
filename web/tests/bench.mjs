// How fast the page is here: opening a long conversation, and drawing answers that come faster than any model writes.
//   node tests/bench.mjs      (./dev bench web)
import { launch, openPage } from './support/browser.mjs';
import { FakeServer, delta, ending } from './support/fake_server.mjs';
import { startGodwit } from './support/godwit.mjs';
import { openSettings, say, settled } from './support/steps.mjs';

const TOKENS = 20_000;
const MESSAGES = 500;

const pieces = {
  paragraphs: (i) => (i % 60 === 59 ? 'word.\n\n' : ' word'),
  'one list': (i) => (i % 20 === 0 ? '\n- item' : ' word'),
  'one code block': (i) => (i === 0 ? '```python\n' : i % 10 === 9 ? '\n' : ' x = 1;'),
};

const longConversation = () => ({
  format: 'godwit-conversations',
  conversations: [{
    title: 'long',
    leaf: `m${MESSAGES - 1}`,
    messages: Array.from({ length: MESSAGES }, (_, i) => ({
      id: `m${i}`,
      parent: i ? `m${i - 1}` : null,
      role: i % 2 ? 'assistant' : 'user',
      created: i + 1,
      content: i % 2 ? `**${i}** ${'Some text of a paragraph. '.repeat(40)}\n\n\`\`\`js\nlet a = ${i};\n\`\`\`` : `Question ${i}`,
    })),
  }],
});

async function opening(page) {
  await openSettings(page);
  await page.locator('#import').setInputFiles({ name: 'x.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(longConversation())) });
  await page.locator('.message').nth(MESSAGES - 1).waitFor();
  await page.getByRole('button', { name: 'New chat', exact: true }).first().click();
  return page.evaluate(async (count) => {
    const began = performance.now();
    document.querySelector('.opener').click();
    const isShown = () => document.querySelectorAll('.message').length === count && document.querySelector('.message:last-child .prose strong');
    while (!isShown()) await new Promise(requestAnimationFrame);
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - began;
  }, MESSAGES);
}

async function streaming(page, fake, piece) {
  fake.answer = async (body, stream) => {
    for (let i = 0; i < TOKENS && !stream.isClosed; i++) {
      stream.send(delta({ content: piece(i) }));
      if (i % 20 === 0) await new Promise((done) => setTimeout(done, 1));
    }
    await stream.play([ending()]);
  };
  await page.evaluate(() => {
    window.longest = 0;
    window.frames = 0;
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => (window.longest = Math.max(window.longest, entry.duration)))).observe({ type: 'longtask' });
    const count = () => (window.frames++, requestAnimationFrame(count));
    count();
  });
  const began = performance.now();
  await say(page, 'x');
  page.context().setDefaultTimeout(120_000);
  await settled(page, 1);
  const seconds = (performance.now() - began) / 1000;
  return { seconds, ...(await page.evaluate(() => ({ longest: window.longest, frames: window.frames }))) };
}

const [browser, godwit] = await Promise.all([launch(), startGodwit('chain')]);
const fake = await new FakeServer(godwit.origin).start();
const page = await openPage(browser, fake.origin);
console.log(`opening ${MESSAGES} messages: ${(await opening(page)).toFixed(0)} ms`);
await page.context().close();
for (const [name, piece] of Object.entries(pieces)) {
  const fresh = await openPage(browser, fake.origin);
  const { seconds, longest, frames } = await streaming(fresh, fake, piece);
  console.log(`${TOKENS} tokens, ${name}: ${(TOKENS / seconds).toFixed(0)} tokens/s, ${(frames / seconds).toFixed(0)} frames/s, longest pause ${longest.toFixed(0)} ms`);
  await fresh.context().close();
}
await browser.close();
await fake.kill();
await godwit.stop();
