// Chromium of the system, and a page in it that notes every host it asks and every complaint it makes.
import { existsSync } from 'node:fs';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

export async function launch() {
  const path = process.env.GODWIT_CHROMIUM || '/usr/bin/chromium';
  if (!existsSync(path)) throw new Error(`There is no browser at ${path}. Debian: apt-get install chromium fonts-liberation2 ('./dev test' does it as root), or set GODWIT_CHROMIUM.`);
  return chromium.launch({ executablePath: path, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
}

export async function openPage(browser, origin, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  context.setDefaultTimeout(8000);
  const page = await context.newPage();
  const own = new URL(origin).host;
  page.outside = []; // requests to any other host
  page.complaints = []; // errors of scripts, and breaches of the policy
  context.on('request', (request) => {
    const url = new URL(request.url());
    if (/^(https?|wss?):$/.test(url.protocol) && url.host !== own) page.outside.push(request.url());
  });
  page.on('pageerror', (error) => page.complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/Failed to load resource|ERR_/.test(message.text())) page.complaints.push(message.text());
  });
  page.on('dialog', (dialog) => (page.complaints.push(`dialog: ${dialog.message()}`), void dialog.dismiss()));
  await page.goto(origin);
  await page.getByRole('textbox', { name: 'Message' }).waitFor();
  await page.locator('#model:enabled').waitFor();
  return page;
}

const shots = process.env.GODWIT_WEB_SHOTS;

export async function screenshot(page, name) {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, `${name}.png`) });
}
