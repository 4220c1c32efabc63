// The frame of the page: skip link, sidebar, conversation, panel, notices, and what reaches all of them by key.
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect } from 'preact/hooks';
import { stopAnswer } from '../state/answers';
import { app, currentConversation, dismiss, isAnswering } from '../state/app';
import { newChat } from '../state/conversations';
import { useValue } from '../state/observable';
import type { Preferences } from '../store/preferences';
import { Composer } from './composer';
import { Header } from './header';
import { MEDIUM, NARROW, useMedia } from './media';
import { Panel } from './panel';
import { SettingsDialog } from './settings_dialog';
import { Sidebar } from './sidebar';
import { Thread } from './thread';

export const focusComposer = (): void => document.getElementById('composer')?.focus();

function closeSidebar(): void {
  app.set({ sidebarOpen: false });
  requestAnimationFrame(() => document.querySelector<HTMLElement>('[aria-controls="sidebar"]')?.focus());
}

function onKey(event: KeyboardEvent): void {
  const state = app.get();
  const command = event.ctrlKey || event.metaKey;
  if (event.key === 'Escape' && !state.dialog && !event.defaultPrevented) {
    if (state.sidebarOpen) closeSidebar();
    else if (isAnswering(state.current)) stopAnswer();
  } else if (command && event.shiftKey && event.key.toLowerCase() === 'o') {
    event.preventDefault();
    void newChat().then(focusComposer);
  } else if (command && !event.shiftKey && event.key.toLowerCase() === 'k') {
    event.preventDefault();
    app.set({ sidebarOpen: true });
    requestAnimationFrame(() => document.getElementById('search')?.focus());
  } else if (command && event.key === ',') {
    event.preventDefault();
    app.set({ dialog: 'settings' });
  } else if (command && event.key === '.') {
    event.preventDefault();
    app.set({ panelOpen: !state.panelOpen });
  }
}

// The style sheet knows light and dark; which of them "system" is can change while the page is open.
function followTheme(theme: Preferences['theme']): () => void {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const set = (): void => {
    document.documentElement.dataset.theme = theme === 'system' ? (dark.matches ? 'dark' : 'light') : theme;
  };
  set();
  dark.addEventListener('change', set);
  return () => dark.removeEventListener('change', set);
}

function Notices(): JSX.Element {
  const notices = useValue(app, (state) => state.notices);
  return (
    <div class="notices" role="status">
      {notices.map((notice) => (
        <div class="notice" key={notice.id}>
          <span>{notice.text}</span>
          {notice.action && (
            <button type="button" class="text-button" onClick={() => (notice.action!.run(), dismiss(notice.id))}>
              {notice.action.label}
            </button>
          )}
        </div>
      ))}
    </div>
  );
}

function Announcer(): JSX.Element {
  const announcements = useValue(app, (state) => state.announcements);
  return (
    <div class="visually-hidden" role="log" aria-live="polite" aria-label="What happens" id="announcer">
      {announcements.map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  );
}

export function App(): JSX.Element | null {
  const isReady = useValue(app, (state) => state.isReady);
  const theme = useValue(app, (state) => state.preferences.theme);
  const title = useValue(app, (state) => currentConversation(state)?.title);
  const panelOpen = useValue(app, (state) => state.panelOpen);
  const sidebarOpen = useValue(app, (state) => state.sidebarOpen);
  // What lies under something else takes no focus.
  const isPanelOver = useMedia(MEDIUM) && panelOpen;
  const isListOver = useMedia(NARROW) && sidebarOpen;
  useEffect(() => {
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  useLayoutEffect(() => followTheme(theme), [theme]);
  useEffect(() => {
    document.title = title ? `${title} · Godwit` : 'Godwit';
  }, [title]);
  if (!isReady) return null;
  return (
    <>
      <a class="skip-link" href="#composer" onClick={(event) => (event.preventDefault(), focusComposer())}>
        Skip to the message field
      </a>
      <div class={`frame ${panelOpen ? 'has-panel' : ''} ${sidebarOpen ? 'has-sidebar' : ''}`}>
        <Sidebar isInert={isPanelOver} />
        <div class="scrim" onClick={() => app.set({ sidebarOpen: false, panelOpen: false })} />
        <main class="main" inert={isPanelOver || isListOver}>
          <Header />
          <Thread />
          <Composer />
        </main>
        {panelOpen && <Panel />}
      </div>
      <SettingsDialog />
      <Notices />
      <Announcer />
    </>
  );
}
