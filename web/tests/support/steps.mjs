// What a user does on the page, in a word each.
import { expectText } from './expect.mjs';

export const field = (page) => page.getByRole('textbox', { name: 'Message' });
export const answers = (page) => page.locator('article.answer');
export const bubbles = (page) => page.locator('article.user .bubble');
export const button = (page, name) => page.getByRole('button', { name, exact: true });

export async function say(page, text) {
  await field(page).fill(text);
  await field(page).press('Enter');
}

// Says it and waits for the end of the answer.
export async function ask(page, text) {
  const count = await answers(page).count();
  await say(page, text);
  await settled(page, count + 1);
}

export async function settled(page, count) {
  await answers(page).nth(count - 1).waitFor();
  await page.locator('article.answer[aria-busy="true"]').waitFor({ state: 'detached' });
}

export async function openSettings(page) {
  await page.getByRole('button', { name: 'Settings', exact: true }).click();
  return page.getByRole('dialog', { name: 'Settings' });
}

// The text of a file that `act` downloads.
export async function downloaded(page, act) {
  const [download] = await Promise.all([page.waitForEvent('download'), act()]);
  const stream = await download.createReadStream();
  let text = '';
  for await (const piece of stream) text += piece;
  return text;
}

export const noticed = (page, text) => expectText(page.locator('.notices'), text);
