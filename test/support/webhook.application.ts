import { Logger, Module } from '@nestjs/common';
import type { INestApplication, ModuleMetadata, NestApplicationOptions } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { PaymentsModule } from 'nestjs-payments';
import type { PaymentsModuleExtras, PaymentsModuleOptions } from 'nestjs-payments';
import type { SignedDelivery } from 'nestjs-payments/testing';
import { CapturedLog } from './captured.log.js';

export const SECRET = 'whsec_R8s0xkq2vT5uY7wZ';

/** The options of one company, for a service that is not there. */
export const OPTIONS: PaymentsModuleOptions = {
  baseUrl: 'http://127.0.0.1:9',
  clientId: 'client',
  clientSecret: 'secret',
  webhookSecret: SECRET,
};

export const ADAPTERS: Readonly<Record<string, () => AbstractHttpAdapter>> = {
  express: () => new ExpressAdapter(),
  fastify: () => new FastifyAdapter(),
};

export const BODY_OPTIONS: Readonly<Record<string, NestApplicationOptions>> = {
  'no option': {},
  'rawBody: true': { rawBody: true },
  'bodyParser: false': { bodyParser: false },
};

export interface Setup extends ModuleMetadata {
  adapter?: AbstractHttpAdapter;
  payments?: Partial<PaymentsModuleOptions> & PaymentsModuleExtras;
  nest?: NestApplicationOptions;
  /** What main.ts does between create and listen. */
  main?: (app: INestApplication) => void | Promise<void>;
}

/** A merchant's application, as a merchant starts it, on a free port of loopback. */
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
      imports: [PaymentsModule.forRoot({ ...OPTIONS, ...payments }), ...(metadata.imports ?? [])],
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

  /** Sends a delivery, with the changes named. */
  async send(
    delivery: SignedDelivery,
    changes: {
      path?: string;
      headers?: Record<string, string | undefined>;
      body?: NonNullable<RequestInit['body']>;
    } = {},
  ): Promise<Answer> {
    const headers = new Headers(delivery.headers);
    for (const [name, value] of Object.entries(changes.headers ?? {})) {
      if (value === undefined) headers.delete(name);
      else headers.set(name, value);
    }
    const response = await fetch(this.url + (changes.path ?? delivery.path), {
      method: 'POST',
      headers,
      body: changes.body ?? delivery.body,
      redirect: 'manual',
      ...(changes.body instanceof ReadableStream && { duplex: 'half' }),
    });
    const text = await response.text();
    return { status: response.status, text, body: parse(text) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.app.close();
  }
}

export interface Answer {
  status: number;
  text: string;
  /** The parsed body, where it is JSON. */
  body: Record<string, unknown>;
}

function parse(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}
