// One answer while it streams: takes chunks, keeps its message up to date, tells who looks.
import { Lost, Refusal, streamChat, type Chunk } from '../api/client';
import type { Message, Stats } from '../store/types';

const SAVE_EVERY_MS = 700;

export interface LiveFigures {
  since: number; // performance.now() of the request
  first: number; // of the first piece; 0: none yet
  pieces: number;
}

export class LiveAnswer {
  readonly figures: LiveFigures = { since: performance.now(), first: 0, pieces: 0 };
  private readonly controller = new AbortController();
  private readonly listeners = new Set<() => void>();
  private reasoningSince = 0;
  private saved = performance.now();

  // `message` is a draft of our own; `save` is told of it now and then.
  constructor(
    public message: Message,
    private readonly save: (message: Message) => void,
  ) {}

  stop(): void {
    this.controller.abort();
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  // Runs to the end, whatever that is; never throws.
  async run(body: object, key: string): Promise<Message> {
    const draft = this.message;
    draft.state = 'streaming';
    delete draft.failure;
    delete draft.finish;
    try {
      for await (const chunk of streamChat(body, key, this.controller.signal)) this.take(chunk);
      draft.state = 'done';
    } catch (error) {
      this.end(error);
    }
    this.endReasoning();
    draft.stats = { ...draft.stats, totalMs: performance.now() - this.figures.since };
    return draft;
  }

  private end(error: unknown): void {
    const draft = this.message;
    if (this.controller.signal.aborted) {
      draft.state = 'stopped';
    } else if (error instanceof Lost || (error instanceof Refusal && error.code === 'draining' && this.figures.pieces > 0)) {
      draft.state = 'interrupted';
      draft.failure = { message: error.message, status: 0, code: 'connection' };
    } else {
      draft.state = 'failed';
      const refusal = error instanceof Refusal ? error : new Refusal((error as Error).message, 0, '');
      draft.failure = { message: refusal.message, status: refusal.status, code: refusal.code };
    }
  }

  private take(chunk: Chunk): void {
    const draft = this.message;
    if (chunk.model) draft.model = chunk.model;
    const choice = chunk.choices?.[0];
    if (choice?.finish_reason) draft.finish = choice.finish_reason;
    const delta = choice?.delta ?? {};
    const reasoning = delta.reasoning_content ?? delta.reasoning;
    if (reasoning) {
      this.reasoningSince ||= performance.now();
      draft.reasoning = (draft.reasoning ?? '') + reasoning;
    }
    if (delta.content) {
      this.endReasoning();
      draft.content += delta.content;
    }
    for (const part of delta.tool_calls ?? []) this.takeCall(part);
    if (reasoning || delta.content || delta.tool_calls?.length) this.count();
    this.takeFigures(chunk);
    this.tell();
  }

  private takeCall(part: { index: number; id?: string; function?: { name?: string; arguments?: string } }): void {
    this.endReasoning();
    const calls = (this.message.calls ??= []);
    const call = (calls[part.index] ??= { id: '', name: '', arguments: '' });
    if (part.id) call.id = part.id;
    if (part.function?.name) call.name += part.function.name;
    call.arguments += part.function?.arguments ?? '';
  }

  private count(): void {
    this.figures.first ||= performance.now();
    this.figures.pieces++;
    this.message.stats = { ...this.message.stats, firstTokenMs: this.figures.first - this.figures.since };
  }

  private endReasoning(): void {
    if (!this.reasoningSince) return;
    this.message.reasoningMs = (this.message.reasoningMs ?? 0) + performance.now() - this.reasoningSince;
    this.reasoningSince = 0;
  }

  private takeFigures(chunk: Chunk): void {
    if (!chunk.usage && !chunk.timings) return;
    const stats: Stats = { ...this.message.stats };
    if (chunk.usage) {
      stats.promptTokens = chunk.usage.prompt_tokens;
      stats.completionTokens = chunk.usage.completion_tokens;
      stats.cachedTokens = chunk.usage.prompt_tokens_details?.cached_tokens;
    }
    if (chunk.timings) {
      stats.tokensPerSecond = chunk.timings.predicted_per_second;
      stats.promptPerSecond = chunk.timings.prompt_per_second;
      stats.cachedTokens ??= chunk.timings.cache_n;
    }
    if (chunk.seed !== undefined) stats.seed = String(chunk.seed);
    this.message.stats = stats;
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
    if (performance.now() - this.saved < SAVE_EVERY_MS) return;
    this.saved = performance.now();
    this.save({ ...this.message });
  }

  // How long the model has been reasoning, while it does.
  get reasoningNow(): number | undefined {
    return this.reasoningSince ? performance.now() - this.reasoningSince + (this.message.reasoningMs ?? 0) : undefined;
  }
}
