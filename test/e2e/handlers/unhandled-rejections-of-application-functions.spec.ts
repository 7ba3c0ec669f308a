import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { run } from '../../support/processes/run-command.js';
import { durablePostgres } from '../../support/inbox/durable-inboxes.js';

const SCRIPT = fileURLToPath(
  new URL('../../support/processes/rejecting-functions.mjs', import.meta.url),
);

const ofOption = (name: string): string =>
  `The option "${name}" did not await a promise, which rejected: Error: left behind by ${name}.`;
const ofHandler = (name: string): string =>
  `Handler book (company default) did not await a promise, which rejected: Error: left behind by ${name}.`;
const ofObserver = (method: string): string =>
  `An observer failed in ${method}(). Nothing else is affected. Error: left behind by observer ${method}`;

/**
 * The functions of the application that the module calls. Each leaves a rejected promise behind, and the value is the
 * log line about this promise.
 */
const LINES: Readonly<Record<string, string>> = {
  'a handler': ofHandler('a handler'),
  '@Transform': ofHandler('@Transform'),
  'context.commit': ofHandler('context.commit'),
  summary: ofOption('summary'),
  'webhook.before': ofOption('webhook.before'),
  'companies.find': ofOption('companies.find'),
  'bodyCodec.encode': ofOption('bodyCodec.encode'),
  'bodyCodec.decode': ofOption('bodyCodec.decode'),
  'reconcile.interpret': ofOption('reconcile.interpret'),
  'reconcile.find': ofOption('reconcile.find'),
  'runtime.now': ofOption('runtime.now'),
  'runtime.monotonic': ofOption('runtime.monotonic'),
  'runtime.random': ofOption('runtime.random'),
  'runtime.schedule': ofOption('runtime.schedule'),
  logger: 'PaymentsWarning: The logger of the application failed',
  'observer eventReceived': ofObserver('eventReceived'),
  'observer attemptStarted': ofObserver('attemptStarted'),
  'observer attemptEnded': ofObserver('attemptEnded'),
  'observer tokenFetched': ofObserver('tokenFetched'),
  'observer apiCallEnded': ofObserver('apiCallEnded'),
  'observer pollEnded': ofObserver('pollEnded'),
  'observer expectationFulfilled': ofObserver('expectationFulfilled'),
  // The lines about the other functions of an instrumentation are suppressed for a minute after the first line.
  attach: 'An observer failed in attach(). Nothing else is affected. Error: left behind by attach',
  detach: 'about "attach"',
  startSpan: 'An observer failed in startSpan(). Nothing else is affected.',
  'span.run': 'about "startSpan"',
  'span.traceparent': 'about "startSpan"',
  'span.end': 'about "startSpan"',
};

describe('on postgres', () => {
  const durable = durablePostgres();

  it('TE-01 WH-24 if a function of the application, of any kind, did not await a rejected promise, the rejection is logged and the process continues', async () => {
    const { kind, where, schema } = (await durable.data()).child;
    const { code, output } = await run(process.execPath, [SCRIPT, kind, where, schema], {
      cwd: process.cwd(),
      timeoutMs: 45_000,
    });
    expect({ code, output }).toMatchObject({ code: 0 });
    expect(output).toContain('3 events are done');
    const called = /^called: (.*)$/m.exec(output)![1]!.split(', ');
    expect(Object.keys(LINES).filter((name) => !called.includes(name))).toEqual([]);
    expect(Object.values(LINES).filter((line) => !output.includes(line))).toEqual([]);
    expect(output).toContain(ofHandler('runTransaction'));
  });
});
