// Files of this machine: read into attachments, written as downloads.
import type { Attachment } from '../store/types';

const MOST_TEXT = 1 << 20;
const MOST_MEDIA = 20 << 20;

function toBase64(bytes: Uint8Array): string {
  let text = '';
  for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  return btoa(text);
}

const megabytes = (bytes: number): string => `${(bytes / 1048576).toFixed(0)} MiB`;

// Throws an Error that can be shown.
export async function readAttachment(file: File, allows: { image: boolean; audio: boolean }): Promise<Attachment> {
  const kind = file.type.startsWith('image/') ? 'image' : file.type.startsWith('audio/') ? 'audio' : 'text';
  const most = kind === 'text' ? MOST_TEXT : MOST_MEDIA;
  if (file.size > most) throw new Error(`${file.name} is larger than ${megabytes(most)}.`);
  const isSvg = file.type === 'image/svg+xml'; // a text, and so it is sent
  if (kind === 'image' && !isSvg && !allows.image) throw new Error(`This model reads no images (${file.name}).`);
  if (kind === 'audio' && !allows.audio) throw new Error(`This model hears no audio (${file.name}).`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (kind !== 'text' && !isSvg) return { kind, name: file.name, type: file.type, data: toBase64(bytes) };
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    if (text.includes('\0')) throw new Error();
    return { kind: 'text', name: file.name, type: file.type || 'text/plain', data: text };
  } catch {
    throw new Error(`${file.name} is no text.`);
  }
}

export function download(name: string, text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export const fileName = (title: string): string => `${title.replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '').slice(0, 60) || 'chat'}.json`;
