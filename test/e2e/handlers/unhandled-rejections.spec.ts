import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from '@jest/globals';
import { RunningProcess } from '../../support/processes/running-process.ts';
import { eventually } from '../../support/time/waiting.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';
import { SECRET } from '../../support/webhook/webhook-application.js';

const SCRIPT = fileURLToPath(
  new URL('../../support/processes/unhandled-rejections.mjs', import.meta.url),
);

const running: RunningProcess[] = [];
afterEach(() => Promise.all(running.splice(0).map((merchant) => merchant.kill())));

/** A process with one or more merchant applications. */
class Merchant extends RunningProcess {
  static async start(apps = 1, ...execArgv: string[]): Promise<Merchant> {
    const args = [...execArgv, SCRIPT, String(apps), SECRET];
    const merchant = new Merchant(process.execPath, args, { input: true });
    running.push(merchant);
    await merchant.prints(/^ready /);
    return merchant;
  }

  get urls(): string[] {
    return this.out
      .find((line) => line.startsWith('ready '))!
      .split(' ')
      .slice(1);
  }

  async receive(url = this.urls[0]!, request = webhookRequest()): Promise<number> {
    const { path, headers, body } = request;
    return (await fetch(url + path, { method: 'POST', headers, body })).status;
  }

  /** Sends a command. Resolves when the process has executed it and its turn of the event loop is over. */
  async execute(command: string): Promise<void> {
    const executed = () => this.out.filter((line) => line.startsWith('executed ')).length;
    const before = executed();
    this.write(`${command}\n`);
    await this.until(() => executed() > before);
  }

  /** Sends a command that ends the process. Resolves with the exit code. */
  async exitAfter(command: string): Promise<number | null> {
    this.write(`${command}\n`);
    return (await this.ended).code;
  }

  count(text: string): number {
    return this.output.split(text).length - 1;
  }

  /** Resolves when the output contains the text `times` times. Output may arrive after the response to a command. */
  wrote(text: string, times = 1): Promise<void> {
    return eventually(() => expect(this.count(text)).toBe(times));
  }
}

it('WH-24 the application logs the rejection of a promise that a handler did not await, and the process continues', async () => {
  const merchant = await Merchant.start(2);
  expect(await merchant.receive()).toBe(200);
  await merchant.execute('release');
  // The process still executes commands and handles events after the rejection.
  await merchant.execute('ping');
  expect(await merchant.receive()).toBe(200);
  expect(await merchant.receive(merchant.urls[1])).toBe(200);
  await merchant.execute('ping');
  await merchant.execute('close');
  await merchant.wrote('did not await a promise, which rejected: Error: left behind', 3);
  expect(merchant.output).toMatch(/Handler \*#handle \(company default\) did not await a promise/);
  await eventually(() => expect(merchant.output.match(/at failLater/g)).toHaveLength(3));
});

it('WH-24 an unhandled rejection that no handler or observer caused ends the process, with one and with two applications', async () => {
  const two = await Merchant.start(2);
  expect(await two.exitAfter('unrelated')).toBe(1);
  expect(two.count('Error: unrelated error')).toBe(1);
  expect(two.output).toContain('Node.js v');
  expect(two.output).not.toContain('did not await a promise');
  const merchant = await Merchant.start();
  expect(await merchant.exitAfter('unrelated text')).toBe(1);
  expect(merchant.output).toContain('ERR_UNHANDLED_REJECTION');
});

it("WH-24 the application leaves unrelated rejections to the application's own listener, and the process continues", async () => {
  const merchant = await Merchant.start();
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
  const merchant = await Merchant.start();
  expect(await merchant.receive()).toBe(200);
  await merchant.execute('close');
  expect(await merchant.exitAfter('release')).toBe(1);
  expect(merchant.output).not.toContain('did not await a promise, which rejected');
});

describe('with the flag --unhandled-rejections', () => {
  it('WH-24 the application lets Node print a warning for an unrelated rejection with --unhandled-rejections=warn', async () => {
    const merchant = await Merchant.start(2, '--unhandled-rejections=warn');
    await merchant.execute('unrelated');
    await merchant.execute('unrelated');
    await merchant.wrote('UnhandledPromiseRejectionWarning: Error: unrelated error', 2);
    expect(await merchant.receive()).toBe(200);
    await merchant.execute('release');
    await merchant.execute('ping');
    await merchant.wrote('did not await a promise, which rejected');
  });

  it('WH-24 the application lets Node set the exit code with --unhandled-rejections=warn-with-error-code', async () => {
    const merchant = await Merchant.start(2, '--unhandled-rejections', 'warn-with-error-code');
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
