import type { JSX } from 'preact';
import { hasCapability } from '../api/client';
import { app, currentConversation, currentModel, currentSettings } from '../state/app';
import { newChat, setSettings } from '../state/conversations';
import { refreshModels } from '../state/server';
import { useValue } from '../state/observable';
import { IconButton } from './icons';
import { focusComposer } from './app';

function ModelPicker(): JSX.Element {
  const models = useValue(app, (state) => state.models);
  const model = useValue(app, currentModel);
  const wanted = useValue(app, (state) => currentSettings(state).model);
  const isMissing = wanted !== '' && models.length > 0 && model?.id !== wanted;
  const reads = [hasCapability(model, 'vision') && 'images', hasCapability(model, 'audio') && 'audio'].filter(Boolean);
  return (
    <div class="model-picker">
      <label class="visually-hidden" for="model">
        Model
      </label>
      <select id="model" value={model?.id ?? ''} disabled={models.length === 0} onFocus={() => void refreshModels()}
        onChange={(event) => setSettings({ model: event.currentTarget.value })}>
        {models.length === 0 && <option value="">No model</option>}
        {models.map((entry) => (
          <option key={entry.id} value={entry.id}>
            {entry.id}
          </option>
        ))}
      </select>
      {reads.length > 0 && <span class="chip">reads {reads.join(' and ')}</span>}
      {isMissing && <span class="chip chip-warn">{wanted} is not served; using this one</span>}
    </div>
  );
}

function ServerState(): JSX.Element | null {
  const server = useValue(app, (state) => state.server);
  const text = useValue(app, (state) => state.modelsError);
  if (server === 'up' && !text) return null;
  if (server === 'unknown') return null;
  if (server === 'locked')
    return (
      <button type="button" class="server-state" onClick={() => app.set({ dialog: 'settings' })}>
        An API key is needed
      </button>
    );
  return (
    <span class="server-state" role="status">
      {server === 'down' ? 'Server not reached, trying again…' : text}
    </span>
  );
}

export function Header(): JSX.Element {
  const title = useValue(app, (state) => currentConversation(state)?.title ?? 'New chat');
  const panelOpen = useValue(app, (state) => state.panelOpen);
  const sidebarOpen = useValue(app, (state) => state.sidebarOpen);
  return (
    <header class="header">
      <IconButton icon="menu" label="Conversations" class="only-narrow" expanded={sidebarOpen} controls="sidebar"
        onClick={() => app.set({ sidebarOpen: !sidebarOpen })} />
      <h1 class="title">{title}</h1>
      <ServerState />
      <ModelPicker />
      <IconButton icon="plus" label="New chat" class="only-narrow" onClick={() => void newChat().then(focusComposer)} />
      <IconButton icon="sliders" label="Chat settings" expanded={panelOpen} controls="panel"
        onClick={() => app.set({ panelOpen: !panelOpen })} />
    </header>
  );
}
