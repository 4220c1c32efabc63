// The branch on show. It keeps to its end while an answer grows, until the reader scrolls away.
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { send } from '../state/answers';
import { app, currentConversation, currentModel } from '../state/app';
import { useValue } from '../state/observable';
import { pathTo } from '../store/tree';
import { Bird, Icon } from './icons';
import { MessageView } from './message';

const NEAR = 90;

const suggestions = [
  { title: 'Explain', text: 'Explain how a suspension bridge carries its load, in three short paragraphs.' },
  { title: 'Write', text: 'Write a polite note to a neighbour whose tree leans over our fence.' },
  { title: 'Program', text: 'Write a Python function that merges overlapping intervals, with a short test.' },
  { title: 'Compare', text: 'Compare Postgres and SQLite for a small web shop. Use a table.' },
];

function EmptyState(): JSX.Element {
  const model = useValue(app, currentModel);
  return (
    <div class="empty">
      <Bird size={104} />
      <h2>What would you like to know?</h2>
      <p>
        {model ? (
          <>
            <strong>{model.id}</strong> answers on {location.host}.
          </>
        ) : (
          <>No model is at hand yet.</>
        )}
      </p>
      <ul class="suggestions">
        {suggestions.map(({ title, text }) => (
          <li key={title}>
            <button type="button" disabled={!model} onClick={() => send(text)}>
              <span class="suggestion-title">{title}</span>
              <span>{text}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

export function Thread(): JSX.Element {
  const messages = useValue(app, (state) => state.messages);
  const id = useValue(app, (state) => state.current);
  const leaf = useValue(app, (state) => currentConversation(state)?.leaf ?? null);
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const last = useRef({ top: 0, height: 0 });
  const [isAway, setAway] = useState(false);
  const path = pathTo(messages, leaf);

  const toEnd = (): void => {
    const box = scroller.current;
    if (box) box.scrollTop = box.scrollHeight;
  };
  // An opened conversation and a message just sent are shown from their end.
  useLayoutEffect(() => {
    follows.current = true;
    toEnd();
  }, [id, leaf]);
  useEffect(() => {
    const observer = new ResizeObserver(() => follows.current && toEnd());
    observer.observe(content.current!);
    observer.observe(scroller.current!);
    return () => observer.disconnect();
  }, []);
  // A reader who moves up is left there; content that shrinks or grows moves nobody.
  const onScroll = (): void => {
    const box = scroller.current!;
    const distance = box.scrollHeight - box.scrollTop - box.clientHeight;
    if (distance < 4) follows.current = true;
    else if (box.scrollTop < last.current.top && box.scrollHeight >= last.current.height) follows.current = false;
    last.current = { top: box.scrollTop, height: box.scrollHeight };
    setAway(distance > NEAR);
  };

  return (
    <div class="thread-frame">
      <div class="thread" ref={scroller} role="log" aria-live="off" aria-label="Conversation" tabIndex={0} onScroll={onScroll}>
        <div class="column" ref={content}>
          {path.length === 0 && <EmptyState />}
          {path.map((message, i) => (
            <MessageView key={message.id} message={message} isLast={i === path.length - 1} />
          ))}
        </div>
      </div>
      {isAway && path.length > 0 && (
        <button type="button" class="to-end" onClick={() => ((follows.current = true), toEnd())}>
          <Icon name="down" /> Latest
        </button>
      )}
    </div>
  );
}
