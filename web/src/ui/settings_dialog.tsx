// What belongs to this browser: look, keys, the API key, and all conversations as a file.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { app, notify, setPreferences } from '../state/app';
import { deleteEverything, exportConversations, importConversations } from '../state/conversations';
import { setKey } from '../state/server';
import { useValue } from '../state/observable';
import type { Preferences } from '../store/preferences';
import { download } from './files';
import { IconButton } from './icons';

function KeyField(): JSX.Element {
  const known = useValue(app, (state) => state.key);
  const keepKey = useValue(app, (state) => state.preferences.keepKey);
  const server = useValue(app, (state) => state.server);
  const [key, setText] = useState(known);
  const [isKept, setKept] = useState(keepKey);
  const submit = (event: Event): void => {
    event.preventDefault();
    setKey(key.trim(), isKept);
  };
  const states = { locked: known ? 'The server refuses this key.' : 'The server asks for a key.', up: 'The server answers.', down: 'The server cannot be reached.', unknown: '' };
  return (
    <form class="group" onSubmit={submit}>
      <h3>Server</h3>
      <label class="field">
        <span>API key</span>
        <input name="key" type="password" autocomplete="off" placeholder="none" value={key} aria-describedby="key-state"
          onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <label class="check">
        <input type="checkbox" checked={isKept} onChange={(event) => setKept(event.currentTarget.checked)} /> Keep it in this browser
      </label>
      <div class="row">
        <button type="submit" class="button button-main">
          Use this key
        </button>
        <span class="hint" id="key-state" role="status">
          {states[server]}
        </span>
      </div>
    </form>
  );
}

function LookFields(): JSX.Element {
  const { theme, sendWith } = useValue(app, (state) => state.preferences);
  return (
    <div class="group">
      <h3>Look and keys</h3>
      <label class="field field-wide">
        <span>Theme</span>
        <select name="theme" value={theme} onChange={(event) => setPreferences({ theme: event.currentTarget.value as Preferences['theme'] })}>
          <option value="system">Like the system</option>
          <option value="light">Light</option>
          <option value="dark">Dark</option>
        </select>
      </label>
      <label class="field field-wide">
        <span>Send with</span>
        <select name="send-with" value={sendWith} onChange={(event) => setPreferences({ sendWith: event.currentTarget.value as Preferences['sendWith'] })}>
          <option value="enter">Enter</option>
          <option value="ctrl-enter">Ctrl or ⌘ with Enter</option>
        </select>
      </label>
      <dl class="keys">
        <dt>Ctrl Shift O</dt>
        <dd>new chat</dd>
        <dt>Ctrl K</dt>
        <dd>search the conversations</dd>
        <dt>Ctrl .</dt>
        <dd>chat settings</dd>
        <dt>Ctrl ,</dt>
        <dd>this dialog</dd>
        <dt>Esc</dt>
        <dd>stop the answer</dd>
      </dl>
    </div>
  );
}

function DataFields(): JSX.Element {
  const count = useValue(app, (state) => state.conversations.length);
  const isLasting = useValue(app, (state) => state.isLasting);
  const picker = useRef<HTMLInputElement>(null);
  const [isSure, setSure] = useState(false);
  const read = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    try {
      await importConversations(await file.text());
      app.set({ dialog: null });
    } catch (error) {
      notify((error as Error).message);
    }
  };
  const exportAll = async (): Promise<void> => download('godwit-conversations.json', await exportConversations());
  return (
    <div class="group">
      <h3>Conversations</h3>
      <p class="hint">
        {count === 1 ? 'One conversation' : `${count} conversations`}, kept {isLasting ? 'in this browser only' : 'until this tab is closed'}.
      </p>
      <div class="row">
        <button type="button" class="button" disabled={count === 0} onClick={() => void exportAll()}>
          Export all
        </button>
        <button type="button" class="button" onClick={() => picker.current?.click()}>
          Import
        </button>
        <input ref={picker} id="import" type="file" hidden accept="application/json,.json"
          onChange={(event) => (void read(event.currentTarget.files?.[0]), (event.currentTarget.value = ''))} />
        <button type="button" class="button button-danger" disabled={count === 0}
          onClick={() => (isSure ? (void deleteEverything(), setSure(false)) : setSure(true))} onBlur={() => setSure(false)}>
          {isSure ? 'Really delete all' : 'Delete all'}
        </button>
      </div>
    </div>
  );
}

export function SettingsDialog(): JSX.Element {
  const isOpen = useValue(app, (state) => state.dialog === 'settings');
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (isOpen && !dialog.current!.open) dialog.current!.showModal();
    if (!isOpen && dialog.current!.open) dialog.current!.close();
  }, [isOpen]);
  const close = (): void => app.set({ dialog: null });
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="settings-title" onClose={close}
      onClick={(event) => event.target === event.currentTarget && close()}>
      {isOpen && (
        <div class="dialog-body">
          <div class="panel-head">
            <h2 id="settings-title">Settings</h2>
            <IconButton icon="close" label="Close the settings" onClick={close} />
          </div>
          <LookFields />
          <KeyField />
          <DataFields />
          <p class="group hint">
            Made with Preact, marked, DOMPurify, highlight.js and Temml:{' '}
            <a href={document.querySelector<HTMLLinkElement>('link[rel=license]')?.href} target="_blank" rel="noopener">
              their licences
            </a>
          </p>
        </div>
      )}
    </dialog>
  );
}
