// The state of the page, and the small things all parts of it share: what is current, notices, preferences.
import type { Model } from '../api/client';
import { loadKey, loadPreferences, savePreferences, type Preferences } from '../store/preferences';
import type { Messages } from '../store/tree';
import { emptySettings, type ChatSettings, type Conversation } from '../store/types';
import type { LiveAnswer } from './live_answer';
import { Observable } from './observable';

export type ServerState = 'unknown' | 'up' | 'down' | 'locked';

export interface Notice {
  id: number;
  text: string;
  action?: { label: string; run: () => void };
}

export interface AppState {
  isReady: boolean;
  isLasting: boolean;
  conversations: Conversation[]; // newest first
  current: string | null; // null: a chat that has no message yet
  draftSettings: ChatSettings; // of the chat that has no message yet
  messages: Messages; // of the current one
  models: Model[];
  modelsError: string;
  server: ServerState;
  key: string;
  preferences: Preferences;
  notices: Notice[];
  announcements: { id: number; text: string }[]; // for screen readers: the newest few
  dialog: 'settings' | null;
  panelOpen: boolean;
  sidebarOpen: boolean;
}

const preferences = loadPreferences();

export const app = new Observable<AppState>({
  isReady: false,
  isLasting: true,
  conversations: [],
  current: null,
  draftSettings: preferences.lastSettings ?? emptySettings(),
  messages: new Map(),
  models: [],
  modelsError: '',
  server: 'unknown',
  key: loadKey(),
  preferences,
  notices: [],
  announcements: [],
  dialog: null,
  panelOpen: false,
  sidebarOpen: false,
});

// The answers that stream, by message; drawn again through Observable<>.notify of `app` when one begins or ends.
export const live = new Map<string, LiveAnswer>();

export const isAnswering = (conversation: string | null): boolean =>
  [...live.values()].some((item) => item.message.conversation === conversation);

export const currentConversation = (state: AppState): Conversation | undefined =>
  state.conversations.find((conversation) => conversation.id === state.current);

export const currentSettings = (state: AppState): ChatSettings => currentConversation(state)?.settings ?? state.draftSettings;

export function currentModel(state: AppState): Model | undefined {
  const { model } = currentSettings(state);
  return state.models.find((entry) => entry.id === model) ?? state.models[0];
}

export function setPreferences(changes: Partial<Preferences>): void {
  const changed = { ...app.get().preferences, ...changes };
  savePreferences(changed);
  app.set({ preferences: changed });
}

// ---- what is said to the user

let noticeCount = 0;

export function notify(text: string, action?: Notice['action']): void {
  const id = ++noticeCount;
  app.set({ notices: [...app.get().notices, { id, text, action }] });
  setTimeout(() => dismiss(id), action ? 10_000 : 6_000);
}

export function dismiss(id: number): void {
  app.set({ notices: app.get().notices.filter((notice) => notice.id !== id) });
}

export function announce(text: string): void {
  if (text.trim()) app.set({ announcements: [...app.get().announcements.slice(-4), { id: ++noticeCount, text }] });
}
