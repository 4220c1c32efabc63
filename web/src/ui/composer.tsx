// The field a message is written in, with its attachments, the send and the stop button.
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { hasCapability, contextLength } from '../api/client';
import { send, stopAnswer } from '../state/answers';
import { app, currentConversation, currentModel, isAnswering, notify } from '../state/app';
import { useValue } from '../state/observable';
import { pathTo } from '../store/tree';
import type { Attachment } from '../store/types';
import { readAttachment } from './files';
import { Icon, IconButton } from './icons';

const TEXT_TYPES = 'text/*,.md,.json,.csv,.tsv,.xml,.yaml,.yml,.toml,.ini,.log,.py,.js,.ts,.tsx,.c,.h,.cpp,.hpp,.rs,.go,.java,.sh,.sql,.svg';
const drafts = new Map<string, string>();

function AttachmentList({ items, onRemove }: { items: Attachment[]; onRemove: (item: Attachment) => void }): JSX.Element | null {
  if (items.length === 0) return null;
  return (
    <ul class="attachments" aria-label="Attached files">
      {items.map((item) => (
        <li class="attachment" key={item.name}>
          {item.kind === 'image' ? <img alt="" src={`data:${item.type};base64,${item.data}`} /> : <Icon name="file" />}
          <span>{item.name}</span>
          <IconButton icon="close" label={`Remove ${item.name}`} onClick={() => onRemove(item)} />
        </li>
      ))}
    </ul>
  );
}

// How much of the context the branch on show takes, as its last answer told.
function ContextFill(): JSX.Element | null {
  const used = useValue(app, (state) => {
    const path = pathTo(state.messages, currentConversation(state)?.leaf ?? null);
    const stats = path.findLast((message) => message.stats?.promptTokens !== undefined)?.stats;
    return stats ? stats.promptTokens! + (stats.completionTokens ?? 0) : 0;
  });
  const most = useValue(app, (state) => contextLength(currentModel(state)));
  if (!used || !most) return null;
  const share = Math.min(1, used / most);
  const text = `${used.toLocaleString('en')} of ${most.toLocaleString('en')} tokens of context`;
  return (
    <span class="context">
      <meter min={0} max={1} high={0.85} value={share} aria-label="Context in use" title={text} />
      <span>{text}</span>
    </span>
  );
}

export function Composer(): JSX.Element {
  const conversation = useValue(app, (state) => state.current);
  const answering = useValue(app, (state) => isAnswering(state.current));
  const model = useValue(app, currentModel);
  const sendWith = useValue(app, (state) => state.preferences.sendWith);
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const [text, setText] = useState('');
  const [attachments, setAttachments] = useState<Attachment[]>([]);
  const [isTarget, setTarget] = useState(false);
  const allows = { image: hasCapability(model, 'vision'), audio: hasCapability(model, 'audio') };

  useEffect(() => {
    setText(drafts.get(conversation ?? '') ?? '');
    if (matchMedia('(pointer: fine)').matches) field.current?.focus();
  }, [conversation]);
  useLayoutEffect(() => {
    const area = field.current!;
    area.style.height = 'auto';
    area.style.height = `${Math.min(area.scrollHeight, innerHeight * 0.4)}px`;
  }, [text]);

  const write = (value: string): void => {
    drafts.set(conversation ?? '', value);
    setText(value);
  };
  const submit = (): void => {
    if (answering || (!text.trim() && attachments.length === 0)) return;
    drafts.delete(conversation ?? '');
    send(text.trim(), attachments);
    setText('');
    setAttachments([]);
  };
  const attach = async (files: Iterable<File>): Promise<void> => {
    for (const file of files)
      await readAttachment(file, allows).then(
        (item) => setAttachments((known) => [...known.filter((other) => other.name !== item.name), item]),
        (error: Error) => notify(error.message),
      );
    field.current?.focus();
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || event.isComposing) return;
    const isCommand = event.ctrlKey || event.metaKey;
    if (isCommand || (sendWith === 'enter' && !event.shiftKey)) {
      event.preventDefault();
      submit();
    }
  };
  const onPaste = (event: ClipboardEvent): void => {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length === 0) return;
    event.preventDefault();
    void attach(files);
  };
  const onDrop = (event: DragEvent): void => {
    event.preventDefault();
    setTarget(false);
    void attach(event.dataTransfer?.files ?? []);
  };
  const accept = [TEXT_TYPES, allows.image && 'image/*', allows.audio && 'audio/*'].filter(Boolean).join(',');

  return (
    <form class={`composer ${isTarget ? 'is-target' : ''}`} aria-label="Message" onSubmit={(event) => (event.preventDefault(), submit())}
      onDragOver={(event) => (event.preventDefault(), setTarget(true))} onDragLeave={() => setTarget(false)} onDrop={onDrop}>
      <div class="composer-card">
        <AttachmentList items={attachments} onRemove={(item) => setAttachments(attachments.filter((other) => other !== item))} />
        <textarea id="composer" ref={field} rows={1} placeholder="Write a message" aria-label="Message" value={text} onKeyDown={onKey}
          onPaste={onPaste} onInput={(event) => write(event.currentTarget.value)} />
        <div class="composer-row">
          <input ref={picker} id="files" type="file" multiple hidden accept={accept}
            onChange={(event) => (void attach([...(event.currentTarget.files ?? [])]), (event.currentTarget.value = ''))} />
          <IconButton icon="clip" label={allows.image || allows.audio ? 'Attach files' : 'Attach text files'} onClick={() => picker.current?.click()} />
          {allows.image && <span class="chip">images</span>}
          {allows.audio && <span class="chip">audio</span>}
          <ContextFill />
          {answering ? (
            <button type="button" class="send stop" aria-label="Stop" title="Stop (Esc)" onClick={stopAnswer}>
              <Icon name="stop" />
            </button>
          ) : (
            <button type="submit" class="send" aria-label="Send" title="Send" disabled={!text.trim() && attachments.length === 0}>
              <Icon name="send" />
            </button>
          )}
        </div>
      </div>
      <p class="small-print">Answers can be wrong. Conversations stay in this browser.</p>
    </form>
  );
}
