// Checks that wait until they hold.
import assert from 'node:assert/strict';

const PATIENCE_MS = 8000;

export async function eventually(look, what) {
  const end = Date.now() + PATIENCE_MS;
  for (let last; ; ) {
    try {
      return await look();
    } catch (error) {
      last = error;
    }
    if (Date.now() > end) throw new Error(`${what ?? 'in vain'}: ${last.message}`, { cause: last });
    await new Promise((done) => setTimeout(done, 25));
  }
}

export const expectText = (locator, wanted) =>
  eventually(async () => {
    const text = await locator.first().innerText({ timeout: 2000 });
    if (wanted instanceof RegExp) assert.match(text, wanted);
    else assert.ok(text.includes(wanted), `${JSON.stringify(text)} lacks ${JSON.stringify(wanted)}`);
  }, `text ${wanted}`);

export const expectTexts = (locator, wanted) => eventually(async () => assert.deepEqual(await locator.allInnerTexts(), wanted), `texts ${wanted}`);

export const expectCount = (locator, wanted) => eventually(async () => assert.equal(await locator.count(), wanted), `${wanted} of them`);

// Nothing was asked of another host, no script failed, no policy was breached.
export function expectQuiet(page) {
  assert.deepEqual(page.outside, [], 'asked of other hosts');
  assert.deepEqual(page.complaints, [], 'complaints of the page');
}
