// Modules of the page for tests without a browser.
import { build } from 'esbuild';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');

export async function load(module) {
  const folder = mkdtempSync(join(tmpdir(), 'godwit-web-'));
  try {
    const outfile = join(folder, 'module.mjs');
    await build({ absWorkingDir: root, entryPoints: [join('src', module)], outfile, bundle: true, format: 'esm', platform: 'node', logLevel: 'error' });
    return await import(pathToFileURL(outfile));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

// Random numbers in [0, 1) that a seed decides (mulberry32).
export function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
