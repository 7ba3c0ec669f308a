import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** How a process ended. */
export interface Ending {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/**
 * A built file of the repository, such as `apps/shop/dist/main.js`, as a process of its own. It keeps its data in a
 * folder that is removed with it, unless `SHOP_DATA` names another.
 */
export class ShopProcess implements AsyncDisposable {
  readonly out: string[] = [];
  readonly err: string[] = [];
  readonly ended: Promise<Ending>;
  readonly #child: ChildProcess;
  readonly #watchers = new Set<() => void>();

  constructor(file: string, settings: Readonly<Record<string, string>>, args: string[] = []) {
    const path = fileURLToPath(new URL(`../../${file}`, import.meta.url));
    if (!existsSync(path)) throw new Error(`${file} is missing: run "npm run build" first`);
    // Nothing of the machine's own environment nor a developer's .env, or a test would pass here and fail there.
    const data = mkdtempSync(join(tmpdir(), 'shop-data-'));
    const env = { PATH: process.env['PATH'], NO_COLOR: '1', SHOP_DATA: data, ...settings };
    this.#child = spawn(process.execPath, [path, ...args], {
      env,
      cwd: tmpdir(),
      stdio: 'pipe',
    });
    for (const [stream, lines] of [
      [this.#child.stdout!, this.out],
      [this.#child.stderr!, this.err],
    ] as const) {
      createInterface(stream).on('line', (line) => {
        lines.push(line);
        for (const look of this.#watchers) look();
      });
    }
    this.ended = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => {
        rmSync(data, { recursive: true, force: true });
        resolve({ code, signal });
      });
    });
  }

  /** The first line of the output that matches, once there is one. */
  async line(pattern: RegExp): Promise<RegExpExecArray> {
    const found = new Promise<RegExpExecArray>((resolve) => {
      const look = (): void => {
        const match = this.out.map((line) => pattern.exec(line)).find(Boolean);
        if (!match) return;
        this.#watchers.delete(look);
        resolve(match);
      };
      this.#watchers.add(look);
      look();
    });
    const ended = this.ended.then(({ code }) => {
      throw new Error(`ended with ${code} before ${String(pattern)}:\n${this.err.join('\n')}`);
    });
    return Promise.race([found, ended]);
  }

  kill(signal: NodeJS.Signals): Promise<Ending> {
    this.#child.kill(signal);
    return this.ended;
  }

  /** Has it stand still, its connections open, until it may {@link proceed}. */
  stop(): void {
    this.#child.kill('SIGSTOP');
  }

  proceed(): void {
    this.#child.kill('SIGCONT');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill('SIGKILL');
  }
}
