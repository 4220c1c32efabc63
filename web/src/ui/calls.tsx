// Tool calls of an answer, each with its arguments and a field for the result: nothing is ever run here.
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import { sendToolResult } from '../state/answers';
import { app, currentConversation } from '../state/app';
import { useValue } from '../state/observable';
import { pathTo } from '../store/tree';
import type { Message, ToolCall } from '../store/types';
import { Icon } from './icons';

function indented(source: string): string {
  try {
    return JSON.stringify(JSON.parse(source), null, 2);
  } catch {
    return source; // still being written, or no JSON
  }
}

function ResultForm({ call, message }: { call: ToolCall; message: Message }): JSX.Element {
  const field = useRef<HTMLTextAreaElement>(null);
  const submit = (event: Event): void => {
    event.preventDefault();
    sendToolResult(call.id, message, field.current!.value);
  };
  return (
    <form class="call-result" onSubmit={submit}>
      <textarea ref={field} rows={2} aria-label={`Result of ${call.name}`} placeholder="What the tool returned" />
      <button type="submit" class="button button-main">
        Send the result
      </button>
    </form>
  );
}

export function ToolCalls({ message, isOpen }: { message: Message; isOpen: boolean }): JSX.Element | null {
  const messages = useValue(app, (state) => state.messages);
  const leaf = useValue(app, (state) => currentConversation(state)?.leaf ?? null);
  if (!message.calls?.length) return null;
  const path = pathTo(messages, leaf);
  const given = new Set(path.map((item) => item.callId));
  const isPending = isOpen || path.at(-1)?.role === 'tool';
  return (
    <div class="calls">
      {message.calls.map((call, i) => (
        <section class="call" key={i} aria-label={`Call of ${call.name}`}>
          <h3>
            <Icon name="tool" /> {call.name}
          </h3>
          <pre tabIndex={0} role="group" aria-label="Arguments">
            <code>{indented(call.arguments)}</code>
          </pre>
          {isPending && !given.has(call.id) && message.state === 'done' && <ResultForm call={call} message={message} />}
        </section>
      ))}
    </div>
  );
}
