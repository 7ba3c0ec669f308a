import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { eventually } from '../support/time/waiting.js';
import { delivery } from '../support/webhook/handler-application.js';
import { ADAPTERS, SECRET } from '../support/webhook/webhook-application.js';

const SCRIPT = fileURLToPath(
  new URL('../support/processes/unhandled-rejections.mjs', import.meta.url),
);

// Processes take a while to start where others start too.
jest.setTimeout(30_000);

/** Processes that have not ended. A test that runs out of time disposes of nothing. */
const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
});

/** A merchant's process under test. */
class Merchant implements AsyncDisposable {
  output = '';
  urls: string[] = [];
  readonly exit: Promise<number | null>;

  private constructor(private readonly child: ChildProcess) {
    running.add(child);
    this.exit = once(child, 'close').then(([code]) => {
      running.delete(child);
      return code as number | null;
    });
    child.stdout!.on('data', (text) => (this.output += String(text)));
    child.stderr!.on('data', (text) => (this.output += String(text)));
  }

  static async start(adapter: string, apps = 1, ...execArgv: string[]): Promise<Merchant> {
    const merchant = new Merchant(
      fork(SCRIPT, [adapter, String(apps), SECRET], { silent: true, execArgv }),
    );
    const [ready] = (await once(merchant.child, 'message')) as [string];
    merchant.urls = ready.split(' ').slice(1);
    return merchant;
  }

  async receive(url = this.urls[0]!): Promise<number> {
    const { path, headers, body } = delivery();
    return (await fetch(url + path, { method: 'POST', headers, body })).status;
  }

  /** Gives a command, and resolves when it was obeyed and its turn of the event loop is over. */
  async obey(command: string): Promise<void> {
    const did = once(this.child, 'message');
    this.child.send(command);
    await did;
  }

  /** Gives a command the process does not survive. */
  async dieOf(command: string): Promise<number | null> {
    this.child.send(command);
    return this.exit;
  }

  count(text: string): number {
    return this.output.split(text).length - 1;
  }

  /** Resolves once it has written a text so often: what it writes comes another way than what it was told to do. */
  wrote(text: string, times = 1): Promise<void> {
    return eventually(() => expect(this.count(text)).toBe(times));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode === null) this.child.kill('SIGKILL');
    await this.exit;
  }
}

describe.each(Object.keys(ADAPTERS))('on %s', (adapter) => {
  it('WH-24 logs a promise that a handler did not await and that rejects after it returned, and the process goes on', async () => {
    await using merchant = await Merchant.start(adapter, 2);
    expect(await merchant.receive()).toBe(200);
    await merchant.obey('release');
    // Another turn, and the process is still there to take it and another delivery.
    await merchant.obey('ping');
    expect(await merchant.receive()).toBe(200);
    expect(await merchant.receive(merchant.urls[1])).toBe(200);
    await merchant.obey('ping');
    await merchant.obey('close');
    await merchant.wrote('did not await a promise, which rejected that failed: Error: left behind', 3);
    expect(merchant.output).toMatch(/Handler \*#handle \(company default\) left a promise/);
    await eventually(() => expect(merchant.output.match(/at failLater/g)).toHaveLength(3));
  });

  it('WH-24 an unrelated rejection ends the process as by default, also if two applications run', async () => {
    await using two = await Merchant.start(adapter, 2);
    expect(await two.dieOf('unrelated')).toBe(1);
    expect(two.count('Error: of somebody else')).toBe(1);
    expect(two.output).toContain('Node.js v');
    expect(two.output).not.toContain('left a promise');
    await using merchant = await Merchant.start(adapter);
    expect(await merchant.dieOf('unrelated text')).toBe(1);
    expect(merchant.output).toContain('ERR_UNHANDLED_REJECTION');
  });

  it("WH-24 leaves unrelated rejections to the application's own listener, and the process goes on", async () => {
    await using merchant = await Merchant.start(adapter);
    await merchant.obey('listen');
    await merchant.obey('unrelated');
    await merchant.obey('ping');
    await merchant.wrote('listener saw of somebody else');
    expect(await merchant.receive()).toBe(200);
    await merchant.obey('release');
    await merchant.obey('ping');
    await merchant.wrote('did not await a promise, which rejected');
  });

  it('WH-24 no longer listens once the application has closed', async () => {
    await using merchant = await Merchant.start(adapter);
    expect(await merchant.receive()).toBe(200);
    await merchant.obey('close');
    expect(await merchant.dieOf('release')).toBe(1);
    expect(merchant.output).not.toContain('did not await a promise, which rejected');
  });
});

describe('unhandled rejections with --unhandled-rejections', () => {
  const adapter = 'express';

  it('WH-24 treats an unrelated rejection as --unhandled-rejections says, and keeps listening', async () => {
    await using merchant = await Merchant.start(adapter, 2, '--unhandled-rejections=warn');
    await merchant.obey('unrelated');
    await merchant.obey('unrelated');
    await merchant.wrote('UnhandledPromiseRejectionWarning: Error: of somebody else', 2);
    expect(await merchant.receive()).toBe(200);
    await merchant.obey('release');
    await merchant.obey('ping');
    await merchant.wrote('did not await a promise, which rejected');
  });

  it('WH-24 prints a warning and sets the exit code with warn-with-error-code', async () => {
    await using merchant = await Merchant.start(
      adapter,
      2,
      '--unhandled-rejections',
      'warn-with-error-code',
    );
    await merchant.obey('unrelated');
    await merchant.obey('ping');
    await merchant.wrote('UnhandledPromiseRejectionWarning: Error: of somebody else');
    // It keeps listening.
    expect(await merchant.receive()).toBe(200);
    await merchant.obey('release');
    await merchant.obey('ping');
    await merchant.wrote('did not await a promise, which rejected');
    expect(await merchant.dieOf('leave')).toBe(1);
  });
});
