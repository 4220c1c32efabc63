// What belongs to this browser and not to a conversation. A browser that refuses storage gets the defaults.
import type { ChatSettings, Preset } from './types';

export interface Preferences {
  theme: 'system' | 'light' | 'dark';
  sendWith: 'enter' | 'ctrl-enter';
  keepKey: boolean;
  presets: Preset[];
  lastSettings: ChatSettings | null;
}

const KEY = 'godwit.preferences';
const API_KEY = 'godwit.key';

export const builtInPresets: Preset[] = [
  { name: 'Balanced', system: '', sampling: {} },
  { name: 'Precise', system: '', sampling: { temperature: 0.2, top_p: 0.9 } },
  { name: 'Lively', system: '', sampling: { temperature: 1.1, min_p: 0.05 } },
  { name: 'Greedy', system: '', sampling: { temperature: 0 } },
];

const defaults: Preferences = { theme: 'system', sendWith: 'enter', keepKey: false, presets: [], lastSettings: null };

export function loadPreferences(): Preferences {
  try {
    return { ...defaults, ...(JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Preferences>) };
  } catch {
    return { ...defaults };
  }
}

export function savePreferences(preferences: Preferences): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(preferences));
  } catch {
    // nothing is kept then; the page goes on with what is in memory
  }
}

export function loadKey(): string {
  try {
    return sessionStorage.getItem(API_KEY) ?? localStorage.getItem(API_KEY) ?? '';
  } catch {
    return '';
  }
}

// For this tab, or for this browser when `keep`.
export function saveKey(key: string, keep: boolean): void {
  try {
    sessionStorage.removeItem(API_KEY);
    localStorage.removeItem(API_KEY);
    if (key) (keep ? localStorage : sessionStorage).setItem(API_KEY, key);
  } catch {
    // as above
  }
}
