// The settings of the chat on show: presets, system prompt, sampling, form of the output, tools.
import type { JSX } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { app, currentSettings, setPreferences } from '../state/app';
import { setSettings } from '../state/conversations';
import { useValue } from '../state/observable';
import { builtInPresets } from '../store/preferences';
import type { OutputKind, Preset, Sampling } from '../store/types';
import { IconButton } from './icons';

type NumberField = Exclude<keyof Sampling, 'stop'>;

interface FieldSpec {
  key: NumberField;
  label: string;
  min: number;
  max?: number;
  step: number;
  help: string;
}

const fields: FieldSpec[] = [
  { key: 'temperature', label: 'Temperature', min: 0, max: 5, step: 0.1, help: '0 takes the likeliest token' },
  { key: 'top_p', label: 'Top-p', min: 0, max: 1, step: 0.05, help: 'share of probability kept' },
  { key: 'top_k', label: 'Top-k', min: 0, step: 1, help: 'tokens kept; 0 is off' },
  { key: 'min_p', label: 'Min-p', min: 0, max: 1, step: 0.01, help: 'relative to the likeliest' },
  { key: 'repetition_penalty', label: 'Repetition', min: 0.01, step: 0.05, help: 'penalty; 1 is off' },
  { key: 'presence_penalty', label: 'Presence', min: -2, max: 2, step: 0.1, help: 'penalty' },
  { key: 'frequency_penalty', label: 'Frequency', min: -2, max: 2, step: 0.1, help: 'penalty' },
  { key: 'xtc_probability', label: 'XTC', min: 0, max: 1, step: 0.05, help: 'chance to leave out the top' },
  { key: 'max_tokens', label: 'Most tokens', min: 1, step: 1, help: 'of an answer' },
  { key: 'seed', label: 'Seed', min: -1, step: 1, help: 'same seed, same answer' },
];

function SamplingFields(): JSX.Element {
  const sampling = useValue(app, (state) => currentSettings(state).sampling);
  const set = (key: NumberField, text: string): void => {
    const changed = { ...sampling };
    if (text.trim() === '' || !isFinite(Number(text))) delete changed[key];
    else changed[key] = Number(text);
    setSettings({ sampling: changed });
  };
  const setStops = (text: string): void => {
    const stop = text.split('\n').filter((line) => line !== '').slice(0, 16);
    const changed = { ...sampling, stop };
    if (stop.length === 0) delete (changed as Sampling).stop;
    setSettings({ sampling: changed });
  };
  return (
    <fieldset>
      <legend>Sampling</legend>
      <p class="hint">An empty field leaves the choice to the model’s own defaults.</p>
      <div class="fields">
        {fields.map(({ key, label, min, max, step, help }) => (
          <label class="field" key={key}>
            <span>{label}</span>
            <input type="number" name={key} min={min} max={max} step={step} placeholder="default" value={sampling[key] ?? ''}
              aria-describedby={`help-${key}`} onChange={(event) => set(key, event.currentTarget.value)} />
            <small id={`help-${key}`}>{help}</small>
          </label>
        ))}
      </div>
      <label class="field">
        <span>Stop at</span>
        <textarea name="stop" rows={2} placeholder="one text a line" value={(sampling.stop ?? []).join('\n')} onChange={(event) => setStops(event.currentTarget.value)} />
      </label>
    </fieldset>
  );
}

function Presets(): JSX.Element {
  const own = useValue(app, (state) => state.preferences.presets);
  const settings = useValue(app, currentSettings);
  const [name, setName] = useState('');
  const all = [...builtInPresets, ...own];
  const isSame = (preset: Preset): boolean =>
    preset.system === settings.system && JSON.stringify(preset.sampling) === JSON.stringify(settings.sampling);
  const current = all.find(isSame)?.name ?? '';
  const isOwn = own.some((preset) => preset.name === current);
  const take = (wanted: string): void => {
    const preset = all.find((item) => item.name === wanted);
    if (preset) setSettings({ system: preset.system, sampling: { ...preset.sampling } });
  };
  const keep = (event: Event): void => {
    event.preventDefault();
    const title = name.trim();
    if (!title || builtInPresets.some((preset) => preset.name === title)) return;
    const others = own.filter((preset) => preset.name !== title);
    setPreferences({ presets: [...others, { name: title, system: settings.system, sampling: { ...settings.sampling } }] });
    setName('');
  };
  return (
    <fieldset>
      <legend>Preset</legend>
      <div class="row">
        <select name="preset" aria-label="Preset" value={current} onChange={(event) => take(event.currentTarget.value)}>
          {current === '' && <option value="">As set below</option>}
          {all.map((preset) => (
            <option key={preset.name}>{preset.name}</option>
          ))}
        </select>
        {isOwn && (
          <IconButton icon="trash" label={`Delete the preset ${current}`}
            onClick={() => setPreferences({ presets: own.filter((preset) => preset.name !== current) })} />
        )}
      </div>
      {current === '' && (
        <form class="row" onSubmit={keep}>
          <input aria-label="Name of a new preset" placeholder="Name" value={name} onInput={(event) => setName(event.currentTarget.value)} />
          <button type="submit" class="button" disabled={!name.trim()}>
            Keep as preset
          </button>
        </form>
      )}
    </fieldset>
  );
}

function jsonProblem(source: string): string {
  try {
    JSON.parse(source);
    return '';
  } catch (error) {
    return `Not JSON: ${(error as Error).message}`;
  }
}

interface JsonFieldProps {
  name: string;
  label: string;
  value: string;
  placeholder: string;
  onChange: (value: string) => void;
}

function JsonField({ name, label, value, placeholder, onChange }: JsonFieldProps): JSX.Element {
  const problem = value.trim() ? jsonProblem(value) : '';
  return (
    <label class="field">
      <span>{label}</span>
      <textarea class="code-field" name={name} rows={6} spellcheck={false} placeholder={placeholder} value={value} aria-invalid={problem !== ''}
        aria-describedby={`problem-${name}`} onInput={(event) => onChange(event.currentTarget.value)} />
      <small id={`problem-${name}`} class={problem ? 'problem' : ''}>
        {problem}
      </small>
    </label>
  );
}

const SCHEMA = '{\n  "type": "object",\n  "properties": { "name": { "type": "string" } },\n  "required": ["name"]\n}';
const TOOLS = '[{ "type": "function", "function": {\n  "name": "weather",\n  "parameters": { "type": "object", … } } }]';

function OutputFields(): JSX.Element {
  const { output, schema, effort, tools } = useValue(app, currentSettings);
  return (
    <fieldset>
      <legend>Output</legend>
      <label class="field">
        <span>Form</span>
        <select name="output" value={output} onChange={(event) => setSettings({ output: event.currentTarget.value as OutputKind })}>
          <option value="text">Free text</option>
          <option value="json">A JSON object</option>
          <option value="schema">JSON by a schema</option>
        </select>
      </label>
      {output === 'schema' && <JsonField name="schema" label="JSON schema" value={schema} placeholder={SCHEMA} onChange={(value) => setSettings({ schema: value })} />}
      <label class="field">
        <span>Reasoning</span>
        <select name="effort" value={effort} onChange={(event) => setSettings({ effort: event.currentTarget.value })}>
          <option value="">As the model does</option>
          <option value="none">None</option>
          <option value="low">Low</option>
          <option value="medium">Medium</option>
          <option value="high">High</option>
        </select>
      </label>
      <JsonField name="tools" label="Tools (OpenAI form)" value={tools} placeholder={TOOLS} onChange={(value) => setSettings({ tools: value })} />
    </fieldset>
  );
}

export function Panel(): JSX.Element {
  const system = useValue(app, (state) => currentSettings(state).system);
  const heading = useRef<HTMLHeadingElement>(null);
  const close = (): void => {
    app.set({ panelOpen: false });
    requestAnimationFrame(() => document.querySelector<HTMLElement>('[aria-controls="panel"]')?.focus());
  };
  useLayoutEffect(() => heading.current?.focus(), []);
  const onKey = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape') return;
    event.preventDefault();
    close();
  };
  return (
    <aside class="panel" id="panel" aria-label="Chat settings" onKeyDown={onKey}>
      <div class="panel-head">
        <h2 ref={heading} tabIndex={-1}>
          Chat settings
        </h2>
        <IconButton icon="close" label="Close the chat settings" onClick={close} />
      </div>
      <div class="panel-body">
        <Presets />
        <fieldset>
          <legend>System prompt</legend>
          <textarea name="system" rows={5} aria-label="System prompt" placeholder="How the model should behave" value={system}
            onInput={(event) => setSettings({ system: event.currentTarget.value })} />
        </fieldset>
        <SamplingFields />
        <OutputFields />
      </div>
    </aside>
  );
}
