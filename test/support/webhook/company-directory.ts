import { afterEach, beforeEach } from '@jest/globals';
import type { Company, CompanyDirectory } from 'nestjs-payments';
import type { HttpResponse } from '../http/http-exchange.js';
import { FakeRuntime } from '../time/fake-runtime.js';
import { signedWebhook } from './signed-webhook.js';
import { ADAPTERS, company, WebhookApplication } from './webhook-application.js';

/** The only company of the directory. */
export const ACME = company('acme', 'whsec_acme');

/** A directory that records each call. */
export class Merchants implements CompanyDirectory {
  readonly lookups: string[] = [];
  result: (id: string) => unknown = (id) => (id === 'acme' ? ACME : undefined);

  async find(id: string): Promise<Company | undefined> {
    this.lookups.push(id);
    return this.result(id) as Promise<Company | undefined>;
  }
}

/** An application with a {@link Merchants} directory, new for every test of a `describe`. */
export interface DirectoryContext {
  merchants: Merchants;
  runtime: FakeRuntime;
  application: WebhookApplication;
  /** Sends a webhook request, signed for the company `from`, to the path of `id`. */
  sendTo(id: string, from?: Company): Promise<HttpResponse>;
}

/** Starts an application with a directory before each test. Call it in a `describe`. */
export function useDirectory(adapter: string): DirectoryContext {
  const context = {
    sendTo: async (id, from = ACME) => context.application.send(signedWebhook({ ...from, id })),
  } as DirectoryContext;
  beforeEach(async () => {
    context.merchants = new Merchants();
    context.runtime = new FakeRuntime();
    context.application = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      payments: { companies: context.merchants, runtime: context.runtime },
    });
    context.application.log.lines.length = 0;
  });
  afterEach(async () => context.application.app.close());
  return context;
}
