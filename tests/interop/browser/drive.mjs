// A browser that a test drives: `drive.mjs PROGRAM chrome|firefox FOLDER URL`.  Reads a command a
// line, as JSON: {id, run: JAVASCRIPT}, {id, press: TEXT}, {id, fill: LABEL, text}, {id, axe: true},
// {id, shot: FILE, width, height, scheme}; prints the answers, and what the page says at its
// console, as JSON too.  {id, open: URL} opens another page, and answers its number; a command with
// `page` is for that one, and {id, page, close: true} closes it.
import { createInterface } from "node:readline";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import puppeteer from "puppeteer-core";

const [executablePath, browserName, folder, url] = process.argv.slice(2);
const print = (said) => process.stdout.write(`${JSON.stringify(said)}\n`);
const args = browserName === "firefox" ? [] : [
  "--no-sandbox", "--disable-gpu", "--no-first-run", "--mute-audio", "--disable-dev-shm-usage",
  "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
  "--autoplay-policy=no-user-gesture-required", "--auto-accept-this-tab-capture",
];
const prefs = browserName === "firefox" ? JSON.parse(await readFile(`${folder}/prefs.json`)) : {};
const browser = await puppeteer.launch({
  executablePath, browser: browserName, headless: true, args, extraPrefsFirefox: prefs,
  userDataDir: `${folder}/profile`, protocolTimeout: 120000,
});
process.on("SIGTERM", () => browser.close().finally(() => process.exit()));
const pages = [];
const open = async (address) => {
  const page = await browser.newPage();
  page.on("console", (said) => print({ console: said.text() }));
  page.on("pageerror", (error) => print({ error: error.message }));
  await page.goto(address);
  return pages.push(page) - 1;
};
await open(url);
print({ ready: true });

// Whether a button could be pressed, and whether a field could be filled and its form submitted.
const press = (text) => {
  const named = (each) => (each.getAttribute("aria-label") ?? each.textContent) === text;
  const found = [...document.querySelectorAll("button")].find((each) => named(each) && !each.disabled && each.checkVisibility());
  found?.click();
  return Boolean(found);
};
const fill = (label, text, submits) => {
  const shown = [...document.querySelectorAll("label")].find((each) => each.textContent === label && each.checkVisibility());
  const field = shown && document.getElementById(shown.htmlFor);
  if (!field) return false;
  field.value = text;
  if (submits) field.form.requestSubmit();
  return true;
};
const tasks = {
  open: (asked) => open(asked.open),
  close: (asked, page) => page.close(),
  run: ({ run }, page) => page.evaluate(`(async () => { ${run} })()`),
  press: (asked, page) => page.evaluate(press, asked.press),
  fill: (asked, page) => page.evaluate(fill, asked.fill, asked.text, asked.submits),
  async axe(asked, page) {
    const script = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
    await page.evaluate(await readFile(script, "utf8"));
    const { violations } = await page.evaluate("axe.run()");
    return violations.map(({ id, nodes }) => [id, ...nodes.map((each) => each.html)]);
  },
  async shot({ shot, width, height, scheme }, page) {
    await page.setViewport({ width, height });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.screenshot({ path: shot, fullPage: true });
  },
};
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line), name = Object.keys(tasks).find((each) => each in asked);
  try {
    print({ id: asked.id, value: (await tasks[name](asked, pages[asked.page ?? 0])) ?? null });
  } catch (error) {
    print({ id: asked.id, failed: error.message });
  }
}
