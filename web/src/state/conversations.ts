// Conversations: kept, opened, named, deleted, carried out and in.
import { openDatabase, type Database } from '../store/database';
import * as transfer from '../store/transfer';
import type { ChatSettings, Conversation, Message } from '../store/types';
import { app, currentConversation, currentSettings, live, notify, setPreferences } from './app';

let database: Database;
const otherTabs = typeof BroadcastChannel === 'undefined' ? null : new BroadcastChannel('godwit');

const byUpdate = (a: Conversation, b: Conversation): number => b.updated - a.updated;

export async function keep(conversations: Conversation[], messages: Message[]): Promise<void> {
  try {
    await database.save(conversations, messages);
    otherTabs?.postMessage('changed');
  } catch (error) {
    notify(`This change could not be kept: ${(error as Error).message}`);
  }
}

export function replaceConversation(conversation: Conversation): void {
  const others = app.get().conversations.filter((other) => other.id !== conversation.id);
  app.set({ conversations: [conversation, ...others].sort(byUpdate) });
}

// Puts a changed message on show, where its conversation is the current one.
export function showMessage(message: Message): void {
  if (message.conversation !== app.get().current) return;
  app.set({ messages: new Map(app.get().messages).set(message.id, message) });
}

export async function openStore(): Promise<void> {
  database = await openDatabase();
  const conversations = (await database.conversations()).sort(byUpdate);
  app.set({ conversations, isLasting: database.isLasting, isReady: true });
  if (!database.isLasting) notify('This browser keeps nothing for this page: conversations end with the tab.');
  otherTabs?.addEventListener('message', () => void reload());
  addEventListener('hashchange', () => void openFromAddress());
  await openFromAddress();
}

async function reload(): Promise<void> {
  const { current } = app.get();
  app.set({ conversations: (await database.conversations()).sort(byUpdate) });
  if (current && ![...live.values()].some((answer) => answer.message.conversation === current)) await load(current);
}

async function openFromAddress(): Promise<void> {
  const id = location.hash.slice(1);
  if (id !== (app.get().current ?? '')) await openConversation(app.get().conversations.some((item) => item.id === id) ? id : null);
}

async function load(id: string): Promise<void> {
  const stored = await database.messages(id);
  const messages = new Map(stored.map((message) => [message.id, message]));
  for (const message of stored) {
    const answer = live.get(message.id);
    if (answer) messages.set(message.id, answer.message);
    // Left by a page that was closed or loaded anew in the middle.
    else if (message.state === 'streaming')
      messages.set(message.id, { ...message, state: 'interrupted', failure: { message: 'The page was left while this was written.', status: 0, code: 'reload' } });
  }
  app.set({ messages, current: id });
}

export async function openConversation(id: string | null): Promise<void> {
  if (id === null) app.set({ current: null, messages: new Map(), sidebarOpen: false });
  else {
    await load(id);
    app.set({ sidebarOpen: false });
  }
  if (location.hash.slice(1) !== (id ?? '')) history.pushState(null, '', id ? `#${id}` : location.pathname + location.search);
}

export const newChat = (): Promise<void> => openConversation(null);

export function renameConversation(id: string, title: string): void {
  const conversation = app.get().conversations.find((item) => item.id === id);
  if (!conversation || !title.trim()) return;
  const renamed = { ...conversation, title: title.trim() };
  replaceConversation(renamed);
  void keep([renamed], []);
}

export async function deleteConversation(id: string): Promise<void> {
  const conversation = app.get().conversations.find((item) => item.id === id);
  if (!conversation) return;
  for (const answer of live.values()) if (answer.message.conversation === id) answer.stop();
  const messages = await database.messages(id);
  await database.remove(id);
  otherTabs?.postMessage('changed');
  app.set({ conversations: app.get().conversations.filter((item) => item.id !== id) });
  if (app.get().current === id) await newChat();
  const bringBack = async (): Promise<void> => {
    await keep([conversation], messages);
    replaceConversation(conversation);
  };
  notify(`“${conversation.title}” was deleted.`, { label: 'Undo', run: () => void bringBack() });
}

export async function deleteEverything(): Promise<void> {
  for (const answer of live.values()) answer.stop();
  await database.clear();
  otherTabs?.postMessage('changed');
  app.set({ conversations: [] });
  await newChat();
}

export const searchMessages = (text: string): Promise<Set<string>> => database.search(text);

export async function exportConversations(ids?: string[]): Promise<string> {
  const chosen = app.get().conversations.filter((item) => !ids || ids.includes(item.id));
  const messages = (await Promise.all(chosen.map((item) => database.messages(item.id)))).flat();
  return JSON.stringify(transfer.toBundle(chosen, messages), null, 1);
}

export async function importConversations(source: string): Promise<void> {
  const { conversations, messages } = transfer.fromBundle(source);
  await keep(conversations, messages);
  app.set({ conversations: [...conversations, ...app.get().conversations].sort(byUpdate) });
  notify(conversations.length === 1 ? 'One conversation was read.' : `${conversations.length} conversations were read.`);
  if (conversations.length === 1) await openConversation(conversations[0]!.id);
}

export function setSettings(changes: Partial<ChatSettings>): void {
  const state = app.get();
  const settings = { ...currentSettings(state), ...changes };
  const conversation = currentConversation(state);
  if (conversation) {
    const changed = { ...conversation, settings };
    replaceConversation(changed);
    void keep([changed], []);
  }
  app.set({ draftSettings: settings });
  setPreferences({ lastSettings: settings });
}
