// T-24.1 and around it: what one does with a chat, against a server that says what the test wants.
import assert from 'node:assert/strict';
import { world } from './support/world.mjs';
import { eventually, expectCount, expectText, expectTexts } from './support/expect.mjs';
import { delta, ending, figures, says } from './support/fake_server.mjs';
import { answers, ask, bubbles, button, downloaded, field, noticed, openSettings, say, settled } from './support/steps.mjs';

const { scene } = world();

const numbered = (fake) => (fake.answer = (body, stream, index) => stream.play(says(`Answer ${index + 1}.`)));

scene('a message is sent, answered, and still there after a reload', async (page, fake) => {
  const longSeed = JSON.stringify(figures()).replace('"seed":7', '"seed":18446744073709551615');
  fake.answer = (body, stream, index) => stream.play([...says(`Answer ${index + 1}.`).slice(0, -1), longSeed]);
  await ask(page, 'first question');
  await ask(page, 'second question');
  await expectTexts(answers(page).locator('.prose'), ['Answer 1.', 'Answer 2.']);
  const [, second] = fake.requests;
  assert.deepEqual(second.messages, [
    { role: 'user', content: 'first question' },
    { role: 'assistant', content: 'Answer 1.' },
    { role: 'user', content: 'second question' },
  ]);
  assert.equal(second.model, 'fake-1');
  assert.deepEqual(second.stream_options, { include_usage: true });
  await expectText(answers(page).last().locator('.stats'), /42\.5 tokens\/s · 12 tokens · first token .* · 75 % of the prompt cached/);
  assert.match(await answers(page).last().locator('.stats').getAttribute('title'), /seed 18446744073709551615$/);
  await expectText(page.locator('.context'), '52 of 4,096 tokens of context');
  await page.reload();
  await expectTexts(bubbles(page), ['first question', 'second question']);
  await expectTexts(answers(page).locator('.prose'), ['Answer 1.', 'Answer 2.']);
  assert.equal(await page.title(), 'first question · Godwit');
});

scene('an answer is stopped, kept, and continued', async (page, fake) => {
  fake.answer = (body, stream, index) => {
    if (index > 0) return stream.play(says(' and the end.'));
    stream.send(delta({ content: 'The beginning' })); // and then nothing
    fake.held = stream;
  };
  await say(page, 'go');
  await expectText(answers(page).locator('.prose'), 'The beginning');
  await button(page, 'Stop').click();
  await eventually(() => assert.ok(fake.held.isClosed), 'the server sees the client leave');
  await expectText(answers(page).locator('.ending'), 'Stopped.');
  await button(page, 'Continue').click();
  await expectTexts(answers(page).locator('.prose'), ['The beginning and the end.']);
  assert.deepEqual(fake.requests[1].messages.at(-1), { role: 'assistant', content: 'The beginning' });
  assert.equal(fake.requests[1].continue_final_message, true);
  assert.equal(fake.requests[1].add_generation_prompt, false);
  await page.reload();
  await expectTexts(answers(page).locator('.prose'), ['The beginning and the end.']);
});

scene('an edited message opens a branch, and both stay', async (page, fake) => {
  numbered(fake);
  await ask(page, 'red');
  await ask(page, 'more');
  await page.locator('article.user').first().hover();
  await page.locator('article.user').first().getByRole('button', { name: 'Edit' }).click();
  await page.getByRole('textbox', { name: 'Edit this message' }).fill('blue');
  await button(page, 'Send').first().click();
  await settled(page, 1);
  await expectTexts(bubbles(page), ['blue']);
  assert.deepEqual(fake.requests[2].messages, [{ role: 'user', content: 'blue' }]);
  await expectText(page.locator('.branches'), '2/2');
  await button(page, 'Previous version').click();
  await expectTexts(bubbles(page), ['red', 'more']);
  await expectTexts(answers(page).locator('.prose'), ['Answer 1.', 'Answer 2.']);
  await page.reload();
  await expectTexts(bubbles(page), ['red', 'more']);
  await button(page, 'Next version').click();
  await expectTexts(bubbles(page), ['blue']);
});

scene('an answer is given again, and an answer is edited', async (page, fake) => {
  numbered(fake);
  await ask(page, 'q');
  await button(page, 'Answer again').click();
  await expectTexts(answers(page).locator('.prose'), ['Answer 2.']);
  await expectText(page.locator('.branches'), '2/2');
  assert.deepEqual(fake.requests[1].messages, [{ role: 'user', content: 'q' }]);
  await answers(page).getByRole('button', { name: 'Edit' }).click();
  await page.getByRole('textbox', { name: 'Edit this message' }).fill('Mine.');
  await button(page, 'Keep').click();
  await expectText(page.locator('.branches'), '3/3');
  await expectTexts(answers(page).locator('.prose'), ['Mine.']);
  await ask(page, 'next');
  assert.equal(fake.requests[2].messages[1].content, 'Mine.');
});

scene('conversations are renamed, searched, deleted and brought back', async (page, fake) => {
  fake.answer = (body, stream, index) => stream.play(says(index ? 'About herons.' : 'About curlews.'));
  await ask(page, 'one');
  await button(page, 'New chat').click();
  await ask(page, 'two');
  const openers = page.locator('.opener');
  await expectTexts(openers, ['two', 'one']);
  await page.getByRole('navigation').getByText('one').hover();
  await button(page, 'Rename “one”').click();
  await page.getByRole('textbox', { name: 'Title of the conversation' }).fill('waders');
  await page.keyboard.press('Enter');
  await expectTexts(openers, ['two', 'waders']);
  await page.getByRole('searchbox').fill('CURLEW');
  await expectTexts(openers, ['waders']);
  await page.getByRole('searchbox').fill('wad');
  await expectTexts(openers, ['waders']);
  await page.getByRole('searchbox').fill('');
  await page.getByRole('navigation').getByText('two').hover();
  await button(page, 'Delete “two”').click();
  await expectTexts(openers, ['waders']);
  await expectText(page.locator('.empty h2'), 'What would you like to know?');
  await button(page, 'Undo').click();
  await expectTexts(openers, ['two', 'waders']);
  await page.reload();
  await openers.first().click();
  await expectTexts(answers(page).locator('.prose'), ['About herons.']);
});

scene('conversations go out as a file and come back from it', async (page, fake) => {
  numbered(fake);
  await ask(page, 'kept');
  await button(page, 'Answer again').click();
  await settled(page, 1);
  await openSettings(page);
  const file = await downloaded(page, () => button(page, 'Export all').click());
  const bundle = JSON.parse(file);
  assert.equal(bundle.conversations[0].messages.length, 3);
  await button(page, 'Delete all').click();
  await button(page, 'Really delete all').click();
  await expectCount(page.locator('.opener'), 0);
  await page.locator('#import').setInputFiles({ name: 'x.json', mimeType: 'application/json', buffer: Buffer.from(file) });
  await expectTexts(answers(page).locator('.prose'), ['Answer 2.']);
  await button(page, 'Previous version').click();
  await expectTexts(answers(page).locator('.prose'), ['Answer 1.']);
  await openSettings(page);
  await page.locator('#import').setInputFiles({ name: 'y.json', mimeType: 'application/json', buffer: Buffer.from('{"a":1}') });
  await noticed(page, 'The file holds no conversations of this page.');
  await page.keyboard.press('Escape');
  await expectCount(page.locator('.opener'), 1);
});

scene('settings of the chat reach the request, presets too', async (page, fake) => {
  await button(page, 'Chat settings').click();
  const panel = page.getByRole('complementary', { name: 'Chat settings' });
  await panel.getByLabel('Preset').first().selectOption('Precise');
  await panel.getByLabel('System prompt').fill('Be brief.');
  await panel.locator('[name=max_tokens]').fill('50');
  await panel.locator('[name=max_tokens]').press('Tab');
  await panel.locator('[name=stop]').fill('END\nSTOP');
  await panel.locator('[name=stop]').press('Tab');
  await panel.locator('[name=output]').selectOption('schema');
  await panel.locator('[name=schema]').fill('{"type": ');
  await expectText(panel.locator('#problem-schema'), 'Not JSON');
  await ask(page, 'x');
  await expectText(answers(page).locator('.failure'), 'The schema of this chat is not JSON');
  assert.equal(fake.requests.length, 0);
  await panel.locator('[name=schema]').fill('{"type":"object"}');
  await panel.locator('[name=effort]').selectOption('low');
  await answers(page).getByRole('button', { name: 'Try again' }).click();
  await eventually(() => assert.equal(fake.requests.length, 1));
  const [body] = fake.requests;
  assert.deepEqual(body.messages, [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'x' }]);
  assert.deepEqual([body.temperature, body.top_p, body.max_completion_tokens, body.reasoning_effort], [0.2, 0.9, 50, 'low']);
  assert.deepEqual(body.stop, ['END', 'STOP']);
  assert.deepEqual(body.response_format, { type: 'json_schema', json_schema: { name: 'answer', schema: { type: 'object' }, strict: true } });
  await panel.getByLabel('Name of a new preset').fill('Brief');
  await panel.getByRole('button', { name: 'Keep as preset' }).click();
  await page.reload();
  await button(page, 'New chat').click();
  await button(page, 'Chat settings').click();
  await panel.getByLabel('Preset').first().selectOption('Balanced');
  assert.equal(await panel.getByLabel('System prompt').inputValue(), '');
  await panel.getByLabel('Preset').first().selectOption('Brief');
  assert.equal(await panel.getByLabel('System prompt').inputValue(), 'Be brief.');
});

scene('the model that is picked is asked', async (page, fake) => {
  fake.models = [...fake.models, { id: 'other/model', context_length: 100 }];
  await page.locator('#model').focus();
  await expectCount(page.locator('#model option'), 2);
  await page.locator('#model').selectOption('other/model');
  await ask(page, 'x');
  assert.equal(fake.requests[0].model, 'other/model');
  fake.models = fake.models.slice(0, 1);
  await page.reload();
  await expectText(page.locator('.model-picker'), 'other/model is not served; using this one');
});

scene('reasoning folds away, with its time', async (page, fake) => {
  fake.answer = async (body, stream) => {
    stream.send(delta({ reasoning_content: 'Let me think.' }));
    await new Promise((done) => (fake.goOn = done));
    await stream.play([delta({ content: 'Done.' }), ending(), figures()]);
  };
  await say(page, 'x');
  const fold = page.locator('.reasoning');
  await expectText(fold.locator('summary'), /^Thinking for (0\.[1-9]|\d)/);
  assert.equal(await fold.getAttribute('open') !== null, true);
  await expectText(fold, 'Let me think.');
  fake.goOn();
  await settled(page, 1);
  await expectText(fold.locator('summary'), /^Thought for/);
  assert.equal(await fold.getAttribute('open'), null);
  await fold.locator('summary').click();
  await expectText(fold, 'Let me think.');
  await page.reload();
  await expectText(page.locator('.reasoning summary'), /^Thought for/);
});

scene('calls of tools are shown, and their results go back', async (page, fake) => {
  const call = (index, rest) => delta({ tool_calls: [{ index, ...rest }] });
  fake.answer = (body, stream, index) => {
    if (index > 0) return stream.play(says('It rains.'));
    return stream.play([
      call(0, { id: 'call_a', type: 'function', function: { name: 'weather', arguments: '' } }),
      call(0, { function: { arguments: '{"city":' } }),
      call(0, { function: { arguments: '"Oslo"}' } }),
      call(1, { id: 'call_b', type: 'function', function: { name: 'clock', arguments: '{}' } }),
      ending('tool_calls'),
    ]);
  };
  await button(page, 'Chat settings').click();
  await page.locator('[name=tools]').fill('[{"type":"function","function":{"name":"weather"}}]');
  await ask(page, 'weather?');
  assert.deepEqual(fake.requests[0].tools, [{ type: 'function', function: { name: 'weather' } }]);
  await expectTexts(page.locator('.call h3'), ['weather', 'clock']);
  await expectText(page.locator('.call pre'), '"city": "Oslo"');
  await page.getByLabel('Result of weather').fill('rain');
  await page.getByRole('region', { name: 'Call of weather' }).getByRole('button').click();
  await page.getByLabel('Result of clock').fill('noon');
  await page.getByRole('region', { name: 'Call of clock' }).getByRole('button').click();
  await expectText(answers(page).last().locator('.prose'), 'It rains.');
  const sent = fake.requests[1].messages;
  assert.deepEqual(sent[1].tool_calls.map((item) => item.function), [
    { name: 'weather', arguments: '{"city":"Oslo"}' },
    { name: 'clock', arguments: '{}' },
  ]);
  assert.deepEqual(sent.slice(2), [
    { role: 'tool', tool_call_id: 'call_a', content: 'rain' },
    { role: 'tool', tool_call_id: 'call_b', content: 'noon' },
  ]);
});

scene('text files are attached; images only where the model sees', async (page, fake) => {
  const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg==', 'base64');
  const files = page.locator('#files');
  assert.equal((await files.getAttribute('accept')).includes('image'), false);
  await files.setInputFiles([
    { name: 'notes.md', mimeType: 'text/markdown', buffer: Buffer.from('# hi') },
    { name: 'a.png', mimeType: 'image/png', buffer: png },
    { name: 'b.bin', mimeType: 'application/octet-stream', buffer: Buffer.from([0, 159, 146, 150]) },
  ]);
  await noticed(page, 'This model reads no images (a.png).');
  await noticed(page, 'b.bin is no text.');
  await expectTexts(page.locator('.composer .attachment'), ['notes.md']);
  await ask(page, 'read');
  assert.equal(fake.requests[0].messages[0].content, 'notes.md:\n```\n# hi\n```\n\nread');
  fake.models = [{ id: 'seeing', capabilities: ['completion', 'vision', 'audio'] }];
  await page.reload();
  await expectText(page.locator('.model-picker'), 'reads images and audio');
  await files.setInputFiles([{ name: 'a.png', mimeType: 'image/png', buffer: png }, { name: 's.wav', mimeType: 'audio/wav', buffer: Buffer.from('RIFF') }]);
  await expectCount(page.locator('.composer .attachment'), 2);
  await ask(page, 'see');
  const { content } = fake.requests[1].messages.at(-1);
  assert.equal(content[0].image_url.url, `data:image/png;base64,${png.toString('base64')}`);
  assert.deepEqual(content[1].input_audio, { data: Buffer.from('RIFF').toString('base64'), format: 'wav' });
  assert.deepEqual(content[2], { type: 'text', text: 'see' });
});
