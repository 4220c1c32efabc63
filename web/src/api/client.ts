// The public HTTP API, nothing else. Addresses are relative, so the page also works below a proxy's prefix.
import { EventParser } from './events';

export interface Model {
  id: string;
  context_length?: number;
  max_model_len?: number;
  capabilities?: string[];
}

export interface Chunk {
  model?: string;
  choices?: {
    delta?: {
      content?: string | null;
      reasoning_content?: string | null;
      reasoning?: string | null;
      tool_calls?: { index: number; id?: string; function?: { name?: string; arguments?: string } }[];
    };
    finish_reason?: string | null;
  }[];
  usage?: {
    prompt_tokens?: number;
    completion_tokens?: number;
    prompt_tokens_details?: { cached_tokens?: number } | null;
  } | null;
  timings?: { predicted_per_second?: number; prompt_per_second?: number; prompt_ms?: number; cache_n?: number } | null;
  seed?: number | string; // a string when it has more digits than a number of JavaScript
  error?: unknown;
}

// The server answered, and said no.
export class Refusal extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
  ) {
    super(message);
  }
}

// No answer, or one that broke off.
export class Lost extends Error {
  constructor(readonly hasBegun: boolean) {
    super(hasBegun ? 'The connection broke off.' : 'The server cannot be reached.');
  }
}

const address = (path: string): string => new URL(path, document.baseURI).href;

function refusalOf(value: unknown, status: number): Refusal {
  const error = (value as { error?: unknown } | null)?.error ?? value;
  if (typeof error === 'string') return new Refusal(error, status, '');
  const fields = (error ?? {}) as { message?: unknown; code?: unknown };
  const message = typeof fields.message === 'string' && fields.message ? fields.message : `The server answered ${status}.`;
  return new Refusal(message, status, typeof fields.code === 'string' ? fields.code : '');
}

async function request(path: string, key: string, init: RequestInit = {}): Promise<Response> {
  const headers: Record<string, string> = { ...(init.body ? { 'Content-Type': 'application/json' } : {}) };
  if (key) headers.Authorization = `Bearer ${key}`;
  let response: Response;
  try {
    response = await fetch(address(path), { ...init, headers, credentials: 'same-origin', cache: 'no-store' });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Lost(false);
  }
  if (response.ok) return response;
  throw refusalOf(await response.json().catch(() => null), response.status);
}

export async function listModels(key: string): Promise<Model[]> {
  const response = await request('v1/models', key);
  const { data } = (await response.json()) as { data?: Model[] };
  return (data ?? []).filter((model) => typeof model.id === 'string');
}

export async function isAlive(): Promise<boolean> {
  try {
    return (await fetch(address('health'), { cache: 'no-store' })).ok;
  } catch {
    return false;
  }
}

// Yields the chunks of a streamed answer. Throws Refusal, Lost, or what `signal` aborts with.
export async function* streamChat(body: object, key: string, signal: AbortSignal): AsyncGenerator<Chunk> {
  const response = await request('v1/chat/completions', key, { method: 'POST', body: JSON.stringify(body), signal });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new EventParser();
  for (;;) {
    const { value, done } = await reader.read().catch((error) => {
      if (signal.aborted) throw error;
      throw new Lost(true);
    });
    if (done) throw new Lost(true); // an orderly stream says [DONE]
    for (const data of parser.add(value)) {
      if (data === '[DONE]') return void reader.cancel().catch(() => {});
      const chunk = JSON.parse(data) as Chunk;
      const long = /"seed":\s*(-?\d{16,})/.exec(data);
      if (long) chunk.seed = long[1];
      if (chunk.error) throw refusalOf(chunk, 0);
      yield chunk;
    }
  }
}

export function hasCapability(model: Model | undefined, name: 'vision' | 'audio'): boolean {
  return Array.isArray(model?.capabilities) && model.capabilities.includes(name);
}

export const contextLength = (model: Model | undefined): number | undefined => model?.context_length ?? model?.max_model_len;
