import { existsSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { chromium } from 'playwright-core';
import type { Browser, Page } from 'playwright-core';

const PLACES = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

const WIDTHS = { desktop: 1120, phone: 390 };
const HEIGHT = 780;
const MAX_BYTES = 200_000;

/** Who looks, and on what. */
export interface Look {
  /** `desktop` is 1120 pixels wide, `phone` 390. */
  readonly on: 'desktop' | 'phone';
  readonly scheme: 'light' | 'dark';
  /** Pixels. Default 780. */
  readonly height?: number;
  /** The operator, where the page asks for one. */
  readonly operator?: { readonly username: string; readonly password: string };
}

/** Photographs pages: the same for everybody, whatever time zone and language the machine has. */
export class Camera implements AsyncDisposable {
  private constructor(
    private readonly browser: Browser,
    private readonly folder: string,
    private readonly print: (line: string) => void,
  ) {}

  /** @throws Error where there is no Chromium, or `CHROMIUM_PATH` names none. */
  static async open(folder: string, print: (line: string) => void): Promise<Camera> {
    const named = process.env['CHROMIUM_PATH'];
    const executablePath = named ? named : PLACES.find((place) => existsSync(place));
    if (executablePath === undefined) {
      throw new Error('there is no Chromium: install one, or name it in CHROMIUM_PATH');
    }
    await mkdir(folder, { recursive: true });
    const args = ['--no-sandbox', '--disable-gpu', '--disable-background-networking'];
    return new Camera(await chromium.launch({ executablePath, args }), folder, print);
  }

  /** Opens an address, has `act` bring the page to where it is to be seen, and takes `NAME.png` of it. */
  async take(name: string, url: string, look: Look, act: (page: Page) => unknown): Promise<void> {
    const context = await this.browser.newContext({
      viewport: { width: WIDTHS[look.on], height: look.height ?? HEIGHT },
      colorScheme: look.scheme,
      reducedMotion: 'reduce',
      timezoneId: 'UTC',
      locale: 'en-GB',
      ...(look.operator && { httpCredentials: look.operator }),
    });
    try {
      const page = await context.newPage();
      await page.goto(url);
      await act(page);
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
