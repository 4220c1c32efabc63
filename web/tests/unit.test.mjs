// What needs no browser: events, branches, bodies, files, and where Markdown's blocks end.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generator, load } from './support/bundle.mjs';

const { EventParser } = await load('api/events.ts');
const { chatBody } = await load('api/chat_body.ts');
const tree = await load('store/tree.ts');
const { toBundle, fromBundle } = await load('store/transfer.ts');
const { emptySettings } = await load('store/types.ts');
const { split, lex, openFence, toHtml } = await load('text/parser.ts');

const message = (id, parent, created, rest = {}) => ({ id, parent, created, conversation: 'c', role: 'user', content: id, ...rest });
const asMap = (list) => new Map(list.map((item) => [item.id, item]));

test('events come out whole however the stream is cut', () => {
  const stream = ': hello\ndata: {"a":1}\n\n: ping\n\nevent: x\r\ndata: b\r\ndata:c\r\n\r\ndata: [DONE]\n\n';
  const random = generator(5);
  for (let round = 0; round < 200; round++) {
    const parser = new EventParser();
    const events = [];
    for (let at = 0; at < stream.length; ) {
      const next = at + 1 + Math.floor(random() * 5);
      events.push(...parser.add(stream.slice(at, next)));
      at = next;
    }
    assert.deepEqual(events, ['{"a":1}', 'b\nc', '[DONE]']);
  }
});

test('a branch is found from its leaf, siblings by their parent', () => {
  const messages = asMap([message('a', null, 1), message('b', 'a', 2), message('c', 'a', 3), message('d', 'b', 4)]);
  assert.deepEqual(tree.pathTo(messages, 'd').map((item) => item.id), ['a', 'b', 'd']);
  assert.deepEqual(tree.siblingsOf(messages, messages.get('b')).map((item) => item.id), ['b', 'c']);
  assert.equal(tree.newestLeaf(messages, 'a'), 'c');
  assert.equal(tree.newestLeaf(messages, 'b'), 'd');
});

test('a damaged tree ends a path and never hangs', () => {
  const loop = asMap([message('a', 'b', 1), message('b', 'a', 2), message('c', 'gone', 3)]);
  assert.equal(tree.pathTo(loop, 'a').length, 2);
  assert.equal(tree.newestLeaf(loop, 'a'), 'b');
  assert.deepEqual(tree.pathTo(loop, 'c').map((item) => item.id), ['c']);
  assert.deepEqual(tree.siblingsOf(loop, loop.get('c')).map((item) => item.id), ['c']);
});

test('a body holds what is set and nothing else', () => {
  const path = [message('hi', null, 1)];
  assert.deepEqual(chatBody(path, emptySettings(), 'm', false), {
    model: 'm',
    messages: [{ role: 'user', content: 'hi' }],
    stream: true,
    stream_options: { include_usage: true },
  });
  const settings = { ...emptySettings(), system: 'Be brief.', sampling: { temperature: 0, max_tokens: 9 }, effort: 'low', output: 'schema', schema: '{"type":"object"}', tools: '[]' };
  const body = chatBody(path, settings, 'm', false);
  assert.deepEqual(body.messages[0], { role: 'system', content: 'Be brief.' });
  assert.equal(body.temperature, 0);
  assert.equal(body.max_completion_tokens, 9);
  assert.equal('max_tokens' in body, false);
  assert.equal(body.reasoning_effort, 'low');
  assert.deepEqual(body.response_format, { type: 'json_schema', json_schema: { name: 'answer', schema: { type: 'object' }, strict: true } });
  assert.throws(() => chatBody(path, { ...settings, schema: '{' }, 'm', false), /schema of this chat is not JSON/);
});

test('attachments, calls and results take the forms of the API', () => {
  const picture = { kind: 'image', name: 'p.png', type: 'image/png', data: 'AAAA' };
  const note = { kind: 'text', name: 'n.md', type: 'text/plain', data: 'a ``` b' };
  const calls = [{ id: 'call_1', name: 'f', arguments: '{"x":1}' }];
  const path = [
    message('look', null, 1, { attachments: [picture, note] }),
    message('', 'look', 2, { role: 'assistant', content: '', calls, reasoning: 'so' }),
    message('r', '', 3, { role: 'tool', callId: 'call_1', content: '42' }),
    message('failed', 'r', 4, { role: 'assistant', content: '' }),
  ];
  const [user, answer, result, ...rest] = chatBody(path, emptySettings(), 'm', false).messages;
  assert.deepEqual(user.content[0], { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } });
  assert.equal(user.content[1].text, 'n.md:\n````\na ``` b\n````\n\nlook');
  assert.deepEqual(answer.tool_calls, [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"x":1}' } }]);
  assert.equal(answer.reasoning_content, 'so');
  assert.deepEqual(result, { role: 'tool', tool_call_id: 'call_1', content: '42' });
  assert.deepEqual(rest, []);
});

test('a bundle comes back with new ids and the same branches', () => {
  const conversation = { id: 'c', title: 'T', created: 1, updated: 2, leaf: 'b', settings: { ...emptySettings(), system: 's', sampling: { top_p: 0.5 } } };
  const messages = [message('a', null, 1), message('b', 'a', 2, { role: 'assistant', state: 'stopped', stats: { promptTokens: 3 } })];
  const read = fromBundle(JSON.stringify(toBundle([conversation], messages)));
  const [a, b] = read.messages;
  assert.notEqual(a.id, 'a');
  assert.equal(b.parent, a.id);
  assert.equal(read.conversations[0].leaf, b.id);
  assert.equal(b.state, 'stopped');
  assert.deepEqual(b.stats, { promptTokens: 3 });
  assert.deepEqual(read.conversations[0].settings, conversation.settings);
});

test('a file that is something else is refused', () => {
  assert.throws(() => fromBundle('no'), /not JSON/);
  assert.throws(() => fromBundle('{"format":"x"}'), /no conversations/);
  const odd = { format: 'godwit-conversations', conversations: [{ title: 4, messages: [{ role: 'root', content: '' }] }] };
  assert.throws(() => fromBundle(JSON.stringify(odd)), /role "root"/);
  const empty = fromBundle(JSON.stringify({ format: 'godwit-conversations', conversations: [{ messages: 'x' }, 7] }));
  assert.equal(empty.conversations.length, 1);
  assert.deepEqual(empty.messages, []);
});

// ---- where blocks end

const corpus = [
  '# Title\n\nA paragraph\nof two lines.\n\n- one\n- two\n  - three\n\n  more of two\n\n1. first\n\n\n2. second\n\nEnd.',
  'Text\n=====\n\nMore\n-----\nand | a | b |\n\n| a | b |\n|---|:-:|\n| 1 | 2 |\n\nBehind.',
  '```js\nlet a = 1;\n\nlet b = 2;\n```\n\n~~~\n```\n~~~\nText\n\n    indented\n\n    code\n',
  '> quote\nlazy\n\n> - list\n> - in it\n\n<details><summary>S</summary>\n\ninside\n\n</details>\n\n***\n',
  '$$\na\n=\nb\n- c\n$$\n\n$$\na\n\nb\n$$\n\n\\[ x^2 \\]\n\nprice $5 and $6, $x$ and \\(y\\).\n\n- [ ] a\n- [x] b\n\n* * *\nend',
];

function shown(source) {
  return toHtml(lex(source)).replace(/\s+/g, ' ').trim();
}

test('blocks that were taken for complete are the same when more has come', () => {
  for (const source of corpus) {
    let stable = 0;
    let html = '';
    for (let end = 1; end <= source.length; end++) {
      const { stable: complete, tail } = split(source.slice(stable, end));
      html += toHtml(complete);
      stable += complete.reduce((sum, token) => sum + token.raw.length, 0);
      const whole = (html + toHtml(tail)).replace(/\s+/g, ' ').trim();
      assert.equal(whole, shown(source.slice(0, end)), JSON.stringify(source.slice(0, end)));
    }
  }
});

test('a fence is open until its own kind closes it', () => {
  assert.equal(openFence('```js\nlet a').info, 'js');
  assert.equal(openFence('```js\nlet a\n```'), null);
  assert.equal(openFence('````\n```\nx').body, '```\nx');
  assert.equal(openFence('~~~\n```\n').body, '```\n');
  assert.equal(openFence('```a`b\nx'), null);
  assert.equal(openFence('text\n```\n'), null);
});
