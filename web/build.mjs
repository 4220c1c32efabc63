// Bundles the page: node build.mjs OUTDIR. Leaves OUTDIR/dist (what a browser gets) and OUTDIR/web_assets.cpp (the same for
// the program). Names of assets hold a hash of their content, so they never change.
import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(root, '../build/web'));
const dist = join(out, 'dist');
const TYPES = { js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8', svg: 'image/svg+xml', html: 'text/html; charset=utf-8', txt: 'text/plain; charset=utf-8' };
const BUNDLED = ['preact', 'marked', 'dompurify', 'highlight.js', 'temml'];
const MOST_BYTES = 900_000;

async function bundle() {
  const result = await build({
    absWorkingDir: root,
    preserveSymlinks: true, // names and hashes do not depend on where the packages are kept
    entryPoints: { page: 'src/main.tsx', style: 'src/style/page.css', icon: 'src/icon.svg' },
    outdir: join(dist, 'assets'),
    bundle: true,
    splitting: true,
    format: 'esm',
    target: ['chrome109', 'firefox115', 'safari16'],
    minify: true,
    legalComments: 'none',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    loader: { '.svg': 'copy' },
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    metafile: true,
    logLevel: 'warning',
  });
  const names = Object.keys(result.metafile.outputs).map((path) => path.split('/').at(-1));
  return (start, end) => `assets/${names.find((name) => name.startsWith(`${start}-`) && name.endsWith(end))}`;
}

// The notices that the licences of the bundled packages want kept; a file of its own, since the bundle has no comments.
function writeLicences() {
  const notices = BUNDLED.map((name) => {
    const folder = join(root, 'node_modules', name);
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} has no licence file`);
    return `${name}\n${'='.repeat(name.length)}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
  });
  const text = notices.join('\n\n');
  const name = `licences-${createHash('sha256').update(text).digest('hex').slice(0, 8).toUpperCase()}.txt`;
  writeFileSync(join(dist, 'assets', name), text);
  return `assets/${name}`;
}

function literal(bytes) {
  let text = '';
  for (const byte of bytes) {
    const isPlain = byte >= 32 && byte < 127 && byte !== 34 && byte !== 92 && byte !== 63; // no quote, backslash, trigraph
    text += isPlain ? String.fromCharCode(byte) : `\\${byte.toString(8).padStart(3, '0')}`;
  }
  return (text.match(/(?:\\\d{3}|[^\\]){1,4000}/g) ?? ['']).map((line) => `    "${line}"`).join('\n');
}

function cppSource(files) {
  const entry = ({ name, bytes }) => {
    const type = TYPES[name.split('.').at(-1)];
    const tag = createHash('sha256').update(bytes).digest('hex').slice(0, 20);
    return `    {"${name}", "${type}", "\\"${tag}\\"",\n     std::string_view(\n${literal(bytes)},\n         ${bytes.length})},`;
  };
  return `// Made by web/build.mjs.
#include "serve/web_assets.h"

namespace godwit::serve {
namespace {

constexpr WebAsset kAssets[] = {
${files.map(entry).join('\n')}
};

}  // namespace

std::span<const WebAsset> web_assets() { return kAssets; }

}  // namespace godwit::serve
`;
}

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });
const find = await bundle();
const index = readFileSync(join(root, 'src/index.html'), 'utf8')
  .replace('{{script}}', find('page', '.js'))
  .replace('{{style}}', find('style', '.css'))
  .replace('{{icon}}', find('icon', '.svg'))
  .replace('{{licences}}', writeLicences());
writeFileSync(join(dist, 'index.html'), index);
const names = ['index.html', ...readdirSync(join(dist, 'assets')).sort().map((name) => `assets/${name}`)];
const files = names.map((name) => ({ name, bytes: readFileSync(join(dist, name)) }));
const size = files.reduce((sum, file) => sum + file.bytes.length, 0);
if (size > MOST_BYTES) throw new Error(`the page takes ${size} bytes, more than ${MOST_BYTES}`);
writeFileSync(join(out, 'web_assets.cpp'), cppSource(files));
console.log(files.map((file) => `${String(file.bytes.length).padStart(8)} ${file.name}`).join('\n'));
