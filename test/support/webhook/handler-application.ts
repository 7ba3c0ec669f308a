import { describe } from '@jest/globals';
import { Controller, Injectable, Scope } from '@nestjs/common';
import type { ModuleMetadata } from '@nestjs/common';
import type { StoredDelivery, StoredEvent } from 'nestjs-payments';
import { PaymentInbox } from 'nestjs-payments';
import { signedWebhook } from './signed-webhook.js';
import type { EnvelopeFields, SignedWebhook } from './signed-webhook.js';
import { FakeRuntime } from '../time/fake-runtime.js';
import { ADAPTERS, SECRET, WebhookApplication } from './webhook-application.js';
import type { Setup } from './webhook-application.js';

/** Starts an application on the adapter under test. */
export type Start = (
  setup: Setup & { payments?: Exclude<Setup['payments'], false> },
) => Promise<WebhookApplication>;

/**
 * Declares the same tests for each HTTP adapter. The clock of the applications stands still, so that nothing is retried
 * unless a test advances it.
 */
export function onEachAdapter(promises: (start: Start) => void): void {
  describe.each(Object.keys(ADAPTERS))('on %s', (name) => promises(startOn(name)));
}

/** Like {@link onEachAdapter}, but only on Express, for tests that do not depend on the HTTP adapter. */
export function onOneAdapter(title: string, promises: (start: Start) => void): void {
  describe(title, () => promises(startOn('express')));
}

function startOn(adapter: string): Start {
  return ({ payments, ...setup }) =>
    WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      payments: { runtime: new FakeRuntime(), ...payments },
      ...setup,
    });
}

/** A signed webhook request of the company `default`. */
export function webhookRequest(payload: EnvelopeFields = {}): SignedWebhook {
  return signedWebhook({ webhookSecret: SECRET }, payload);
}

/** The event as the inbox stores it. */
export async function stored(app: WebhookApplication, id: string): Promise<StoredEvent> {
  const event = await app.app.get(PaymentInbox).get(id, 'default');
  if (event === undefined) throw new Error(`no event ${id} is stored`);
  return event;
}

/** The event's only delivery, or its delivery to the named handler. */
export async function storedDelivery(
  app: WebhookApplication,
  id: string,
  handler?: string,
): Promise<StoredDelivery> {
  const { deliveries } = await stored(app, id);
  const found = deliveries.find((one) => handler === undefined || one.handler === handler);
  if (found === undefined) throw new Error(`event ${id} has no such delivery`);
  return found;
}

type Class = new (...args: never[]) => object;

/** The ways in which an application can declare a class with handlers. Each declares a subclass of the given class. */
export const HOSTS: readonly (readonly [
  kind: string,
  declare: (base: Class) => Pick<ModuleMetadata, 'providers' | 'controllers'>,
])[] = [
  ['a singleton', (base) => ({ providers: [subclass(base, Injectable())] })],
  [
    'a provider under a token',
    (base) => ({ providers: [{ provide: 'X', useClass: subclass(base, Injectable()) }] }),
  ],
  [
    'a request-scoped provider',
    (base) => ({ providers: [subclass(base, Injectable({ scope: Scope.REQUEST }))] }),
  ],
  ['a controller', (base) => ({ controllers: [subclass(base, Controller('handlers'))] })],
];

/** Returns a decorated subclass with the name of the class. */
function subclass(base: Class, decorate: ClassDecorator): Class {
  const Subclass = { [base.name]: class extends base {} }[base.name]!;
  decorate(Subclass);
  return Subclass;
}

/** A provider that records which of its handlers ran. */
export abstract class Recorder {
  readonly ran: string[] = [];

  note(name: string): void {
    this.ran.push(name);
  }
}
