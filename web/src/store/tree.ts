// Branches of a conversation. All functions are pure; `Messages` is replaced, never changed, when a message changes.
import type { Message } from './types';

export type Messages = ReadonlyMap<string, Message>;

const indexes = new WeakMap<Messages, Map<string | null, Message[]>>();

function childIndex(messages: Messages): Map<string | null, Message[]> {
  const known = indexes.get(messages);
  if (known) return known;
  const index = new Map<string | null, Message[]>();
  for (const message of messages.values()) {
    const parent = message.parent !== null && messages.has(message.parent) ? message.parent : null;
    const children = index.get(parent);
    if (children) children.push(message);
    else index.set(parent, [message]);
  }
  for (const children of index.values()) children.sort((a, b) => a.created - b.created || (a.id < b.id ? -1 : 1));
  indexes.set(messages, index);
  return index;
}

export function childrenOf(messages: Messages, parent: string | null): Message[] {
  return childIndex(messages).get(parent) ?? [];
}

// From the first message to `leaf`. A parent that is missing or met twice (a damaged import) ends the path.
export function pathTo(messages: Messages, leaf: string | null): Message[] {
  const path: Message[] = [];
  const met = new Set<string>();
  for (let id = leaf; id !== null && !met.has(id); ) {
    const message = messages.get(id);
    if (!message) break;
    met.add(id);
    path.push(message);
    id = message.parent;
  }
  return path.reverse();
}

// The alternatives at a message's place, itself included, oldest first.
export function siblingsOf(messages: Messages, message: Message): Message[] {
  const parent = message.parent !== null && messages.has(message.parent) ? message.parent : null;
  return childrenOf(messages, parent);
}

// Down from `id` along the newest messages.
export function newestLeaf(messages: Messages, id: string): string {
  const met = new Set<string>();
  let leaf = id;
  for (;;) {
    met.add(leaf);
    const next = childrenOf(messages, leaf).at(-1);
    if (!next || met.has(next.id)) return leaf;
    leaf = next.id;
  }
}
