// The list of conversations: search, open, rename, export, delete.
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { app } from '../state/app';
import { deleteConversation, exportConversations, newChat, openConversation, renameConversation, searchMessages } from '../state/conversations';
import { useValue } from '../state/observable';
import type { Conversation } from '../store/types';
import { focusComposer } from './app';
import { download, fileName } from './files';
import { Bird, Icon, IconButton } from './icons';
import { NARROW, useMedia } from './media';

function groupOf(conversation: Conversation): string {
  const midnight = new Date().setHours(0, 0, 0, 0);
  const day = 86_400_000;
  if (conversation.updated >= midnight) return 'Today';
  if (conversation.updated >= midnight - day) return 'Yesterday';
  if (conversation.updated >= midnight - 7 * day) return 'This week';
  return 'Earlier';
}

function TitleField({ conversation, onEnd }: { conversation: Conversation; onEnd: () => void }): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current!.select(), []);
  const hasEnded = useRef(false); // a field that goes away loses the focus, too
  const end = (isKept: boolean): void => {
    if (hasEnded.current) return;
    hasEnded.current = true;
    if (isKept) renameConversation(conversation.id, field.current!.value);
    onEnd();
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' && event.key !== 'Escape') return;
    event.preventDefault();
    event.stopPropagation();
    end(event.key === 'Enter');
  };
  return (
    <input ref={field} class="title-field" aria-label="Title of the conversation" defaultValue={conversation.title} onKeyDown={onKey}
      onBlur={() => end(true)} />
  );
}

function Item({ conversation, isCurrent }: { conversation: Conversation; isCurrent: boolean }): JSX.Element {
  const [isRenamed, setRenamed] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  if (isRenamed)
    return (
      <li class="conversation">
        <TitleField conversation={conversation} onEnd={() => (setRenamed(false), requestAnimationFrame(() => opener.current?.focus()))} />
      </li>
    );
  const title = conversation.title;
  const exportIt = async (): Promise<void> => download(fileName(title), await exportConversations([conversation.id]));
  return (
    <li class={`conversation ${isCurrent ? 'is-current' : ''}`}>
      <button ref={opener} type="button" class="opener" aria-current={isCurrent ? 'page' : undefined} title={title}
        onClick={() => void openConversation(conversation.id)} onDblClick={() => setRenamed(true)}>
        {title}
      </button>
      <div class="item-actions">
        <IconButton icon="pencil" label={`Rename “${title}”`} onClick={() => setRenamed(true)} />
        <IconButton icon="download" label={`Export “${title}”`} onClick={() => void exportIt()} />
        <IconButton icon="trash" label={`Delete “${title}”`} onClick={() => void deleteConversation(conversation.id).then(focusComposer)} />
      </div>
    </li>
  );
}

// Titles are looked at at once, texts a moment after the last key.
function useSearch(wanted: string): Conversation[] {
  const conversations = useValue(app, (state) => state.conversations);
  const [inTexts, setInTexts] = useState<Set<string>>(new Set());
  useEffect(() => {
    setInTexts(new Set());
    if (!wanted) return;
    const timer = setTimeout(() => void searchMessages(wanted).then(setInTexts), 150);
    return () => clearTimeout(timer);
  }, [wanted]);
  if (!wanted) return conversations;
  return conversations.filter((item) => item.title.toLowerCase().includes(wanted.toLowerCase()) || inTexts.has(item.id));
}

function Groups({ found }: { found: Conversation[] }): JSX.Element {
  const current = useValue(app, (state) => state.current);
  const groups = new Map<string, Conversation[]>();
  for (const item of found) groups.set(groupOf(item), [...(groups.get(groupOf(item)) ?? []), item]);
  return (
    <>
      {[...groups].map(([name, items]) => (
        <section key={name}>
          <h3>{name}</h3>
          <ul>
            {items.map((item) => (
              <Item key={item.id} conversation={item} isCurrent={item.id === current} />
            ))}
          </ul>
        </section>
      ))}
    </>
  );
}

export function Sidebar({ isInert }: { isInert: boolean }): JSX.Element {
  const isOpen = useValue(app, (state) => state.sidebarOpen);
  const [wanted, setWanted] = useState('');
  const found = useSearch(wanted.trim());
  const isAway = useMedia(NARROW) && !isOpen;
  return (
    <nav class="sidebar" id="sidebar" aria-label="Conversations" inert={isAway || isInert}>
      <div class="brand">
        <Bird size={34} />
        <span class="wordmark">Godwit</span>
        <IconButton icon="close" label="Close the list" class="only-narrow" onClick={() => app.set({ sidebarOpen: false })} />
      </div>
      <button type="button" class="new-chat" onClick={() => void newChat().then(focusComposer)}>
        <Icon name="plus" /> New chat
      </button>
      <div class="search">
        <Icon name="search" />
        <input id="search" type="search" placeholder="Search" aria-label="Search the conversations" value={wanted}
          onInput={(event) => setWanted(event.currentTarget.value)} />
      </div>
      <div class="conversations">
        <Groups found={found} />
        {found.length === 0 && <p class="hint">{wanted ? 'Nothing found.' : 'Your conversations will be listed here.'}</p>}
      </div>
      <button type="button" class="side-button" onClick={() => app.set({ dialog: 'settings' })}>
        <Icon name="gear" /> Settings
      </button>
    </nav>
  );
}
