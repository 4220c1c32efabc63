// What the page keeps. A conversation is a tree: each message names its parent, the conversation names the leaf on show.

export type Role = 'user' | 'assistant' | 'tool';

export interface ToolCall {
  id: string;
  name: string;
  arguments: string;
}

export interface Attachment {
  kind: 'text' | 'image' | 'audio';
  name: string;
  type: string; // media type
  data: string; // text: the text itself; image and audio: base64
}

export interface Failure {
  message: string;
  status: number; // 0: no answer came
  code: string;
}

export interface Stats {
  firstTokenMs?: number;
  totalMs?: number;
  promptTokens?: number;
  completionTokens?: number;
  cachedTokens?: number;
  tokensPerSecond?: number;
  promptPerSecond?: number;
  contextLength?: number;
  seed?: string;
}

// stopped: by the user. interrupted: the stream broke off. failed: the server said why.
export type AnswerState = 'streaming' | 'done' | 'stopped' | 'interrupted' | 'failed';

export interface Message {
  id: string;
  conversation: string;
  parent: string | null;
  role: Role;
  content: string;
  created: number;
  attachments?: Attachment[];
  callId?: string; // role tool: which call this answers
  // of answers
  model?: string;
  reasoning?: string;
  reasoningMs?: number;
  calls?: ToolCall[];
  state?: AnswerState;
  finish?: string;
  failure?: Failure;
  stats?: Stats;
}

export interface Sampling {
  temperature?: number;
  top_p?: number;
  top_k?: number;
  min_p?: number;
  repetition_penalty?: number;
  presence_penalty?: number;
  frequency_penalty?: number;
  xtc_probability?: number;
  seed?: number;
  max_tokens?: number;
  stop?: string[];
}

export type OutputKind = 'text' | 'json' | 'schema';

export interface ChatSettings {
  model: string; // empty: the server's default
  system: string;
  sampling: Sampling;
  effort: string; // reasoning_effort; empty: the model's own
  output: OutputKind;
  schema: string;
  tools: string;
}

export interface Conversation {
  id: string;
  title: string;
  created: number;
  updated: number;
  leaf: string | null;
  settings: ChatSettings;
}

export interface Preset {
  name: string;
  system: string;
  sampling: Sampling;
}

export function emptySettings(): ChatSettings {
  return { model: '', system: '', sampling: {}, effort: '', output: 'text', schema: '', tools: '' };
}

export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

let last = 0;

// Milliseconds since 1970, never the same twice: siblings are ordered by it.
export function timestamp(): number {
  last = Math.max(Date.now(), last + 1);
  return last;
}
