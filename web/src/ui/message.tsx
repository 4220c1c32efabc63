// One message: what it says, what it called, how it ended, and what can be done with it.
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks';
import { continueAnswer, editMessage, regenerate, showBranch } from '../state/answers';
import { app, currentConversation, isAnswering, live } from '../state/app';
import type { LiveAnswer } from '../state/live_answer';
import { useValue } from '../state/observable';
import { siblingsOf } from '../store/tree';
import type { Message } from '../store/types';
import { copyText } from '../text/decorate';
import { ToolCalls } from './calls';
import { focusComposer } from './app';
import { Icon, IconButton } from './icons';
import { Prose } from './prose';
import { LiveStats, StatsLine } from './stats';

const seconds = (ms: number): string => (ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`);

// Redraws the caller while an answer grows, ten times a second at most.
function useTicks(answer: LiveAnswer | undefined): void {
  const [, tick] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    if (!answer) return;
    const timer = setInterval(() => tick(undefined as never), 100);
    return () => clearInterval(timer);
  }, [answer]);
}

function Reasoning({ message, answer }: { message: Message; answer: LiveAnswer | undefined }): JSX.Element | null {
  const now = answer?.reasoningNow;
  const [isOpen, setOpen] = useState<boolean | null>(null);
  if (!message.reasoning) return null;
  const time = now ?? message.reasoningMs;
  const label = now !== undefined ? 'Thinking' : 'Thought';
  return (
    <details class="reasoning" open={isOpen ?? now !== undefined} onToggle={(event) => event.currentTarget.open !== (isOpen ?? now !== undefined) && setOpen(event.currentTarget.open)}>
      <summary>
        {label}
        {time !== undefined && (time < 100 ? ' for a moment' : ` for ${seconds(time)}`)}
      </summary>
      <div class="reasoning-text">{message.reasoning}</div>
    </details>
  );
}

function BranchPicker({ message }: { message: Message }): JSX.Element | null {
  const siblings = useValue(app, (state) => state.messages);
  const all = siblingsOf(siblings, message);
  const isBusy = useValue(app, (state) => isAnswering(state.current));
  if (all.length < 2) return null;
  const at = all.findIndex((item) => item.id === message.id);
  return (
    <span class="branches" role="group" aria-label="Versions">
      <IconButton icon="left" label="Previous version" disabled={at === 0 || isBusy} onClick={() => showBranch(all[at - 1]!)} />
      <span aria-label={`Version ${at + 1} of ${all.length}`}>
        {at + 1}/{all.length}
      </span>
      <IconButton icon="right" label="Next version" disabled={at === all.length - 1 || isBusy} onClick={() => showBranch(all[at + 1]!)} />
    </span>
  );
}

function CopyMessage({ text }: { text: string }): JSX.Element {
  const [isDone, setDone] = useState(false);
  const copy = async (): Promise<void> => {
    setDone(await copyText(text));
    setTimeout(() => setDone(false), 1500);
  };
  return <IconButton icon={isDone ? 'check' : 'copy'} label={isDone ? 'Copied' : 'Copy'} onClick={() => void copy()} />;
}

function Editor({ message, onEnd }: { message: Message; onEnd: () => void }): JSX.Element {
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    const area = field.current!;
    area.style.height = `${Math.min(area.scrollHeight + 2, innerHeight * 0.5)}px`;
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
  }, []);
  const end = (isKept: boolean): void => {
    const text = field.current!.value.trim();
    if (isKept && text && text !== message.content) {
      editMessage(message, text);
      focusComposer();
    }
    onEnd();
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') {
      event.preventDefault();
      end(false);
    } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      end(true);
    }
  };
  return (
    <div class="editor">
      <textarea ref={field} aria-label="Edit this message" defaultValue={message.content} onKeyDown={onKey} />
      <div class="editor-row">
        <span class="hint">{message.role === 'user' ? 'The old version stays as a branch.' : 'Kept as another version.'}</span>
        <button type="button" class="button" onClick={() => end(false)}>
          Cancel
        </button>
        <button type="button" class="button button-main" onClick={() => end(true)}>
          {message.role === 'user' ? 'Send' : 'Keep'}
        </button>
      </div>
    </div>
  );
}

const canContinue = (message: Message): boolean =>
  message.content !== '' && !message.calls?.length && (message.state === 'stopped' || message.state === 'interrupted' || message.finish === 'length');

// How an answer ended, where that is not simply its end.
function Ending({ message }: { message: Message }): JSX.Element | null {
  const server = useValue(app, (state) => state.server);
  const { failure, state } = message;
  if (!failure) return state === 'stopped' ? <p class="ending">Stopped.</p> : message.finish === 'length' ? <p class="ending">Cut at the limit of tokens.</p> : null;
  const isAway = state === 'interrupted' && failure.code === 'connection';
  const isBack = isAway && server === 'up';
  return (
    <div class="failure" role="alert">
      <p>
        <strong>{state === 'interrupted' ? 'Interrupted.' : failure.status ? `Error ${failure.status}.` : 'Error.'}</strong> {failure.message}
        {isAway && (isBack ? ' The server is back.' : ' Waiting for the server…')}
      </p>
      <div class="failure-row">
        {canContinue(message) && (
          <button type="button" class="button" disabled={isAway && !isBack} onClick={() => continueAnswer(message)}>
            Continue
          </button>
        )}
        <button type="button" class="button" disabled={isAway && !isBack} onClick={() => regenerate(message)}>
          Try again
        </button>
        {failure.status === 401 && (
          <button type="button" class="button" onClick={() => app.set({ dialog: 'settings' })}>
            Enter a key
          </button>
        )}
      </div>
    </div>
  );
}

function Attachments({ message }: { message: Message }): JSX.Element | null {
  if (!message.attachments?.length) return null;
  return (
    <ul class="attachments" aria-label="Attached files">
      {message.attachments.map((item, i) => (
        <li class={`attachment is-${item.kind}`} key={i}>
          {item.kind === 'image' && <img alt={item.name} src={`data:${item.type};base64,${item.data}`} />}
          {item.kind === 'audio' && <audio controls src={`data:${item.type};base64,${item.data}`} />}
          {item.kind === 'text' && <Icon name="file" />}
          <span>{item.name}</span>
        </li>
      ))}
    </ul>
  );
}

function UserMessage({ message }: { message: Message }): JSX.Element {
  const [isEdited, setEdited] = useState(false);
  const isBusy = useValue(app, (state) => isAnswering(state.current));
  return (
    <article class="message user">
      <h2 class="visually-hidden">You</h2>
      <Attachments message={message} />
      {isEdited ? <Editor message={message} onEnd={() => setEdited(false)} /> : message.content && <div class="bubble">{message.content}</div>}
      {!isEdited && (
        <div class="actions">
          <BranchPicker message={message} />
          <CopyMessage text={message.content} />
          <IconButton icon="pencil" label="Edit" disabled={isBusy} onClick={() => setEdited(true)} />
        </div>
      )}
    </article>
  );
}

function AnswerActions({ message, isLast, onEdit }: { message: Message; isLast: boolean; onEdit: () => void }): JSX.Element {
  const isBusy = useValue(app, (state) => isAnswering(state.current));
  return (
    <div class="actions">
      <BranchPicker message={message} />
      <CopyMessage text={message.content} />
      <IconButton icon="pencil" label="Edit" disabled={isBusy} onClick={onEdit} />
      <IconButton icon="again" label="Answer again" disabled={isBusy} onClick={() => regenerate(message)} />
      {isLast && canContinue(message) && <IconButton icon="forward" label="Continue" disabled={isBusy} onClick={() => continueAnswer(message)} />}
      <StatsLine message={message} />
    </div>
  );
}

function Answer({ message, isLast }: { message: Message; isLast: boolean }): JSX.Element {
  const [isEdited, setEdited] = useState(false);
  useValue(app, () => live.get(message.id));
  const answer = live.get(message.id);
  useTicks(answer);
  const shown = answer?.message ?? message;
  const isWaiting = answer !== undefined && !shown.content && !shown.reasoning && !shown.calls?.length;
  return (
    <article class="message answer" aria-busy={answer !== undefined}>
      <h2 class="who">
        <span class="visually-hidden">Answer of </span>
        {shown.model || 'Godwit'}
      </h2>
      <Reasoning message={shown} answer={answer} />
      {isWaiting && <p class="waiting">Reading the prompt</p>}
      {isEdited ? <Editor message={message} onEnd={() => setEdited(false)} /> : <Prose text={shown.content} answer={answer} />}
      <ToolCalls message={shown} isOpen={isLast && !answer} />
      {!answer && <Ending message={shown} />}
      {answer ? <LiveStats answer={answer} /> : !isEdited && <AnswerActions message={shown} isLast={isLast} onEdit={() => setEdited(true)} />}
    </article>
  );
}

function ToolResult({ message }: { message: Message }): JSX.Element {
  return (
    <article class="message tool-result">
      <h2 class="who">Result of a tool</h2>
      <pre tabIndex={0}>{message.content}</pre>
    </article>
  );
}

export function MessageView({ message, isLast }: { message: Message; isLast: boolean }): JSX.Element {
  // A conversation that is gone has no view; the check keeps a late redraw quiet.
  if (!currentConversation(app.get())) return <></>;
  if (message.role === 'user') return <UserMessage message={message} />;
  if (message.role === 'tool') return <ToolResult message={message} />;
  return <Answer message={message} isLast={isLast} />;
}
