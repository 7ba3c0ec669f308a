import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Injectable, UnauthorizedException } from '@nestjs/common';
import type { CanActivate } from '@nestjs/common';
import { none, OnPaymentEvent, PaymentInbox } from 'nestjs-payments';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import type { PaymentEvent, PaymentsModuleOptions } from 'nestjs-payments';
import { BasicAuthGuard, PaymentsConsoleModule } from 'nestjs-payments-console';
import type { EnvelopeFields, SignedWebhook } from '../webhook/signed-webhook.js';
import type { BrowserContextOptions, Locator, Page } from 'playwright-core';
import type { TestBrowser } from '../browser/test-browser.js';
import { eventually } from '../time/waiting.js';
import { webhookRequest } from '../webhook/handler-application.js';
import { WebhookApplication } from '../webhook/webhook-application.js';

export const OPERATOR = { username: 'ada', password: 'correct horse battery staple' };
const PATH = 'ops/payments';

/** A guard that rejects every request while `open` is false, as if the operator's session had ended. */
class SessionGuard implements CanActivate {
  open = true;

  canActivate(): boolean {
    if (!this.open) throw new UnauthorizedException();
    return true;
  }
}

/** A merchant's application with a console, whose `Orders.markPaid` fails while it is broken. */
export class ConsoleApplication implements AsyncDisposable {
  private constructor(
    readonly merchant: WebhookApplication,
    /** The attempts of the two handlers, and the error of the first one. */
    readonly handlers: { ran: string[]; trouble: string | null },
    readonly session: { open: boolean },
    private readonly folder: string,
  ) {}

  static async start(payments: Partial<PaymentsModuleOptions> = {}): Promise<ConsoleApplication> {
    const handlers = { ran: [] as string[], trouble: null as string | null };
    const session = new SessionGuard();
    const folder = await mkdtemp(join(tmpdir(), 'payments-console-'));

    @Injectable()
    class Handlers {
      @OnPaymentEvent(['transaction.*', 'webhook.test'], { name: 'Orders.markPaid' })
      markPaid({ id }: PaymentEvent): void {
        handlers.ran.push(`markPaid ${id}`);
        if (handlers.trouble !== null) throw new Error(handlers.trouble);
      }

      @OnPaymentEvent('transaction.completed', { name: 'Mailer.receipt' })
      receipt({ id }: PaymentEvent): void {
        handlers.ran.push(`receipt ${id}`);
      }
    }

    const merchant = await WebhookApplication.start({
      imports: [
        PaymentsConsoleModule.register({
          path: PATH,
          guards: [
            new BasicAuthGuard({ users: { [OPERATOR.username]: OPERATOR.password } }),
            session,
          ],
        }),
      ],
      providers: [Handlers],
      payments: {
        inbox: sqliteInbox({ file: join(folder, 'inbox.db') }),
        worker: { retry: none },
        ...payments,
      },
    });
    return new ConsoleApplication(merchant, handlers, session, folder);
  }

  get url(): string {
    return `${this.merchant.url}/${PATH}/`;
  }

  get inbox(): PaymentInbox {
    return this.merchant.app.get(PaymentInbox);
  }

  /** Delivers events in their order, and waits until each was attempted. */
  async receive(...events: (EnvelopeFields & { id: string })[]): Promise<void> {
    for (const event of events) await this.send(webhookRequest(event));
    for (const { id } of events) await this.settled(id);
  }

  async send(sent: SignedWebhook, headers: Record<string, string> = {}): Promise<void> {
    const { status } = await this.merchant.send(sent, { headers });
    if (status !== 200) throw new Error(`a webhook request got the status ${status}`);
  }

  /** Waits until no delivery of an event is pending or running. */
  settled(id: string): Promise<void> {
    return eventually(async () => {
      const waiting = Object.entries(await this.states(id)).filter(([, state]) =>
        ['pending', 'running'].includes(state),
      );
      if (waiting.length > 0) throw new Error(`${id} waits: ${JSON.stringify(waiting)}`);
    });
  }

  /** The states of an event's deliveries, by handler. */
  async states(id: string): Promise<Record<string, string>> {
    const event = await this.inbox.get(id);
    return Object.fromEntries(event!.deliveries.map(({ handler, state }) => [handler, state]));
  }

  /** Opens the console as the operator, at a place such as `events?state=dead`. */
  async open(
    browser: TestBrowser,
    place = '',
    { at = this.url, ...options }: BrowserContextOptions & { at?: string } = {},
  ): Promise<Page> {
    const httpCredentials = { ...OPERATOR, origin: new URL(at).origin };
    const page = await browser.page({ httpCredentials, ...options });
    await page.goto(`${at}#/${place}`);
    return page;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.merchant[Symbol.asyncDispose]();
    await rm(this.folder, { recursive: true });
  }
}

type JsonObject = Record<string, unknown>;
/** The response for the overview or an event. */
type Body = JsonObject & { handlers: JsonObject[]; deliveries: { history: JsonObject[] }[] };

/** Changes what the page receives from the console. */
export async function changed(
  page: Page,
  path: string,
  change: (body: Body, query: URLSearchParams) => JsonObject,
): Promise<void> {
  await page.route(`**/api/${path}?*`, async (route) => {
    try {
      const response = await route.fetch();
      const query = new URL(route.request().url()).searchParams;
      const json = response.ok() ? change((await response.json()) as Body, query) : undefined;
      await route.fulfill({ response, ...(json && { json }) });
    } catch {
      // At the end of a test, the application closes before the page.
      await route.abort().catch(() => undefined);
    }
  });
}

/** The deliveries of a time range without any. */
export const NO_DELIVERIES = {
  pending: 0,
  running: 0,
  done: 0,
  dead: 0,
  skipped: 0,
  failed: 0,
  p50Ms: null,
  p95Ms: null,
};

/**
 * Replaces the closed minutes that the page receives, and the number of events in them. `counts` gets the index of a
 * minute; the newest has index 0. `others` returns other properties of the overview to replace.
 */
export function closedMinutes(
  page: Page,
  counts: (index: number) => JsonObject,
  others: (overview: Body) => JsonObject = () => ({}),
): Promise<void> {
  const none = { received: 0, done: 0, failed: 0, dead: 0, p50Ms: null, p95Ms: null };
  return changed(page, 'overview', (overview, query) => {
    const minute = Math.floor(Date.parse(String(overview['now'])) / 60_000) - 1;
    const activity = Array.from({ length: Number(query.get('minutes')) }, (_, index) => {
      const startsAt = new Date((minute - index) * 60_000).toISOString();
      return { startsAt, ...none, ...counts(index) };
    });
    const webhook = activity.reduce((sum, { received }) => sum + received, 0);
    const events = { webhook, poll: 0, test: 0, overdue: 0 };
    const range = { events, deliveries: NO_DELIVERIES };
    return { ...overview, range, ...others(overview), activity: activity.toReversed() };
  });
}

/** The dialog of an action, after it has counted. */
export async function countedDialog(page: Page): Promise<Locator> {
  const dialog = page.getByRole('dialog');
  await dialog.locator('button[type=submit]:enabled').waitFor();
  return dialog;
}

/** Confirms the dialog of an action. */
export async function confirm(page: Page): Promise<void> {
  const dialog = await countedDialog(page);
  await dialog.locator('button[type=submit]').click();
  await dialog.waitFor({ state: 'detached' });
}
