import { existsSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { chromium } from 'playwright-core';
import type { Browser, Page } from 'playwright-core';

const CHROMIUM_PATHS = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

const WIDTHS = { desktop: 1280, phone: 390 };
const HEIGHT = 780;
/** Maximum size of a screenshot of the documentation. */
const MAX_BYTES = 250_000;

/** The browser settings for a screenshot. */
export interface View {
  /** `desktop` is 1280 pixels wide, `phone` 390. */
  readonly device: keyof typeof WIDTHS;
  readonly scheme: 'light' | 'dark';
  /** Height in pixels. Default 780. */
  readonly height?: number;
  /** User name and password for the console. */
  readonly operator?: { readonly username: string; readonly password: string };
}

/** Takes screenshots in Chromium, in a fixed time zone and language. */
export class ScreenshotBrowser implements AsyncDisposable {
  private constructor(
    private readonly browser: Browser,
    private readonly folder: string,
    private readonly print: (line: string) => void,
  ) {}

  /** Starts Chromium. @throws Error if Chromium is not found at `CHROMIUM_PATH` or in the usual places. */
  static async open(folder: string, print: (line: string) => void): Promise<ScreenshotBrowser> {
    const configured = process.env['CHROMIUM_PATH'];
    const executablePath = configured
      ? configured
      : CHROMIUM_PATHS.find((file) => existsSync(file));
    if (executablePath === undefined) {
      throw new Error('Chromium was not found: install it, or set CHROMIUM_PATH to its file');
    }
    await mkdir(folder, { recursive: true });
    const args = ['--no-sandbox', '--disable-gpu', '--disable-background-networking'];
    return new ScreenshotBrowser(await chromium.launch({ executablePath, args }), folder, print);
  }

  /** Opens an address, calls `prepare` with the page, and saves a screenshot as `NAME.png`. */
  async capture(
    name: string,
    url: string,
    view: View,
    prepare: (page: Page) => unknown,
  ): Promise<void> {
    const context = await this.browser.newContext({
      viewport: { width: WIDTHS[view.device], height: view.height ?? HEIGHT },
      colorScheme: view.scheme,
      reducedMotion: 'reduce',
      timezoneId: 'UTC',
      locale: 'en-GB',
      ...(view.operator && { httpCredentials: view.operator }),
    });
    try {
      const page = await context.newPage();
      await page.goto(url);
      await prepare(page);
      const file = path.join(this.folder, `${name}.png`);
      await page.screenshot({ path: file, animations: 'disabled', caret: 'hide' });
      const { size } = await stat(file);
      this.print(`${file}  ${Math.round(size / 1000)} kB`);
      if (size > MAX_BYTES) throw new Error(`${file} is larger than ${MAX_BYTES / 1000} kB`);
    } finally {
      await context.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.browser.close();
  }
}
