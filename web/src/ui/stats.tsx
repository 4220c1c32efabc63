// What an answer cost, in one quiet line.
import type { JSX } from 'preact';
import type { LiveAnswer } from '../state/live_answer';
import type { Message } from '../store/types';

const seconds = (ms: number): string => `${(ms / 1000).toFixed(ms < 9950 ? 2 : 1)} s`;
const rate = (value: number): string => `${value < 100 ? value.toFixed(1) : Math.round(value)} tokens/s`;

export function LiveStats({ answer }: { answer: LiveAnswer }): JSX.Element {
  const { first, since, pieces } = answer.figures;
  const now = performance.now();
  if (!first) return <p class="stats">{seconds(now - since)}</p>;
  const span = (now - first) / 1000;
  const speed = span > 0.2 && pieces > 1 ? `≈ ${rate((pieces - 1) / span)}` : '';
  return <p class="stats">{[speed, `first token ${seconds(first - since)}`].filter(Boolean).join(' · ')}</p>;
}

export function StatsLine({ message }: { message: Message }): JSX.Element | null {
  const stats = message.stats;
  if (!stats) return null;
  const parts: string[] = [];
  if (stats.tokensPerSecond) parts.push(rate(stats.tokensPerSecond));
  if (stats.completionTokens !== undefined) parts.push(`${stats.completionTokens} tokens`);
  if (stats.firstTokenMs !== undefined) parts.push(`first token ${seconds(stats.firstTokenMs)}`);
  if (stats.promptTokens && stats.cachedTokens) parts.push(`${Math.round((100 * stats.cachedTokens) / stats.promptTokens)} % of the prompt cached`);
  if (parts.length === 0) return null;
  const details = [
    stats.promptTokens !== undefined && `${stats.promptTokens} tokens of prompt, ${stats.cachedTokens ?? 0} from the cache`,
    stats.promptPerSecond && `prompt read at ${rate(stats.promptPerSecond)}`,
    stats.totalMs !== undefined && `${seconds(stats.totalMs)} in all`,
    stats.seed !== undefined && `seed ${stats.seed}`,
  ];
  return (
    <span class="stats" title={details.filter(Boolean).join('\n')}>
      {parts.join(' · ')}
    </span>
  );
}
