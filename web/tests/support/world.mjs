// What the browser tests share: one browser, one godwit that serves the page, a fake server for each test.
import { after, before, test } from 'node:test';
import { launch, openPage } from './browser.mjs';
import { expectQuiet } from './expect.mjs';
import { FakeServer } from './fake_server.mjs';
import { startGodwit } from './godwit.mjs';

export function world() {
  const shared = {};
  before(async () => {
    [shared.browser, shared.godwit] = await Promise.all([launch(), startGodwit('chain')]);
  });
  after(async () => {
    await shared.browser?.close();
    await shared.godwit?.stop();
  });

  // A test with a page of its own on a fake server of its own. Whatever it does, the page asks nobody else and breaks no rule.
  const scene = (name, run, options = {}) =>
    test(name, async () => {
      const fake = await new FakeServer(shared.godwit.origin).start();
      Object.assign(fake, options.fake);
      const page = await openPage(shared.browser, fake.origin, options.context);
      try {
        await run(page, fake, shared);
        expectQuiet(page);
      } finally {
        await page.context().close();
        await fake.kill();
      }
    });
  return { shared, scene };
}
