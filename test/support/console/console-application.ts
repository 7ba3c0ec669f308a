import type { ServerResponse } from 'node:http';
import { describe } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import type { CanActivate } from '@nestjs/common';
import type { FastifyAdapter } from '@nestjs/platform-fastify';
import { OnPaymentEvent, UnrecoverableError } from 'nestjs-payments';
import type { PaymentEvent } from 'nestjs-payments';
import { BasicAuthGuard, PaymentsConsoleModule } from 'nestjs-payments-console';
import type { BasicAuthOptions, PaymentsConsoleOptions } from 'nestjs-payments-console';
import type { EnvelopeFields } from '../webhook/signed-webhook.js';
import { FakeRuntime } from '../time/fake-runtime.js';
import { webhookRequest } from '../webhook/handler-application.js';
import type { HttpResponse, Exchange } from '../http/http-exchange.js';
import { ADAPTERS, WebhookApplication } from '../webhook/webhook-application.js';
import type { Setup } from '../webhook/webhook-application.js';

/** Path of the console in the tests. */
export const PATH = '/ops/payments';

/** Accepts every request, with the name of an operator. */
export const asOperator = (username = 'ann'): CanActivate => ({
  canActivate: (context) => {
    context.switchToHttp().getRequest<{ user?: object }>().user = { username };
    return true;
  },
});

/** A handler that fails for the events that a test selects. */
@Injectable()
export class Orders {
  readonly seen: string[] = [];
  /** Ids of the events for which the handler fails, and the state of their deliveries after the failure. */
  readonly faults = new Map<string, 'dead' | 'pending'>();

  @OnPaymentEvent(['transaction.completed', 'payout.settled'], { name: 'Orders.markPaid' })
  markPaid({ id }: PaymentEvent): void {
    this.seen.push(id);
    const fault = this.faults.get(id);
    if (fault === 'dead') throw new UnrecoverableError('no such order');
    if (fault === 'pending') throw new Error('no database');
  }
}

/** A second handler of completed transactions, which never fails. */
@Injectable()
export class Receipts {
  @OnPaymentEvent('transaction.completed', { name: 'Receipts.send' })
  send(): void {}
}

export interface ConsoleSetup extends Omit<Setup, 'payments'> {
  console?: Partial<PaymentsConsoleOptions>;
  payments?: Exclude<Setup['payments'], false>;
}

/** A merchant's application with a console, on a clock that only tests advance. */
export class ConsoleApplication implements AsyncDisposable {
  private constructor(
    readonly merchant: WebhookApplication,
    readonly runtime: FakeRuntime,
  ) {}

  static async start(setup: ConsoleSetup = {}): Promise<ConsoleApplication> {
    const { console, payments, imports = [], providers = [], ...rest } = setup;
    const runtime = new FakeRuntime();
    const options = { path: PATH, guards: [asOperator()], runtime, ...console };
    const merchant = await WebhookApplication.start({
      payments: { runtime, ...payments },
      imports: [...imports, PaymentsConsoleModule.register(options)],
      providers: [Orders, ...providers],
      ...rest,
    });
    return new ConsoleApplication(merchant, runtime);
  }

  get orders(): Orders {
    return this.merchant.app.get(Orders);
  }

  get log(): string[] {
    return this.merchant.log.matching(/./);
  }

  /** Log lines about what the operator `ann` did, without the views of payloads. */
  get actions(): string[] {
    return this.log.filter((line) => line.includes('"ann": ') && !line.includes(': viewed event '));
  }

  /** A GET below the console's path. */
  get(path: string, headers: Record<string, string> = {}): Promise<HttpResponse> {
    return this.merchant.exchange(PATH + path, { method: 'GET', headers });
  }

  /** A POST as the page sends it, with the given changes. */
  post(action: string, body: unknown, changes: Exchange = {}): Promise<HttpResponse> {
    return this.merchant.exchange(`${PATH}/api/${action}`, {
      headers: ACTION,
      body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
      ...changes,
    });
  }

  /** Delivers an event. With `fault`, the handler fails, and the delivery is in this state afterwards. */
  async deliver(payload: EnvelopeFields & { id: string }, fault?: 'dead' | 'pending') {
    if (fault !== undefined) this.orders.faults.set(payload.id, fault);
    await this.merchant.send(webhookRequest(payload));
    this.orders.faults.delete(payload.id);
  }

  /** State of an event's deliveries, by handler. */
  async states(id: string, company = 'default'): Promise<Record<string, string>> {
    const query = new URLSearchParams({ company, id });
    const { body } = await this.get(`/api/event?${query}`);
    const deliveries = body['deliveries'] as { handler: string; state: string }[];
    return Object.fromEntries(deliveries.map(({ handler, state }) => [handler, state]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.merchant.app.close();
  }
}

/** The body of an action on selected events. */
export const selected = (...ids: string[]) => ({
  events: ids.map((id) => ({ company: 'default', id })),
});

/** A group of failures, as the page sends it. */
export const FAILURE_GROUP = {
  handler: 'Orders.markPaid',
  state: 'dead',
  error: 'no',
  count: 1,
  newestAt: '2026-01-01T00:00:00Z',
};

/** Headers that the page sends with an action. */
export const ACTION = { 'content-type': 'application/json', 'x-payments-console': '1' };

/** The headers of a name and a password. */
export const basic = (name: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`,
});

/** Options of a console with a password. */
export const guarded = (options: BasicAuthOptions) => ({ guards: [new BasicAuthGuard(options)] });

/** Declares the same tests for each HTTP adapter. */
export function consoleOnEachAdapter(
  promises: (start: (setup?: ConsoleSetup) => Promise<ConsoleApplication>, name: string) => void,
): void {
  describe.each(Object.keys(ADAPTERS))('on %s', (name) => {
    promises((setup) => ConsoleApplication.start({ adapter: ADAPTERS[name]!(), ...setup }), name);
  });
}

/** Sets headers before any route, as helmet does. */
export function setHeadersFirst(
  app: Parameters<NonNullable<Setup['main']>>[0],
  headers: Readonly<Record<string, string>>,
): void {
  const adapter = app.getHttpAdapter();
  if (adapter.getType() === 'fastify') {
    (adapter as unknown as FastifyAdapter)
      .getInstance()
      .addHook('onRequest', async (_request, reply) => void reply.headers(headers));
  }
  app.use((_request: unknown, response: ServerResponse, next: () => void) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    next();
  });
}

/** Addresses of the page's files and of its import map, as a browser that is at `at` resolves them. */
export function addressesOf(page: HttpResponse, at: string): string[] {
  const map = JSON.parse(importMapOf(page)) as { imports: Record<string, string> };
  const linked = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address]) => address!);
  return [...linked, ...Object.values(map.imports)].map(
    (address) => new URL(address, `http://shop.example${at}`).pathname,
  );
}

/** The text of the inline import map. */
export function importMapOf({ text }: HttpResponse): string {
  return /<script type="importmap">(.*?)<\/script>/s.exec(text)![1]!;
}
