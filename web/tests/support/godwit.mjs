// A real godwit serve with one of the tiny models that tests/http/make_models.py makes.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

function needed(name, what) {
  const value = process.env[name];
  if (!value || !existsSync(value)) throw new Error(`${name} names no ${what} ('${value ?? ''}'); './dev test -L web' sets it.`);
  return value;
}

export async function startGodwit(model, flags = []) {
  const folder = mkdtempSync(join(tmpdir(), 'godwit-web-'));
  const portFile = join(folder, 'port');
  const weights = join(needed('GODWIT_HTTP_MODELS', 'folder of models'), model);
  const port = flags.includes('--port') ? [] : ['--port', '0'];
  const args = ['serve', '-m', weights, ...port, '--port-file', portFile, ...flags];
  const process_ = spawn(needed('GODWIT_BINARY', 'program'), args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let messages = '';
  process_.stderr.on('data', (text) => (messages += text));
  const ended = new Promise((done) => process_.on('exit', done));
  const stop = async () => {
    process_.kill('SIGTERM');
    process_.kill('SIGTERM');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  for (let tries = 0; tries < 1500; tries++) {
    if (existsSync(portFile)) {
      const port = Number(readFileSync(portFile, 'utf8'));
      return { origin: `http://127.0.0.1:${port}`, port, stop, kill: () => process_.kill('SIGKILL') };
    }
    if (process_.exitCode !== null) break;
    await new Promise((done) => setTimeout(done, 20));
  }
  await stop();
  throw new Error(`godwit did not start:\n${messages}`);
}
