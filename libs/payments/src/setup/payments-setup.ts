import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { PaymentsApiService } from '../api/payments-api.service.js';
import { COMPANIES, DEFAULT_COMPANY } from '../companies/company.js';
import type { Companies } from '../companies/company.js';
import { ModuleLogger } from '../errors/module-log.js';
import { describeError, PaymentsError } from '../errors/payments-error.js';
import { ADD_HANDLER, HandlerExplorer, NO_HANDLER } from '../events/handler-explorer.js';
import { HandlerRegistry, isReserved, similarType } from '../events/handler-registry.js';
import { TEST_EVENT_TYPE } from '../events/payment-event.js';
import { PaymentInbox } from '../inbox/payment-inbox.js';
import { RECEIVE_OPTIONS } from '../inbox/receive/receive-options.js';
import type { ResolvedReceiveOptions } from '../inbox/receive/receive-options.js';
import { INBOX_STORE } from '../inbox/store/inbox-store.js';
import type { InboxStore, StoredEvent } from '../inbox/store/inbox-store.js';
import { assertWhole } from '../inbox/store/stored-event.js';
import { abortableDelay, Deadline, withTimeLimit } from '../runtime/deadline.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { Observers } from '../telemetry/observers.js';
import type { ObserverInfo } from '../telemetry/observers.js';
import { WebhookRoutes } from '../webhook/webhook-routes.js';

/** The names of the checks, in the order in which they run. */
export const SETUP_CHECKS = ['settings', 'token', 'inbox', 'handlers', 'webhook'] as const;

/** One result of a check of the setup. It contains no secret, no token and no payload. */
export interface SetupCheck {
  readonly name: (typeof SETUP_CHECKS)[number];
  /** The company that was checked; `null` for the checks `inbox` and `handlers`, and if no company was selected. */
  readonly company: string | null;
  /**
   * - `ok`: nothing to do.
   * - `warning`: the setup may be wrong, see {@link fix}.
   * - `failed`: payments do not work until {@link fix} is done.
   * - `skipped`: the check did not run, because of the options or because another check failed.
   */
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped';
  /** What the check found, in one or two sentences. */
  readonly message: string;
  /** What to do; `null` if there is nothing to do. */
  readonly fix: string | null;
}

/** Options of {@link PaymentsSetup.check}. */
export interface SetupCheckOptions {
  /** Runs only this check. Default: all checks. */
  only?: SetupCheck['name'];
  /** Checks only this company. Necessary if a directory finds the companies. Default: every company in the options. */
  company?: string;
  /** Whether the service sends a test webhook (`POST /v1/webhooks/test`) for each checked company. Default `false`. */
  sendTest?: boolean;
  /**
   * How long the inbox may take to respond, and a test webhook to arrive, in milliseconds. 100 to 60,000. Default
   * 10,000.
   */
  timeoutMs?: number;
}

export const CHECK_AT_BOOT = Symbol('PAYMENTS_CHECK_SETUP');

type Rejection = ObserverInfo['requestRejected'];

type Finding = Pick<SetupCheck, 'state' | 'message'> & Partial<SetupCheck>;

/** Milliseconds between two reads of the inbox while a test webhook is awaited. */
const READ_MS = 50;

/**
 * Checks the setup of the application: its settings, an access token, the inbox, the handlers and, on demand, a test
 * webhook from the request to its event in the inbox.
 *
 * @example
 * ```ts
 * for await (const { name, state, message, fix } of setup.check({ sendTest: true })) {
 *   console.log(`${state} ${name}: ${message} ${fix ?? ''}`);
 * }
 * ```
 */
@Injectable()
export class PaymentsSetup {
  readonly #logger = new ModuleLogger('PaymentsSetup');

  constructor(
    @Inject(COMPANIES) private readonly companies: Companies,
    private readonly api: PaymentsApiService,
    private readonly inbox: PaymentInbox,
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    private readonly registry: HandlerRegistry,
    private readonly explorer: HandlerExplorer,
    @Inject(RECEIVE_OPTIONS) private readonly receive: ResolvedReceiveOptions,
    private readonly routes: WebhookRoutes,
    private readonly observers: Observers,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    @Inject(CHECK_AT_BOOT) private readonly atBoot: boolean,
  ) {}

  /**
   * Runs the checks one after the other, and yields the results of each check as soon as the check has ended. Call this
   * method after the application has started. A failed check is a result, not an error.
   *
   * @throws TypeError if `timeoutMs` is out of bounds.
   */
  async *check(options: SetupCheckOptions = {}): AsyncGenerator<SetupCheck, void> {
    const { only, company, sendTest = false, timeoutMs = 10_000 } = options;
    assertWhole('timeoutMs', timeoutMs, { min: 100, max: 60_000, unit: 'milliseconds' });
    const companies = company === undefined ? this.companies.ids : [company];
    const withToken = new Set<string>();
    const runs = {
      settings: (id: string) => this.#settings(id),
      token: async (id: string) => {
        const found = await this.#token(id);
        if (found.state === 'ok') withToken.add(id);
        return found;
      },
      webhook: async (id: string) => {
        if (!sendTest) return NOT_SENT;
        if (only === undefined && !withToken.has(id)) return NO_TOKEN;
        return this.#webhook(id, timeoutMs);
      },
    };
    for (const name of SETUP_CHECKS.filter((one) => only === undefined || only === one)) {
      if (name === 'inbox') yield* this.#findings(name, null, () => this.#inbox(timeoutMs));
      else if (name === 'handlers') yield* this.#findings(name, null, () => this.#handlers());
      else if (companies.length === 0) yield lineOf(name, null, NO_COMPANY);
      else for (const id of companies) yield* this.#findings(name, id, () => runs[name](id));
    }
  }

  /** Runs the checks in the background and logs each result, if the option `checkSetup` is set. */
  logAtBoot(): void {
    if (this.atBoot) void this.#log();
  }

  async #log(): Promise<void> {
    for await (const { name, company, state, message, fix } of this.check()) {
      const subject = company === null ? name : `${name} of company ${company}`;
      const text = `Check of the setup, ${subject}: ${state}. ${message}${fix === null ? '' : ` ${fix}`}`;
      const level = ({ failed: 'error', warning: 'warn' } as const)[state as string] ?? 'log';
      this.#logger[level](text, { company: company ?? undefined });
    }
  }

  async *#findings(
    name: SetupCheck['name'],
    company: string | null,
    check: () => Promise<Finding | readonly Finding[]>,
  ): AsyncGenerator<SetupCheck, void> {
    let found: Finding | readonly Finding[];
    try {
      found = await check();
    } catch (error) {
      found = { state: 'failed', message: messageOf(error), fix: FIX[name] };
    }
    for (const finding of [found].flat()) yield lineOf(name, company, finding);
  }

  async #settings(id: string): Promise<Finding> {
    const company = await this.companies.find(id);
    if (company === undefined) {
      return { state: 'failed', message: 'There is no company with this id.', fix: FIX.settings };
    }
    const { baseUrl, signingKeys } = company;
    const secrets =
      signingKeys.length === 1 ? '1 webhook secret' : `${signingKeys.length} webhook secrets`;
    return {
      state: 'ok',
      message: `The settings are valid. Calls go to ${baseUrl}. Webhook requests arrive at ${this.#route(id)} and are verified with ${secrets}.`,
    };
  }

  /** Returns the route to which the service must send the webhook requests of a company. */
  #route(company: string): string {
    const [own, others] = this.routes.endpointPaths();
    if (own === undefined || others === undefined) return 'your own controller with WebhookGuard';
    const single = company === DEFAULT_COMPANY || this.companies.ids.length === 1;
    return `POST ${single ? own : others.replace(':company', company)}`;
  }

  async #token(company: string): Promise<Finding> {
    const token = await this.api.checkToken(company);
    if (!token.ok) return { state: 'failed', message: `${token.message}.`, fix: FIX.token };
    const lifetime = `It is valid for ${Math.round(token.lifetimeMs / 1000)} s.`;
    const message = `The service issued a token in ${Math.round(token.durationMs)} ms. ${lifetime}`;
    return { state: 'ok', message };
  }

  async #inbox(timeoutMs: number): Promise<Finding> {
    const startedAt = this.runtime.monotonic();
    await withTimeLimit(
      this.#write(),
      timeoutMs,
      this.runtime,
      () =>
        new PaymentsError('inbox_unavailable', `The store did not respond within ${timeoutMs} ms.`),
    );
    const tookMs = Math.round(this.runtime.monotonic() - startedAt);
    if (this.inbox.capabilities.durable) {
      const message = `The store is reachable, writable and migrated. A read and two writes took ${tookMs} ms.`;
      return { state: 'ok', message };
    }
    const production = this.runtime.environment === 'production';
    return {
      state: production ? 'warning' : 'ok',
      message:
        'The inbox is in memory: events whose handlers have not succeeded are lost if the process ends.',
      fix: production ? 'Use sqliteInbox() or postgresInbox().' : null,
    };
  }

  /**
   * Tests that the store can be read and written: registers a worker without handlers and retires it at once. Nothing
   * else changes. The next heartbeat of any worker removes the retired worker.
   */
  async #write(): Promise<void> {
    await this.store.stats();
    const id = randomUUID();
    await this.store.register({ id, leaseMs: 1000, handlers: [] });
    await this.store.retire(id, 0);
  }

  async #handlers(): Promise<readonly Finding[]> {
    const handlers = this.registry.all().filter(({ name }) => !isReserved(name));
    const types = [...this.receive.oncePerTransaction, TEST_EVENT_TYPE];
    const misspelt = handlers.flatMap(({ name, patterns }): Finding[] =>
      patterns.flatMap((pattern) => {
        const similar = types.includes(pattern) ? undefined : similarType(pattern, types);
        if (similar === undefined) return [];
        const message = `The handler ${name} takes the type "${pattern}", which may be a misspelling of "${similar}".`;
        return [
          { state: 'warning', message, fix: `If it is, write @OnPaymentEvent('${similar}').` },
        ];
      }),
    );
    const unprovided = this.explorer.unprovided().map((method): Finding => ({
      state: 'warning',
      message: `${method} has @OnPaymentEvent, but its class is no provider of this application, so it never runs.`,
      fix: 'List the class in "providers" or "controllers" of a module that the application imports, unless another application provides it.',
    }));
    const listed = handlers.map(({ name, patterns }) => `${name} (${patterns.join(', ')})`);
    const found: Finding =
      handlers.length === 0
        ? { state: 'warning', message: NO_HANDLER, fix: ADD_HANDLER }
        : { state: 'ok', message: `Handlers with their event types: ${listed.join(', ')}.` };
    return [found, ...misspelt, ...unprovided];
  }

  async #webhook(company: string, timeoutMs: number): Promise<Finding> {
    const { id } = (await this.companies.find(company)) ?? { id: company };
    const before = await this.#latestTest(id);
    let rejected: Rejection | undefined;
    // The service may send the webhook requests of this company to the address of another company.
    let otherRejected: Rejection | undefined;
    const unsubscribe = this.observers.subscribe({
      requestRejected: (rejection) => {
        if ((rejection.company ?? id) === id) rejected = rejection;
        else otherRejected = rejection;
      },
    });
    const deadline = new Deadline(this.runtime, timeoutMs);
    try {
      const startedAt = this.runtime.monotonic();
      let sent: { readonly error: unknown } | undefined;
      void this.api
        .forCompany(company)
        .sendTestWebhook({ signal: deadline.signal, deadlineMs: timeoutMs })
        .then(
          () => (sent = { error: undefined }),
          (error: unknown) => (sent = { error }),
        );
      const ended = () => sent !== undefined && (rejected ?? sent.error) !== undefined;
      for (let last = false; ; last = ended() || deadline.ended !== undefined) {
        const event = await this.#latestTest(id);
        if (event !== undefined && event.id !== before?.id) {
          const tookMs = Math.round(this.runtime.monotonic() - startedAt);
          return await this.#handled(event, tookMs, deadline);
        }
        if (last) {
          // The end of the wait also aborts the call, so an error after that does not show a fault of the service.
          const error = deadline.ended === undefined ? sent?.error : undefined;
          const rejection = rejected ?? (error === undefined ? otherRejected : undefined);
          return this.#notArrived(id, rejection, error, timeoutMs);
        }
        await abortableDelay(READ_MS, this.runtime, deadline.signal);
      }
    } finally {
      deadline.release();
      unsubscribe();
    }
  }

  async #latestTest(company: string): Promise<StoredEvent | undefined> {
    const { events } = await this.inbox.list({ company, eventType: TEST_EVENT_TYPE, limit: 1 });
    return events[0];
  }

  /** Waits for the handlers of the test event, if there are any. */
  async #handled(
    { id, company }: StoredEvent,
    tookMs: number,
    deadline: Deadline,
  ): Promise<Finding> {
    const arrived = `The test webhook arrived and its signature is valid, ${tookMs} ms after the request.`;
    for (;;) {
      const { deliveries } = (await this.inbox.get(id, company)) ?? { deliveries: [] };
      const open = deliveries.filter(({ state }) => state !== 'done' && state !== 'skipped');
      if (deliveries.length === 0) {
        return { state: 'ok', message: `${arrived} No handler takes its type, which is usual.` };
      }
      if (open.length === 0) return { state: 'ok', message: `${arrived} Its handlers are done.` };
      const dead = open.some(({ state }) => state === 'dead');
      if (dead || deadline.ended !== undefined) {
        const names = open.map(({ handler, state }) => `${handler} (${state})`).join(', ');
        const message = `${arrived} It is stored, but not handled: ${names}.`;
        return {
          state: 'warning',
          message,
          fix: `Read the last error of event ${id}, for example in the console.`,
        };
      }
      await abortableDelay(READ_MS, this.runtime, deadline.signal);
    }
  }

  #notArrived(
    company: string,
    rejection: Rejection | undefined,
    error: unknown,
    timeoutMs: number,
  ): Finding {
    const address = `The address that is registered with the service must be https://your host, followed by the path of ${this.#route(company)}.`;
    if (rejection !== undefined) {
      const { code, message, company: other } = rejection;
      const of = other === null || other === company ? '' : ` of company ${other}`;
      const fix = `${address} The page Troubleshoot of the documentation explains each code.`;
      return {
        state: 'failed',
        message: `A webhook request${of} was rejected (${code}). ${message}`,
        fix,
      };
    }
    if (error !== undefined) {
      return { state: 'failed', message: messageOf(error), fix: FIX.webhook };
    }
    return {
      state: 'failed',
      message: `No webhook request reached this application within ${timeoutMs} ms.`,
      fix: `Check that the webhook is active at the service. ${address} Redirects are not followed. A proxy must forward the path unchanged.`,
    };
  }
}

const FIX: Readonly<Record<SetupCheck['name'], string>> = {
  settings: 'Compare the id with the ids in "companies", or correct the directory.',
  token:
    'Check "baseUrl" (PAYMENTS_BASE_URL), which must not end in /v1, and "clientId" and "clientSecret"; sandbox and ' +
    'production have different values.',
  inbox:
    'Repair the database: it must be reachable, and the user of the application must be allowed to write. No restart is ' +
    'necessary after that.',
  handlers: ADD_HANDLER,
  webhook: 'Correct the call of the service first, then send the test webhook again.',
};

const NO_COMPANY: Finding = {
  state: 'skipped',
  message: 'A directory finds the companies, so the company to check is not known.',
  fix: 'Give the id of a company.',
};

const NOT_SENT: Finding = {
  state: 'skipped',
  message: 'No test webhook was sent.',
  fix: 'Send one: with check({ sendTest: true }), or with the button in the console.',
};

const NO_TOKEN: Finding = {
  state: 'skipped',
  message: 'No test webhook was sent, because there is no token.',
  fix: 'Correct the token first.',
};

function messageOf(error: unknown): string {
  return error instanceof PaymentsError ? error.message : describeError(error);
}

function lineOf(name: SetupCheck['name'], company: string | null, finding: Finding): SetupCheck {
  return { name, company, fix: null, ...finding };
}
