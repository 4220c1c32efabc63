// Whether there is a server, which models it has, and the key it may want.
import { isAlive, listModels, Refusal } from '../api/client';
import { saveKey } from '../store/preferences';
import { announce, app, notify, setPreferences } from './app';

let isWatching = false;

export async function refreshModels(): Promise<void> {
  try {
    app.set({ models: await listModels(app.get().key), modelsError: '', server: 'up' });
  } catch (error) {
    const isLocked = error instanceof Refusal && error.status === 401;
    const isSaid = error instanceof Refusal;
    app.set({ modelsError: (error as Error).message, server: isLocked ? 'locked' : isSaid ? 'up' : 'down' });
    if (!isSaid) void watchServer();
  }
}

// Looks for a server that is gone until it is back, and says so.
export async function watchServer(): Promise<void> {
  if (isWatching) return;
  isWatching = true;
  app.set({ server: 'down' });
  for (let wait = 500; !(await isAlive()); wait = Math.min(wait * 1.5, 5000))
    await new Promise((resume) => setTimeout(resume, wait));
  isWatching = false;
  await refreshModels();
  if (app.get().server === 'down') return;
  notify('The server is back.');
  announce('The server is back.');
}

export function setKey(key: string, keep: boolean): void {
  saveKey(key, keep);
  setPreferences({ keepKey: keep });
  app.set({ key });
  void refreshModels();
}
