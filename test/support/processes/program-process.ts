import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** How a process ended. */
export interface Ending {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/**
 * A built program of the repository, such as `apps/shop/dist/main.js`, in a process of its own. The folder for its data
 * is removed when it ends, unless `SHOP_DATA` sets another folder.
 */
export class ProgramProcess implements AsyncDisposable {
  readonly out: string[] = [];
  readonly err: string[] = [];
  readonly ended: Promise<Ending>;
  readonly #child: ChildProcess;
  readonly #watchers = new Set<() => void>();

  constructor(
    file: string,
    settings: Readonly<Record<string, string>>,
    args: string[] = [],
    cwd = tmpdir(),
  ) {
    const path = fileURLToPath(new URL(`../../../${file}`, import.meta.url));
    if (!existsSync(path)) throw new Error(`${file} is missing: run "npm run build" first`);
    // Without the environment and the .env of the developer, so that the test behaves the same on all machines.
    const data = mkdtempSync(join(tmpdir(), 'shop-data-'));
    const env = { PATH: process.env['PATH'], NO_COLOR: '1', SHOP_DATA: data, ...settings };
    this.#child = spawn(process.execPath, [path, ...args], {
      env,
      cwd,
      stdio: 'pipe',
    });
    for (const [stream, lines] of [
      [this.#child.stdout!, this.out],
      [this.#child.stderr!, this.err],
    ] as const) {
      createInterface(stream).on('line', (line) => {
        lines.push(line);
        for (const check of this.#watchers) check();
      });
    }
    this.ended = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => {
        rmSync(data, { recursive: true, force: true });
        resolve({ code, signal });
      });
    });
  }

  /** Resolves with the first line of the output that matches. Rejects if the process ends first. */
  async line(pattern: RegExp): Promise<RegExpExecArray> {
    const found = new Promise<RegExpExecArray>((resolve) => {
      const check = (): void => {
        const match = this.out.map((line) => pattern.exec(line)).find(Boolean);
        if (!match) return;
        this.#watchers.delete(check);
        resolve(match);
      };
      this.#watchers.add(check);
      check();
    });
    const ended = this.ended.then(({ code }) => {
      throw new Error(`ended with ${code} before ${String(pattern)}:\n${this.err.join('\n')}`);
    });
    return Promise.race([found, ended]);
  }

  /** Sends a signal. Resolves when the process has ended. */
  kill(signal: NodeJS.Signals): Promise<Ending> {
    this.#child.kill(signal);
    return this.ended;
  }

  /** Pauses the process until {@link resume}. Its connections stay open. */
  pause(): void {
    this.#child.kill('SIGSTOP');
  }

  resume(): void {
    this.#child.kill('SIGCONT');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill('SIGKILL');
  }
}

/** What a script prints in a process of its own, which imports the package as an application does. */
export async function printedBy(script: string): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '--eval', script],
    { cwd: import.meta.dirname },
  );
  return stdout.trim();
}
