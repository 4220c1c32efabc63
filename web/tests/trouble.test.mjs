// T-24.5 and around it: refusals, broken streams, a server that goes and comes back.
import assert from 'node:assert/strict';
import { world } from './support/world.mjs';
import { eventually, expectCount, expectText, expectTexts } from './support/expect.mjs';
import { delta, says } from './support/fake_server.mjs';
import { answers, ask, button, field, noticed, openSettings, say, settled } from './support/steps.mjs';

const { scene } = world();

scene('a refusal is shown in the words of the server, and tried again', async (page, fake) => {
  fake.answer = (body, stream, index) => (index ? stream.play(says('Now.')) : stream.error(400, 'temperature: 9 is more than <b>5</b>', 'invalid_value'));
  await say(page, 'x');
  await expectText(answers(page).locator('.failure'), 'Error 400. temperature: 9 is more than <b>5</b>');
  await button(page, 'Try again').click();
  await expectText(answers(page).locator('.prose'), 'Now.');
  await expectCount(page.locator('.failure'), 0);
  await expectCount(page.locator('.branches'), 0); // what held nothing was replaced
  assert.deepEqual(fake.requests[1].messages, [{ role: 'user', content: 'x' }]);
});

scene('a failure inside a stream keeps what came before it', async (page, fake) => {
  fake.answer = async (body, stream) => {
    stream.send(delta({ content: 'So far' }));
    stream.send({ error: { message: 'the grammar has no way on', type: 'server_error', param: null, code: null } });
    stream.response.end();
  };
  await say(page, 'x');
  await expectText(answers(page).locator('.failure'), 'Error. the grammar has no way on');
  await expectText(answers(page).locator('.prose'), 'So far');
});

scene('an answer that is cut at the limit can be continued', async (page, fake) => {
  fake.answer = (body, stream) => stream.play([...says('Cut').slice(0, -2), { choices: [{ index: 0, delta: {}, finish_reason: 'length' }] }]);
  await ask(page, 'x');
  await expectText(answers(page).locator('.ending'), 'Cut at the limit of tokens.');
  await expectCount(button(page, 'Continue'), 1);
});

scene('a server that wants a key gets it from the settings', async (page, fake) => {
  fake.key = 'secret';
  await say(page, 'x');
  await expectText(answers(page).locator('.failure'), 'Error 401. an API key is needed');
  await button(page, 'Enter a key').click();
  const dialog = page.getByRole('dialog', { name: 'Settings' });
  await dialog.getByLabel('API key').fill('wrong');
  await dialog.getByRole('button', { name: 'Use this key' }).click();
  await expectText(dialog.locator('#key-state'), 'The server refuses this key.');
  await dialog.getByLabel('API key').fill('secret');
  await dialog.getByRole('button', { name: 'Use this key' }).click();
  await expectText(dialog.locator('#key-state'), 'The server answers.');
  await page.keyboard.press('Escape');
  await button(page, 'Try again').click();
  await expectText(answers(page).locator('.prose'), 'Hello there.');
  assert.equal(await page.evaluate(() => localStorage.getItem('godwit.key')), null, 'kept for this tab only');
  await page.reload();
  await page.locator('#model:enabled').waitFor();
});

scene('a server that restarts in the middle is waited for, and the answer goes on', async (page, fake) => {
  fake.answer = (body, stream, index) => {
    if (index > 0) return stream.play(says(' Second half.'));
    stream.send(delta({ content: 'First half.' }));
  };
  await say(page, 'x');
  await expectText(answers(page).locator('.prose'), 'First half.');
  await fake.kill();
  await expectText(answers(page).locator('.failure'), /Interrupted\..*The connection broke off\..*Waiting for the server/);
  await expectText(page.locator('.server-state'), 'Server not reached');
  assert.ok(await button(page, 'Try again').isDisabled());
  await fake.revive();
  await noticed(page, 'The server is back.');
  await expectText(answers(page).locator('.failure'), 'The server is back.');
  await answers(page).locator('.failure').getByRole('button', { name: 'Continue' }).click();
  await expectTexts(answers(page).locator('.prose'), ['First half. Second half.']);
  await expectCount(page.locator('.failure'), 0);
});

scene('a server that is not there at all is told from one that refuses', async (page, fake) => {
  await fake.kill();
  await say(page, 'x');
  await expectText(answers(page).locator('.failure'), 'The server cannot be reached.');
  await fake.revive();
  await button(page, 'Try again').click();
  await expectText(answers(page).locator('.prose'), 'Hello there.');
});

scene('a page that is loaded anew in the middle offers to go on', async (page, fake) => {
  fake.answer = async (body, stream, index) => {
    if (index > 0) return stream.play(says(' rest.'));
    for (let i = 0; i < 100 && !stream.isClosed; i++) {
      stream.send(delta({ content: `${i} ` }));
      await new Promise((done) => setTimeout(done, 20));
    }
  };
  await say(page, 'x');
  await expectText(answers(page).locator('.prose'), '50');
  await page.reload();
  await expectText(answers(page).locator('.failure'), 'The page was left while this was written.');
  await expectText(answers(page).locator('.prose'), /^0 1 2/);
  await answers(page).locator('.failure').getByRole('button', { name: 'Continue' }).click();
  await settled(page, 1);
  await expectText(answers(page).locator('.prose'), /rest\.$/);
});

scene('another conversation can be read while one is answered', async (page, fake) => {
  let goOn;
  fake.answer = async (body, stream, index) => {
    if (index === 0) return stream.play(says('Old.'));
    stream.send(delta({ content: 'Slow' }));
    await new Promise((done) => (goOn = done));
    await stream.play(says(' but sure.'));
  };
  await ask(page, 'one');
  await button(page, 'New chat').click();
  await say(page, 'two');
  await expectText(answers(page).locator('.prose'), 'Slow');
  await page.locator('.opener', { hasText: 'one' }).click();
  await expectTexts(answers(page).locator('.prose'), ['Old.']);
  goOn();
  await page.locator('.opener', { hasText: 'two' }).click();
  await expectTexts(answers(page).locator('.prose'), ['Slow but sure.']);
});

scene('two tabs see the same conversations', async (page, fake) => {
  const second = await page.context().newPage();
  await second.goto(fake.origin);
  await second.getByRole('textbox', { name: 'Message' }).waitFor();
  await ask(page, 'from the first tab');
  await expectTexts(second.locator('.opener'), ['from the first tab']);
  await openSettings(second);
  await eventually(async () => assert.equal(await field(second).inputValue(), ''));
});
