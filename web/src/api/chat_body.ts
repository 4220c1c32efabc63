// From a branch and its settings to the body of POST /v1/chat/completions.
import type { Attachment, ChatSettings, Message } from '../store/types';

type Json = Record<string, unknown>;

// A fence longer than every run of backticks inside.
function fenced(name: string, text: string): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), (run) => run[0].length));
  const fence = '`'.repeat(longest + 1);
  return `${name}:\n${fence}\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}`;
}

function mediaPart(attachment: Attachment): Json {
  if (attachment.kind === 'image')
    return { type: 'image_url', image_url: { url: `data:${attachment.type};base64,${attachment.data}` } };
  const format = attachment.type.includes('mpeg') || attachment.type.includes('mp3') ? 'mp3' : (attachment.type.split('/')[1] ?? 'wav');
  return { type: 'input_audio', input_audio: { data: attachment.data, format: format.replace(/^x-/, '') } };
}

function userContent(message: Message): unknown {
  const attachments = message.attachments ?? [];
  const texts = attachments.filter((item) => item.kind === 'text').map((item) => fenced(item.name, item.data));
  const text = [...texts, message.content].filter(Boolean).join('\n\n');
  const media = attachments.filter((item) => item.kind !== 'text').map(mediaPart);
  return media.length === 0 ? text : [...media, { type: 'text', text }];
}

function toApi(message: Message, withReasoning: boolean): Json {
  if (message.role === 'user') return { role: 'user', content: userContent(message) };
  if (message.role === 'tool') return { role: 'tool', tool_call_id: message.callId, content: message.content };
  const answer: Json = { role: 'assistant', content: message.content };
  if (message.calls?.length) {
    answer.tool_calls = message.calls.map((call) => ({
      id: call.id,
      type: 'function',
      function: { name: call.name, arguments: call.arguments || '{}' },
    }));
    withReasoning = true; // a model that called a tool goes on from its thoughts
  }
  if (withReasoning && message.reasoning) answer.reasoning_content = message.reasoning;
  return answer;
}

// An answer that is nothing but a failure is no part of the conversation.
const isSent = (message: Message): boolean =>
  message.role !== 'assistant' || message.content !== '' || (message.calls?.length ?? 0) > 0 || !!message.reasoning;

function parsed(source: string, what: string): unknown {
  try {
    return JSON.parse(source);
  } catch (error) {
    throw new Error(`${what} is not JSON: ${(error as Error).message}`);
  }
}

function responseFormat(settings: ChatSettings): Json | undefined {
  if (settings.output === 'json') return { type: 'json_object' };
  if (settings.output !== 'schema') return undefined;
  const schema = parsed(settings.schema, 'The schema of this chat');
  return { type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } };
}

// Throws an Error that can be shown when the settings hold what is no JSON.
export function chatBody(path: Message[], settings: ChatSettings, model: string, continues: boolean): Json {
  const sent = path.filter(isSent);
  const messages = sent.map((message, i) => toApi(message, continues && i === sent.length - 1));
  if (settings.system.trim()) messages.unshift({ role: 'system', content: settings.system });
  const body: Json = { model, messages, stream: true, stream_options: { include_usage: true }, ...settings.sampling };
  if (settings.sampling.max_tokens !== undefined) {
    body.max_completion_tokens = settings.sampling.max_tokens;
    delete body.max_tokens;
  }
  if (settings.effort) body.reasoning_effort = settings.effort;
  const format = responseFormat(settings);
  if (format) body.response_format = format;
  if (settings.tools.trim()) body.tools = parsed(settings.tools, 'The tool list of this chat');
  if (continues) Object.assign(body, { continue_final_message: true, add_generation_prompt: false });
  return body;
}
