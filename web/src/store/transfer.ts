// Conversations as a JSON file, out and in. What comes in is checked field by field: a file is untrusted.
import { emptySettings, newId, type Attachment, type ChatSettings, type Conversation, type Message, type ToolCall } from './types';

export const FORMAT = 'godwit-conversations';

export interface Bundle {
  format: string;
  version: number;
  conversations: (Conversation & { messages: Message[] })[];
}

export function toBundle(conversations: Conversation[], messages: Message[]): Bundle {
  return {
    format: FORMAT,
    version: 1,
    conversations: conversations.map((conversation) => ({
      ...conversation,
      messages: messages.filter((message) => message.conversation === conversation.id),
    })),
  };
}

type Fields = Record<string, unknown>;

const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);
const text = (value: unknown, otherwise = ''): string => (typeof value === 'string' ? value : otherwise);
const number = (value: unknown, otherwise: number): number => (typeof value === 'number' && isFinite(value) ? value : otherwise);
const list = (value: unknown): Fields[] => (Array.isArray(value) ? value.filter(isObject) : []);

function readSettings(value: unknown): ChatSettings {
  const settings = emptySettings();
  if (!isObject(value)) return settings;
  for (const key of ['model', 'system', 'effort', 'schema', 'tools'] as const) settings[key] = text(value[key]);
  if (value.output === 'json' || value.output === 'schema') settings.output = value.output;
  if (isObject(value.sampling)) {
    for (const [key, given] of Object.entries(value.sampling))
      if (typeof given === 'number' && isFinite(given)) Object.assign(settings.sampling, { [key]: given });
    const stop = value.sampling.stop;
    if (Array.isArray(stop)) settings.sampling.stop = stop.filter((item) => typeof item === 'string');
  }
  return settings;
}

function readAttachment(value: Fields): Attachment {
  const kind = value.kind === 'image' || value.kind === 'audio' ? value.kind : 'text';
  return { kind, name: text(value.name, 'file'), type: text(value.type), data: text(value.data) };
}

function readMessage(value: Fields, conversation: string): Message {
  const role = value.role;
  if (role !== 'user' && role !== 'assistant' && role !== 'tool') throw new Error(`A message has the role "${String(role)}".`);
  const message: Message = {
    id: text(value.id) || newId(),
    conversation,
    parent: typeof value.parent === 'string' ? value.parent : null,
    role,
    content: text(value.content),
    created: number(value.created, 0),
  };
  if (typeof value.reasoning === 'string') message.reasoning = value.reasoning;
  if (typeof value.reasoningMs === 'number') message.reasoningMs = value.reasoningMs;
  if (typeof value.model === 'string') message.model = value.model;
  if (typeof value.callId === 'string') message.callId = value.callId;
  if (typeof value.finish === 'string') message.finish = value.finish;
  if (value.attachments) message.attachments = list(value.attachments).map(readAttachment);
  if (value.calls)
    message.calls = list(value.calls).map((call): ToolCall => ({
      id: text(call.id),
      name: text(call.name),
      arguments: text(call.arguments),
    }));
  if (isObject(value.stats))
    message.stats = Object.fromEntries(Object.entries(value.stats).filter(([, figure]) => typeof figure === 'number'));
  if (role === 'assistant') message.state = value.state === 'stopped' || value.state === 'interrupted' ? value.state : 'done';
  return message;
}

// All ids are drawn anew, so that a file can be read twice and never overwrites anything.
export function fromBundle(source: string): { conversations: Conversation[]; messages: Message[] } {
  let bundle: unknown;
  try {
    bundle = JSON.parse(source);
  } catch {
    throw new Error('The file is not JSON.');
  }
  if (!isObject(bundle) || bundle.format !== FORMAT) throw new Error('The file holds no conversations of this page.');
  const conversations: Conversation[] = [];
  const messages: Message[] = [];
  for (const value of list(bundle.conversations)) {
    const id = newId();
    const read = list(value.messages).map((message) => readMessage(message, id));
    const renamed = new Map(read.map((message) => [message.id, newId()]));
    for (const message of read) {
      message.id = renamed.get(message.id)!;
      message.parent = (message.parent !== null && renamed.get(message.parent)) || null;
    }
    messages.push(...read);
    conversations.push({
      id,
      title: text(value.title, 'Imported chat'),
      created: number(value.created, Date.now()),
      updated: number(value.updated, Date.now()),
      leaf: (typeof value.leaf === 'string' && renamed.get(value.leaf)) || read.at(-1)?.id || null,
      settings: readSettings(value.settings),
    });
  }
  return { conversations, messages };
}
