// The page and a real godwit with a tiny model, nothing between them.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, openPage } from './support/browser.mjs';
import { eventually, expectCount, expectQuiet, expectText, expectTexts } from './support/expect.mjs';
import { startGodwit } from './support/godwit.mjs';
import { answers, ask, bubbles, button, downloaded, openSettings, say, settled } from './support/steps.mjs';

const ANSWER = 'a😸b作c'; // what make_models.py's `chain` says to everything

let browser;
before(async () => (browser = await launch()));
after(() => browser?.close());

// Random weights end an answer at any moment; a test that needs one that goes on says so to the server.
const withoutEnd = (page) =>
  page.route('**/v1/chat/completions', (route) => route.continue({ postData: { ...route.request().postDataJSON(), ignore_eos: true } }));

const scene = (name, model, run, flags = []) =>
  test(name, async () => {
    const godwit = await startGodwit(model, flags);
    try {
      const page = await openPage(browser, godwit.origin);
      await run(page, godwit);
      expectQuiet(page);
      await page.context().close();
    } finally {
      await godwit.stop();
    }
  });

scene('T-24.1: send, branch, edit, reload, export, import', 'chain', async (page) => {
  await ask(page, 'one');
  await expectTexts(answers(page).locator('.prose'), [ANSWER]);
  await expectText(answers(page).locator('.stats'), /tokens\/s · \d+ tokens · first token/);
  await expectText(page.locator('.context'), 'of 131,072 tokens of context');
  await ask(page, 'two');
  await button(page, 'Answer again').last().click();
  await settled(page, 2);
  await expectText(page.locator('.branches'), '2/2');
  await page.locator('article.user').first().hover();
  await page.locator('article.user').first().getByRole('button', { name: 'Edit' }).click();
  await page.getByRole('textbox', { name: 'Edit this message' }).fill('other');
  await page.keyboard.press('Control+Enter');
  await settled(page, 1);
  await expectTexts(bubbles(page), ['other']);
  await page.reload();
  await expectTexts(bubbles(page), ['other']);
  await button(page, 'Previous version').click();
  await expectTexts(bubbles(page), ['one', 'two']);
  await openSettings(page);
  const file = await downloaded(page, () => button(page, 'Export all').click());
  await button(page, 'Delete all').click();
  await button(page, 'Really delete all').click();
  await expectCount(page.locator('.opener'), 0);
  await page.locator('#import').setInputFiles({ name: 'x.json', mimeType: 'application/json', buffer: Buffer.from(file) });
  await expectTexts(bubbles(page), ['one', 'two']);
  await expectTexts(answers(page).locator('.prose'), [ANSWER, ANSWER]);
});

scene('an answer that would not end is stopped, and the next one starts at once', 'random', async (page) => {
  await withoutEnd(page);
  await say(page, 'go on');
  await page.locator('article.answer .prose').filter({ hasText: /\S/ }).waitFor();
  await page.keyboard.press('Escape');
  await expectText(answers(page).locator('.ending'), 'Stopped.');
  await button(page, 'Chat settings').click();
  await page.locator('[name=max_tokens]').fill('5');
  await page.locator('[name=max_tokens]').press('Tab');
  await ask(page, 'again');
  await expectText(answers(page).last().locator('.stats'), /\b5 tokens/);
});

scene('what the server refuses is shown in its words', 'chain', async (page) => {
  await button(page, 'Chat settings').click();
  await page.locator('[name=top_p]').fill('7');
  await page.locator('[name=top_p]').press('Tab');
  await ask(page, 'x');
  await expectText(answers(page).locator('.failure'), /^Error 400\. .*top_p/);
});

test('T-24.5: a server that ends in the middle and starts again', async () => {
  const first = await startGodwit('random');
  const page = await openPage(browser, first.origin);
  await withoutEnd(page);
  await say(page, 'go on');
  await page.locator('article.answer .prose').filter({ hasText: /\S{3}/ }).waitFor();
  first.kill();
  await expectText(answers(page).locator('.failure'), /^Interrupted\..*Waiting for the server/);
  const second = await startGodwit('random', ['--port', String(first.port)]);
  try {
    await expectText(answers(page).locator('.failure'), 'The server is back.');
    await button(page, 'Chat settings').click();
    await page.locator('[name=max_tokens]').fill('3');
    await page.locator('[name=max_tokens]').press('Tab');
    await button(page, 'Try again').click();
    await settled(page, 1);
    await expectText(page.locator('.branches'), '2/2');
    await expectCount(page.locator('.failure'), 0);
    expectQuiet(page);
    await page.context().close();
  } finally {
    await second.stop();
  }
});

test('the wire: what is public, how long it is kept, what changes it', async () => {
  const { origin, stop } = await startGodwit('chain', ['--api-key', 'secret']);
  const html = { Accept: 'text/html,*/*;q=0.8' };
  try {
    const index = await fetch(origin, { headers: html });
    assert.equal(index.status, 200);
    assert.equal(index.headers.get('content-type'), 'text/html; charset=utf-8');
    assert.equal(index.headers.get('cache-control'), 'no-cache');
    assert.match(index.headers.get('content-security-policy'), /^default-src 'self';.*connect-src 'self'.*frame-ancestors 'none'/);
    const same = await fetch(origin, { headers: { ...html, 'If-None-Match': index.headers.get('etag') } });
    assert.equal(same.status, 304);
    assert.equal(await same.text(), '');
    const text = await index.text();
    const names = [...text.matchAll(/(?:href|src)="([^"]+)"/g)].map((match) => match[1]);
    assert.equal(names.length, 4); // icon, licences, style, script
    for (const name of names) {
      const asset = await fetch(`${origin}/${name}`);
      assert.equal(asset.status, 200, name);
      assert.equal(asset.headers.get('cache-control'), 'public, max-age=31536000, immutable');
      assert.equal(asset.headers.get('x-content-type-options'), 'nosniff');
      const head = await fetch(`${origin}/${name}`, { method: 'HEAD' });
      assert.equal(head.headers.get('content-length'), String((await asset.arrayBuffer()).byteLength));
    }
    assert.equal((await fetch(`${origin}/assets/nothing.js`)).status, 404);
    assert.equal((await fetch(`${origin}/v1/models`)).status, 401);
    const plain = await fetch(origin);
    assert.match(plain.headers.get('content-type'), /^text\/plain/);
    assert.equal((await fetch(origin, { method: 'HEAD' })).status, 200);
    const page = await browser.newPage();
    await page.goto(origin);
    await page.getByRole('button', { name: 'An API key is needed' }).click();
    await page.getByLabel('API key').fill('secret');
    await page.getByRole('button', { name: 'Use this key' }).click();
    await expectText(page.locator('#key-state'), 'The server answers.');
    await eventually(async () => assert.equal(await page.locator('#model').isEnabled(), true));
    await page.context().close();
  } finally {
    await stop();
  }
});
