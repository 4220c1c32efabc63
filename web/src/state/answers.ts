// What is said, and what answers it: each message a node of the tree, each answer followed to its end.
import { chatBody } from '../api/chat_body';
import { contextLength } from '../api/client';
import { newestLeaf, pathTo } from '../store/tree';
import { newId, timestamp, type Attachment, type Conversation, type Message } from '../store/types';
import { announce, app, currentConversation, currentModel, isAnswering, live } from './app';
import { keep, replaceConversation, showMessage } from './conversations';
import { LiveAnswer } from './live_answer';
import { watchServer } from './server';

const titleOf = (text: string): string => {
  const line = text.trim().split('\n')[0] ?? '';
  return line.length > 60 ? `${line.slice(0, 57).trimEnd()}…` : line || 'New chat';
};

function ensureConversation(title: string): Conversation {
  const state = app.get();
  const known = currentConversation(state);
  if (known) return known;
  const now = timestamp();
  const conversation = { id: newId(), title: titleOf(title), created: now, updated: now, leaf: null, settings: state.draftSettings };
  replaceConversation(conversation);
  app.set({ current: conversation.id, messages: new Map() });
  history.pushState(null, '', `#${conversation.id}`);
  return conversation;
}

// Adds a message below its parent and makes it the end of the branch on show.
function append(conversation: Conversation, message: Message): Conversation {
  const changed = { ...conversation, leaf: message.id, updated: timestamp() };
  replaceConversation(changed);
  showMessage(message);
  void keep([changed], [message]);
  return changed;
}

export function send(text: string, attachments: Attachment[] = []): void {
  const conversation = ensureConversation(text || attachments[0]?.name || '');
  if (isAnswering(conversation.id)) return;
  const message: Message = { id: newId(), conversation: conversation.id, parent: conversation.leaf, role: 'user', content: text, created: timestamp() };
  if (attachments.length > 0) message.attachments = attachments;
  void answer(append(conversation, message), message.id);
}

export function sendToolResult(call: string, parent: Message, content: string): void {
  const conversation = currentConversation(app.get());
  if (!conversation || isAnswering(conversation.id)) return;
  const results = pathTo(app.get().messages, conversation.leaf);
  const behind = results.at(-1)?.role === 'tool' ? results.at(-1)!.id : parent.id;
  const message: Message = { id: newId(), conversation: conversation.id, parent: behind, role: 'tool', callId: call, content, created: timestamp() };
  const changed = append(conversation, message);
  const given = new Set(pathTo(app.get().messages, message.id).map((item) => item.callId));
  if ((parent.calls ?? []).every((item) => given.has(item.id))) void answer(changed, message.id);
}

// A user's message in another wording: a new branch with an answer of its own.
export function editMessage(message: Message, content: string): void {
  const conversation = currentConversation(app.get());
  if (!conversation || isAnswering(conversation.id)) return;
  const edited: Message = { ...message, id: newId(), content, created: timestamp() };
  delete edited.stats;
  delete edited.failure;
  if (edited.state) edited.state = 'done';
  const changed = append(conversation, edited);
  if (message.role === 'user') void answer(changed, edited.id);
}

// Another answer beside this one, or in its place when there was none in it.
export function regenerate(message: Message): void {
  const conversation = currentConversation(app.get());
  if (!conversation || isAnswering(conversation.id) || !message.parent) return;
  const isEmpty = message.state === 'failed' && !message.content && !message.reasoning && !message.calls?.length;
  void answer(conversation, message.parent, isEmpty ? { instead: message } : {});
}

export function continueAnswer(message: Message): void {
  const conversation = currentConversation(app.get());
  if (conversation && !isAnswering(conversation.id)) void answer(conversation, message.parent!, { begun: message });
}

export function showBranch(message: Message): void {
  const conversation = currentConversation(app.get());
  if (!conversation) return;
  const changed = { ...conversation, leaf: newestLeaf(app.get().messages, message.id) };
  replaceConversation(changed);
  void keep([changed], []);
}

export function stopAnswer(): void {
  for (const item of live.values()) if (item.message.conversation === app.get().current) item.stop();
}

interface Place {
  begun?: Message; // more of this one
  instead?: Message; // where this one stands
}

// Asks for an answer below `parent` and follows it to its end.
async function answer(conversation: Conversation, parent: string, { begun, instead }: Place = {}): Promise<void> {
  const state = app.get();
  const model = currentModel(state);
  const { id, created } = instead ?? { id: newId(), created: timestamp() };
  const blank: Message = { id, conversation: conversation.id, parent, role: 'assistant', content: '', created };
  const draft: Message = begun ? { ...begun } : blank;
  draft.model = model?.id ?? conversation.settings.model;
  let body: object;
  try {
    const path = pathTo(state.messages, parent);
    body = chatBody(begun ? [...path, draft] : path, conversation.settings, draft.model, begun !== undefined);
  } catch (error) {
    append(conversation, { ...draft, state: 'failed', failure: { message: (error as Error).message, status: 0, code: 'settings' } });
    return;
  }
  draft.state = 'streaming';
  const run = new LiveAnswer(draft, (message) => void keep([], [message]));
  live.set(draft.id, run);
  append(conversation, draft);
  announce('Godwit is answering.');
  const ended = await run.run(body, state.key);
  live.delete(draft.id);
  finish({ ...ended, stats: { ...ended.stats, contextLength: contextLength(model) } });
}

function finish(message: Message): void {
  const isThere = app.get().conversations.some((item) => item.id === message.conversation);
  if (isThere) void keep([], [message]); // not one that was deleted meanwhile
  showMessage(message);
  app.notify();
  if (message.state === 'interrupted') void watchServer();
  if (message.failure?.status === 401) app.set({ server: 'locked' });
  setTimeout(() => announce(endingOf(message)), 50); // behind what the view has still to tell
}

function endingOf({ state, failure }: Message): string {
  const ends: Record<string, string> = { done: 'Answer finished.', stopped: 'Stopped.', interrupted: 'The answer was interrupted.' };
  return failure ? `${ends[state!] ?? 'The answer failed.'} ${failure.message}` : ends[state!] ?? '';
}
