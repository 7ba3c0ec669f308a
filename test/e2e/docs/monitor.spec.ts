import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import type { Type } from '@nestjs/common';
import { none, OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, PaymentsObserver } from 'nestjs-payments';
import { PAGE_CONTEXT } from '../../support/docs/page-context.js';
import { ReadmeProgram } from '../../support/docs/readme-program.js';
import { post } from '../../support/inbox/inbox-application.js';
import { OBSERVER_METHODS } from '../../support/telemetry/recording-observer.js';
import { eventually } from '../../support/time/waiting.js';
import { WebhookApplication } from '../../support/webhook/webhook-application.js';

@Injectable()
class Books {
  @OnPaymentEvent('*', { name: 'book' })
  book({ id }: PaymentEvent): never {
    throw new Error(`the ledger is down for ${id}`);
  }
}

type Recipe = (capture: (error: Error, hint: object) => unknown) => PaymentsObserver;

describe('docs/monitor.md, section Observers', () => {
  let program: ReadmeProgram;
  const load = async (file: string, name: string): Promise<unknown> => {
    const url = pathToFileURL(join(program.folder, file)).href;
    return ((await import(url)) as Record<string, unknown>)[name];
  };

  beforeAll(() => {
    program = new ReadmeProgram('docs/monitor.md', PAGE_CONTEXT['docs/monitor.md']);
  });
  afterAll(() => program.remove());

  it('TE-01 docs/monitor.md lists every method of an observer', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../docs/monitor.md'), 'utf8');
    const listed = [...page.matchAll(/^\| `(\w+)` +\|/gm)].map(([, name]) => name);
    expect(listed).toEqual(expect.arrayContaining([...OBSERVER_METHODS]));
  });

  it('TE-01 the recipe for Sentry in docs/monitor.md reports a dead delivery, with the stack of the handler', async () => {
    const captured: { error: Error; hint: object }[] = [];
    const recipe = (await load('sentry-observer.js', 'sentryObserver')) as Recipe;
    const observers = [recipe((error, hint) => captured.push({ error, hint }))];
    const payments = { observers, worker: { retry: none } };
    await using app = await WebhookApplication.start({ providers: [Books], payments });
    await post(app, 'e-1');
    expect(captured).toHaveLength(1);
    const { error, hint } = captured[0]!;
    expect(error.message).toBe('Error: the ledger is down for e-1');
    expect(error.stack).toMatch(
      /^HandlerFailed: Error: the ledger is down for e-1\n {4}at .*Books\.book/,
    );
    expect(hint).toMatchObject({
      tags: { company: 'default', handler: 'book' },
      extra: { eventId: 'e-1', attempt: 1 },
      fingerprint: ['payments', 'book', 'HandlerFailed'],
    });
  });

  it('TE-01 the recipe for Slack in docs/monitor.md posts one message per minute about a handler', async () => {
    const posts: unknown[] = [];
    const slack = createServer((request, response) => {
      void text(request).then((body) => {
        posts.push(JSON.parse(body));
        response.end('ok');
      });
    }).listen(0, '127.0.0.1');
    await once(slack, 'listening');
    process.env['SLACK_WEBHOOK_URL'] = `http://127.0.0.1:${(slack.address() as AddressInfo).port}`;
    try {
      const SlackAlerts = (await load('slack-alerts.js', 'SlackAlerts')) as Type<PaymentsObserver>;
      const payments = { observers: [SlackAlerts], worker: { retry: none } };
      const providers = [Books, SlackAlerts];
      await using app = await WebhookApplication.start({ providers, payments });
      await post(app, 'e-1');
      await post(app, 'e-2');
      const message = { text: 'Event e-1 is dead for book: Error: the ledger is down for e-1' };
      await eventually(() => expect(posts).toEqual([message]));
    } finally {
      delete process.env['SLACK_WEBHOOK_URL'];
      slack.close();
      slack.closeAllConnections();
    }
  });
});
