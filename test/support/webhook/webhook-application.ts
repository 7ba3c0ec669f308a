import type { Server } from 'node:http';
import { Injectable, Logger, Module } from '@nestjs/common';
import type { INestApplication, ModuleMetadata, NestApplicationOptions } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { OnPaymentEvent, PaymentsModule } from 'nestjs-payments';
import type {
  Company,
  PaymentEvent,
  PaymentEventContext,
  PaymentsModuleExtras,
  PaymentsModuleOptions,
} from 'nestjs-payments';
import type { SignedWebhook } from './signed-webhook.js';
import { CapturedLog } from '../log/captured-log.js';
import { exchange } from '../http/http-exchange.js';
import type { HttpResponse, Exchange } from '../http/http-exchange.js';

export const SECRET = 'whsec_R8s0xkq2vT5uY7wZ';

/** The options of one company. No service listens at `baseUrl`. */
export const OPTIONS = {
  baseUrl: 'http://127.0.0.1:9',
  clientId: 'client',
  clientSecret: 'secret',
  webhookSecret: SECRET,
} satisfies PaymentsModuleOptions;

export const ADAPTERS: Readonly<Record<string, () => AbstractHttpAdapter>> = {
  express: () => new ExpressAdapter(),
  fastify: () => new FastifyAdapter(),
};

/** A company with credentials of its own. */
export function company(id: string, webhookSecret: string | readonly string[]): Company {
  return { id, clientId: `client-${id}`, clientSecret: `secret-${id}`, webhookSecret };
}

export const BODY_OPTIONS: Readonly<Record<string, NestApplicationOptions>> = {
  'no option': {},
  'rawBody: true': { rawBody: true },
  'bodyParser: false': { bodyParser: false },
};

/** Every adapter with every body option. Tests of promises about the body run on each of them. */
export const ADAPTER_OPTIONS = Object.keys(ADAPTERS).flatMap((adapter) =>
  Object.keys(BODY_OPTIONS).map((option) => ({ adapter, option })),
);

export interface Setup extends ModuleMetadata {
  adapter?: AbstractHttpAdapter;
  /** Differences from {@link OPTIONS}; `false` leaves the module out. */
  payments?: (Partial<PaymentsModuleOptions> & PaymentsModuleExtras) | false;
  nest?: NestApplicationOptions;
  /** Called between create and listen, as `main.ts` would do. */
  main?: (app: INestApplication) => void | Promise<void>;
}

function complete(payments: Exclude<Setup['payments'], false> = {}): PaymentsModuleOptions {
  const { baseUrl } = OPTIONS;
  return payments.companies ? { baseUrl, ...payments } : { ...OPTIONS, ...payments };
}

/** A merchant's handler, which records its calls. */
@Injectable()
export class Orders {
  readonly seen: { event: PaymentEvent; context: PaymentEventContext }[] = [];

  @OnPaymentEvent('transaction.completed')
  markPaid(event: PaymentEvent, context: PaymentEventContext): void {
    this.seen.push({ event, context });
  }

  /** How often the event with this id was handled. */
  count(id: string): number {
    return this.seen.filter(({ event }) => event.id === id).length;
  }
}

/** A merchant's application, on a free port of the loopback interface. */
export class WebhookApplication implements AsyncDisposable {
  private constructor(
    readonly app: INestApplication,
    readonly url: string,
    readonly log: CapturedLog,
  ) {}

  static async start(setup: Setup = {}): Promise<WebhookApplication> {
    const { adapter = new ExpressAdapter(), payments, nest, main, ...metadata } = setup;
    @Module({
      ...metadata,
      imports: [
        ...(payments === false ? [] : [PaymentsModule.forRoot(complete(payments))]),
        ...(metadata.imports ?? []),
      ],
    })
    class App {}
    const log = new CapturedLog();
    const app = await NestFactory.create(App, adapter, {
      logger: log,
      abortOnError: false,
      ...nest,
    });
    Logger.overrideLogger(log);
    await main?.(app);
    await app.listen(0, '127.0.0.1');
    return new WebhookApplication(app, await app.getUrl(), log);
  }

  /** Sends a webhook request with the given changes. `undefined` removes a header. */
  async send(
    delivery: SignedWebhook,
    changes: {
      method?: string;
      path?: string;
      headers?: Record<string, string | undefined>;
      body?: Uint8Array | readonly Uint8Array[];
    } = {},
  ): Promise<HttpResponse> {
    const headers = new Map(Object.entries<string | undefined>(delivery.headers));
    for (const [name, value] of Object.entries(changes.headers ?? {})) headers.set(name, value);
    const kept = [...headers].flatMap(([name, value]) =>
      value === undefined ? [] : [name, value],
    );
    return this.exchange(changes.path ?? delivery.path, {
      method: changes.method ?? 'POST',
      headers: kept,
      body: changes.body ?? delivery.body,
    });
  }

  /** Sends any request. */
  async exchange(path: string, request: Exchange = {}): Promise<HttpResponse> {
    return exchange(this.url + path, request);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const server = this.app.getHttpServer() as Server;
    // A browser may open connections without a request. A server that closes would wait a minute for them.
    const closeIdle = setInterval(() => {
      if (!server.listening) server.closeAllConnections();
    }, 50);
    try {
      await this.app.close();
    } finally {
      clearInterval(closeIdle);
    }
  }
}
