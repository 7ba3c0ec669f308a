import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from '@jest/globals';
import { eventually } from '../../support/time/waiting.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';
import { ADAPTERS, SECRET } from '../../support/webhook/webhook-application.js';

const SCRIPT = fileURLToPath(
  new URL('../../support/processes/unhandled-rejections.mjs', import.meta.url),
);

/** Processes that have not exited. A test that times out does not dispose of its processes, so afterEach kills them. */
const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
});

/** A process with one or more merchant applications. */
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

  async receive(url = this.urls[0]!, request = webhookRequest()): Promise<number> {
    const { path, headers, body } = request;
    return (await fetch(url + path, { method: 'POST', headers, body })).status;
  }

  /** Sends a command. Resolves when the process has executed it and its turn of the event loop is over. */
  async execute(command: string): Promise<void> {
    const executed = once(this.child, 'message');
    this.child.send(command);
    const exited = this.exit.then((code) => {
      throw new Error(`the process has exited with ${code}: ${this.output}`);
    });
    await Promise.race([executed, exited]);
  }

  /** Sends a command that ends the process. Resolves with the exit code. */
  async exitAfter(command: string): Promise<number | null> {
    this.child.send(command);
    return this.exit;
  }

  count(text: string): number {
    return this.output.split(text).length - 1;
  }

  /** Resolves when the output contains the text `times` times. Output may arrive after the response to a command. */
  wrote(text: string, times = 1): Promise<void> {
    return eventually(() => expect(this.count(text)).toBe(times));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode === null) this.child.kill('SIGKILL');
    await this.exit;
  }
}

describe.each(Object.keys(ADAPTERS))('on %s', (adapter) => {
  it('WH-24 the application logs the rejection of a promise that a handler did not await, and the process continues', async () => {
    await using merchant = await Merchant.start(adapter, 2);
    expect(await merchant.receive()).toBe(200);
    await merchant.execute('release');
    // The process still executes commands and handles events after the rejection.
    await merchant.execute('ping');
    expect(await merchant.receive()).toBe(200);
    expect(await merchant.receive(merchant.urls[1])).toBe(200);
    await merchant.execute('ping');
    await merchant.execute('close');
    await merchant.wrote('did not await a promise, which rejected: Error: left behind', 3);
    expect(merchant.output).toMatch(
      /Handler \*#handle \(company default\) did not await a promise/,
    );
    await eventually(() => expect(merchant.output.match(/at failLater/g)).toHaveLength(3));
  });

  it('WH-24 the application lets an unrelated rejection end the process, with one and with two applications', async () => {
    await using two = await Merchant.start(adapter, 2);
    expect(await two.exitAfter('unrelated')).toBe(1);
    expect(two.count('Error: unrelated error')).toBe(1);
    expect(two.output).toContain('Node.js v');
    expect(two.output).not.toContain('did not await a promise');
    await using merchant = await Merchant.start(adapter);
    expect(await merchant.exitAfter('unrelated text')).toBe(1);
    expect(merchant.output).toContain('ERR_UNHANDLED_REJECTION');
  });

  it('TE-01 the application logs the rejection of a promise that an observer did not return, and the process continues', async () => {
    await using merchant = await Merchant.start(adapter);
    const event = webhookRequest();
    for (let copies = 0; copies < 3; copies += 1) {
      expect(await merchant.receive(merchant.urls[0], event)).toBe(200);
    }
    await merchant.execute('release');
    await merchant.execute('ping');
    expect(await merchant.receive()).toBe(200);
    // The handler ran once, and the observer twice. Its errors are logged once per minute.
    await merchant.wrote('did not await a promise, which rejected: Error: left behind', 2);
    await merchant.wrote(
      'An observer failed in eventDuplicate(). Nothing else is affected. Error:',
    );
  });

  it("WH-24 the application leaves unrelated rejections to the application's own listener, and the process continues", async () => {
    await using merchant = await Merchant.start(adapter);
    await merchant.execute('listen');
    await merchant.execute('unrelated');
    await merchant.execute('ping');
    await merchant.wrote('listener saw unrelated error');
    expect(await merchant.receive()).toBe(200);
    await merchant.execute('release');
    await merchant.execute('ping');
    await merchant.wrote('did not await a promise, which rejected');
  });

  it('WH-24 the application does not catch rejections after it has closed', async () => {
    await using merchant = await Merchant.start(adapter);
    expect(await merchant.receive()).toBe(200);
    await merchant.execute('close');
    expect(await merchant.exitAfter('release')).toBe(1);
    expect(merchant.output).not.toContain('did not await a promise, which rejected');
  });
});

describe('with the flag --unhandled-rejections', () => {
  const adapter = 'express';

  it('WH-24 the application lets Node print a warning for an unrelated rejection with --unhandled-rejections=warn', async () => {
    await using merchant = await Merchant.start(adapter, 2, '--unhandled-rejections=warn');
    await merchant.execute('unrelated');
    await merchant.execute('unrelated');
    await merchant.wrote('UnhandledPromiseRejectionWarning: Error: unrelated error', 2);
    expect(await merchant.receive()).toBe(200);
    await merchant.execute('release');
    await merchant.execute('ping');
    await merchant.wrote('did not await a promise, which rejected');
  });

  it('WH-24 the application lets Node set the exit code with --unhandled-rejections=warn-with-error-code', async () => {
    await using merchant = await Merchant.start(
      adapter,
      2,
      '--unhandled-rejections',
      'warn-with-error-code',
    );
    await merchant.execute('unrelated');
    await merchant.execute('ping');
    await merchant.wrote('UnhandledPromiseRejectionWarning: Error: unrelated error');
    // The module still catches the rejections of its handlers.
    expect(await merchant.receive()).toBe(200);
    await merchant.execute('release');
    await merchant.execute('ping');
    await merchant.wrote('did not await a promise, which rejected');
    expect(await merchant.exitAfter('leave')).toBe(1);
  });
});
