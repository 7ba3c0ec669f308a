import { existsSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { chromium } from 'playwright-core';
import type {
  Browser,
  BrowserContext,
  BrowserContextOptions,
  Locator,
  Page,
} from 'playwright-core';
import { eventually } from '../time/waiting.js';
import { isFocused } from './page-appearance.js';

/**
 * The usual paths of Chromium. The first is the smallest program: it needs a quarter less processor time for the same
 * tests.
 */
const PLACES = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** Chromium sends nothing by itself, and can run as root in a container. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Pages request their data every one or two seconds. In tests, they do so every 200 ms. */
const FASTER_POLLS = `
  const { setTimeout } = window;
  window.setTimeout = (callback, ms) => setTimeout(callback, ms === 1000 || ms === 2000 ? 200 : ms);`;

/** The path of a Chromium: `CHROMIUM_PATH` (empty: none), or the usual path of the system. */
export function findChromium(): string | undefined {
  const named = process.env['CHROMIUM_PATH'];
  if (named === undefined) return PLACES.find((place) => existsSync(place));
  if (named === '') return undefined;
  if (!existsSync(named)) throw new Error(`CHROMIUM_PATH names "${named}", which does not exist`);
  return named;
}

/** A real Chromium. It records the errors of its pages; see {@link TestBrowser.troubles}. */
export class TestBrowser implements AsyncDisposable {
  readonly #browser: Browser;
  readonly #contexts = new Set<BrowserContext>();
  #troubles: string[] = [];

  private constructor(browser: Browser) {
    this.#browser = browser;
  }

  static async start(): Promise<TestBrowser> {
    const executablePath = findChromium();
    if (executablePath === undefined) throw new Error('no Chromium on this machine');
    return new TestBrowser(await chromium.launch({ executablePath, args: FLAGS }));
  }

  /** Opens a page in a new profile, without cookies, credentials or storage of other pages. */
  async page(options: BrowserContextOptions = {}): Promise<Page> {
    const context = await this.#browser.newContext(options);
    this.#contexts.add(context);
    context.setDefaultTimeout(60_000);
    await context.addInitScript(FASTER_POLLS);
    context.on('weberror', (error) => this.#troubles.push(`uncaught: ${error.error().message}`));
    // Chromium logs a response with 401 or 404 as an error; tests send such requests on purpose.
    context.on('console', (message) => {
      if (message.type() !== 'error' || message.text().startsWith('Failed to load resource'))
        return;
      this.#troubles.push(`console: ${message.text()}`);
    });
    context.on('request', (request) => {
      const { protocol, hostname } = new URL(request.url());
      if (protocol !== 'http:' || hostname === '127.0.0.1' || hostname === 'localhost') return;
      this.#troubles.push(`foreign: ${request.url()}`);
    });
    return context.newPage();
  }

  /** Uncaught errors, violations of the page's policy and requests to other hosts since the last call. */
  troubles(): string[] {
    const troubles = this.#troubles;
    this.#troubles = [];
    return troubles;
  }

  /** Closes all pages. */
  async clear(): Promise<void> {
    await Promise.all([...this.#contexts].map((context) => context.close()));
    this.#contexts.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close();
  }
}

/** Waits until the page is at an address that matches. */
export function arrived(page: Page, address: RegExp): Promise<void> {
  // `waitForURL` rejects with ERR_ABORTED if a second click cancels the navigation of the first.
  return eventually(() => expect(page.url()).toMatch(address));
}

/** Double-clicks the button that sends a form, and waits until all requests have ended. */
export async function clickTwice(button: Locator): Promise<void> {
  const page = button.page();
  let [sent, ended] = [0, 0];
  page.on('request', (request) => {
    if (!request.isNavigationRequest()) return;
    sent += 1;
    const end = (): void => void (ended += 1);
    void request.response().then(end, end);
  });
  await button.dblclick({ noWaitAfter: true });
  await eventually(() => expect([sent > 0, ended]).toEqual([true, sent]));
}

/** Presses Tab until an element has the focus. Throws after `atMost` presses. */
export async function tabTo(page: Page, target: Locator, atMost = 60): Promise<void> {
  await target.waitFor();
  for (let presses = 0; presses < atMost; presses += 1) {
    await page.keyboard.press('Tab');
    if (await isFocused(target)) return;
  }
  throw new Error(`${atMost} presses of Tab do not lead to ${String(target)}`);
}

/** The browser of all tests of a file, until the last of them has ended. */
let shared: Promise<TestBrowser> | undefined;

/**
 * A `describe` whose tests control a real Chromium, the same one in all blocks of a file. A test fails if one of its
 * pages has an error that {@link TestBrowser.troubles} returns. If the machine has no Chromium, the tests are skipped and
 * stderr shows the title.
 */
export function describeInBrowser(
  title: string,
  tests: (browser: () => TestBrowser) => void,
): void {
  if (findChromium() === undefined) {
    // Jest prints only the number of skipped tests.
    process.stderr.write(`Skipped, because there is no Chromium: ${title}\n`);
    describe(title, () => {
      it.todo('skipped, because there is no Chromium: install one, or name it in CHROMIUM_PATH');
    });
    return;
  }
  // This hook is outside of the block, so it runs after the last block of the file. Closing a closed browser does
  // nothing.
  afterAll(async () => (await shared)?.[Symbol.asyncDispose]());
  describe(title, () => {
    let browser: TestBrowser;

    beforeAll(async () => {
      browser = await (shared ??= TestBrowser.start());
    });

    afterEach(async () => {
      await browser.clear();
      expect(browser.troubles()).toEqual([]);
    });

    tests(() => browser);
  });
}
