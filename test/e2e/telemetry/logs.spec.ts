import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, it } from '@jest/globals';
import { ConsoleLogger, Injectable, Logger } from '@nestjs/common';
import type { INestApplication, LoggerService } from '@nestjs/common';
import { Logger as PinoLogger, LoggerModule } from 'nestjs-pino';
import { fixed, OnPaymentEvent, PaymentInbox } from 'nestjs-payments';
import { WrittenLog } from '../../support/log/written-log.js';
import { eventually } from '../../support/time/waiting.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';
import { WebhookApplication } from '../../support/webhook/webhook-application.js';
import type { Setup } from '../../support/webhook/webhook-application.js';

/** The fields of a line, as each JSON logger prints them. */
type Line = Record<string, unknown>;

/** Fields that nestjs-pino adds to each line, or to lines that are logged within a request. */
const OF_PINO = new Set(['level', 'time', 'pid', 'hostname', 'context', 'req']);

const PHONE = '+254700000001';
const BOOK = { company: 'default', eventId: 'e-1', handler: 'book' };
const FAILED = 'Delivery of event e-1 (company default) to book failed';
const RETRY =
  `${FAILED} (attempt 1 of 2); next attempt in 1 ms. ` +
  'Error: the ledger is down (cause: Error: HTTP 503)';

@Injectable()
class Books {
  @OnPaymentEvent('transaction.completed', { name: 'book', retry: fixed([1]) })
  book(): never {
    throw new Error('the ledger is down', { cause: new Error('HTTP 503') });
  }
}

/** Logs lines with the fields of a handler, a delivery, an event and a company, and lines without fields. */
async function run(setup: Setup): Promise<void> {
  await using app = await WebhookApplication.start({ providers: [Books], ...setup });
  const data = { transactionId: 't-1', phoneNumber: PHONE };
  await app.send(webhookRequest({ id: 'e-1', data }));
  await app.send(webhookRequest({ id: 'e-2', eventType: 'transaction.unknown', data }));
  const forged = webhookRequest({ id: 'e-3', data });
  await app.send(forged, {
    path: '/webhooks/payments/default',
    headers: { 'X-Webhook-Signature': `sha512=${'0'.repeat(128)}` },
  });
  const inbox = app.app.get(PaymentInbox);
  await eventually(async () => expect((await inbox.get('e-1'))?.deliveries[0]?.state).toBe('dead'));
}

function expectFields(lines: readonly { sentence: string; fields: Line }[]): void {
  const about = (start: string) => {
    const found = lines.find(({ sentence }) => sentence.startsWith(start));
    return { sentence: found?.sentence, fields: found?.fields };
  };
  expect(about(`${FAILED} (attempt 1 of 2)`).fields).toEqual(BOOK);
  expect(about(`${FAILED} (attempt 1 of 2)`).sentence).toContain(RETRY);
  expect(about(`${FAILED} (attempt 2 of 2) and is dead`).fields).toEqual(BOOK);
  const event = { company: 'default', eventId: 'e-2' };
  expect(about('No handler takes the event type "transaction.unknown"').fields).toEqual(event);
  expect(about('A webhook request').fields).toEqual({ company: 'default' });
  expect(about('Payment handler book: transaction.completed').fields).toEqual({ handler: 'book' });
  expect(about('Webhook route: POST').fields).toEqual({});
  expect(JSON.stringify(lines)).not.toContain(PHONE);
}

afterEach(() => Logger.overrideLogger(false));

describe('log lines', () => {
  it('TE-08 with Nest’s ConsoleLogger and json, log lines have company, event id and handler as fields', async () => {
    using written = new WrittenLog();
    await run({ main: (app) => app.useLogger(new ConsoleLogger({ json: true })) });
    const lines = written.lines.map((line) => JSON.parse(line) as Line);
    expect(lines.map(({ context }) => context)).toContain('PaymentInbox');
    expectFields(
      lines.map(({ message }) => {
        if (typeof message === 'string') return { sentence: message, fields: {} };
        const { message: sentence, ...fields } = message as Line;
        return { sentence: String(sentence), fields };
      }),
    );
  });

  it('TE-08 with ConsoleLogger { json: true, compact: false }, log lines have company, event id and handler as fields', async () => {
    using written = new WrittenLog();
    const options = { json: true, compact: false };
    await run({ main: (app) => app.useLogger(new ConsoleLogger(options)) });
    expect(written.lines.join('\n')).toMatch(
      /Delivery of event e-1[^]*company: 'default',\s+eventId: 'e-1',\s+handler: 'book'/,
    );
  });

  it('TE-08 with nestjs-pino, log lines have company, event id and handler as fields', async () => {
    const stream = new PassThrough();
    await run({
      imports: [LoggerModule.forRoot({ pinoHttp: [{ autoLogging: false }, stream] })],
      main: (app: INestApplication) => app.useLogger(app.get(PinoLogger)),
    });
    const lines = String(stream.read()).trim().split('\n');
    const parsed = lines.map((line) => JSON.parse(line) as Line);
    expect(parsed.map(({ context }) => context)).toContain('PaymentInbox');
    expectFields(
      parsed.map(({ msg, ...others }) => ({
        sentence: String(msg),
        fields: Object.fromEntries(Object.entries(others).filter(([name]) => !OF_PINO.has(name))),
      })),
    );
  });

  it('TE-08 a log line in text format contains only its message, and no fields', async () => {
    using written = new WrittenLog();
    await run({ main: (app) => app.useLogger(new ConsoleLogger({ colors: false })) });
    const text = written.lines.join('\n');
    expect(text).toMatch(
      / WARN \[PaymentInbox\] Delivery of event e-1 \(company default\) to book failed/,
    );
    expect(text).toContain(`${RETRY}\n    at Books.book`);
    expect(text).toContain('LOG [PaymentHandlers] Payment handler book: transaction.completed\n');
    expect(text).not.toMatch(/eventId|LogLine|\[object|Object\(/);
  });

  it('TE-08 a logger of the application that expects a string gets an object that works like a string', async () => {
    const lines: string[] = [];
    const shout = (message: string) =>
      void lines.push(`${message.replace('Delivery', 'DELIVERY')} ${message.length} ` + message);
    const log: LoggerService = { log: shout, warn: shout, error: shout };
    await run({ main: (app) => app.useLogger(log) });
    const dead = lines.find((line) => line.includes('(attempt 2 of 2) and is dead'));
    const [first, second] = dead!.split(/ \d+ (?=Delivery)/);
    expect(first).toMatch(/^DELIVERY of event e-1/);
    expect(second).toBe(first!.replace('DELIVERY', 'Delivery'));
  });
});
