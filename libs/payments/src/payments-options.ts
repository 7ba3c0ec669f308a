import type { Type } from '@nestjs/common';
import { resolveApiOptions } from './api/api-options.js';
import type { PaymentsApiOptions } from './api/api-options.js';
import {
  DEFAULT_COMPANY,
  ListedCompanies,
  resolveCompany,
  SharedSecrets,
} from './companies/company.js';
import type { Companies, Company, CompanyDirectory, ResolvedCompany } from './companies/company.js';
import { DirectoryCompanies } from './companies/directory-companies.js';
import type { LookupLimits } from './companies/directory-companies.js';
import type { EventRelay, MessageSource } from './engines/engine.js';
import { resolveBodyCodec } from './inbox/store/body-codec.js';
import type { BodyCodec } from './inbox/store/body-codec.js';
import { memoryInbox } from './stores/memory/memory-store.js';
import type { InboxDefinition } from './inbox/store/inbox-store.js';
import { resolveReconcileOptions } from './expectations/reconcile-options.js';
import type { ReconcileOptions } from './expectations/reconcile-options.js';
import { resolveReceiveOptions } from './inbox/receive/receive-options.js';
import type { ReceiveOptions } from './inbox/receive/receive-options.js';
import { resolveWorkerOptions } from './inbox/work/worker-options.js';
import type { WorkerOptions } from './inbox/work/worker-options.js';
import { ModuleRuntime, systemRuntime } from './runtime/payments-runtime.js';
import type { PaymentsRuntime } from './runtime/payments-runtime.js';
import { ModuleLogger, ThrottledLog } from './errors/module-log.js';
import { checkNames, flag, mustBe, optionsInvalid } from './errors/option-checks.js';
import { describeError, framesOf } from './errors/payments-error.js';
import { callersGuard, guard } from './errors/unhandled-rejections.js';
import { resolveObservers } from './telemetry/observers.js';
import type { PaymentsObserver } from './telemetry/observers.js';
import { resolveWebhookOptions } from './webhook/webhook-options.js';
import type { WebhookOptions } from './webhook/webhook-options.js';

/**
 * Options of `PaymentsModule`. The options configure either one company, with `clientId`, `clientSecret` and
 * `webhookSecret`, or any number of companies, with `companies`.
 */
export interface PaymentsModuleOptions extends ReceiveOptions {
  /**
   * Address of the payments service, without the `/v1` of its paths: `https:`, or `http:` on loopback. Sandbox and
   * production have different addresses and different credentials. Required, unless every company has its own
   * `baseUrl`.
   */
  baseUrl?: string;
  /** Client id of the one company; see {@link Company.clientId}. Required, unless `companies` is set. */
  clientId?: string;
  /** Client secret of the one company; see {@link Company.clientSecret}. Required, unless `companies` is set. */
  clientSecret?: string;
  /**
   * Webhook secret of the one company, or several secrets, current first; see {@link Company.webhookSecret}. Required,
   * unless `companies` is set.
   */
  webhookSecret?: string | readonly string[];
  /** A list of companies, or a directory that finds them. Default: the one company of `clientId`. */
  companies?: readonly Company[] | CompanyDirectory;
  /** Allows `http:` addresses other than loopback, for a trusted network. Default `false`. */
  allowInsecureHttp?: boolean;
  /** The inbox, which stores events until they are handled. Default {@link memoryInbox}. */
  inbox?: InboxDefinition;
  /**
   * Publishes every event to an engine such as JetStream, from which other applications take the event. Each
   * publication is a delivery to the handler `relay`: the module retries it for days, and a dead letter can be
   * redriven. Default: none.
   */
  relay?: EventRelay;
  /**
   * Takes events from an engine into the inbox of this process, whose handlers then run as for webhook requests. Cannot
   * be combined with `relay`, because the process would publish each event that it takes a second time. Default: none.
   */
  source?: MessageSource;
  /** Options for the admission and reading of webhook requests. Every field has a default. */
  webhook?: WebhookOptions;
  /** Encodes stored bodies, for example to encrypt them. Default: none; bodies are stored as received. */
  bodyCodec?: BodyCodec;
  /** Options for the attempts of handlers, and for how long events are stored. Every field has a default. */
  worker?: WorkerOptions;
  /** Options for calls to the payments service. Every field has a default. */
  api?: PaymentsApiOptions;
  /**
   * Options for the polls of payments that `PaymentExpectations.expect()` stored. Default: none; `expect()` then throws
   * an error.
   */
  reconcile?: ReconcileOptions;
  /**
   * Observers of what the module does. Each observer is an object or a class. For a class, `PaymentsModule` finds the
   * provider at boot, in any module; the provider must have the default scope. Default: none.
   */
  observers?: readonly (PaymentsObserver | Type<PaymentsObserver>)[];
  /**
   * Whether the application checks its setup when it has started, and logs a line for each check; see
   * `PaymentsSetup.check()`. The boot does not wait for the checks. The checks request a token for each company in the
   * options, and send no test webhook. Default `false`.
   */
  checkSetup?: boolean;
  /** Clocks, timers, randomness and environment, for tests. Default: those of Node.js. */
  runtime?: PaymentsRuntime;
}

/**
 * Interface of a class for `forRootAsync({ useClass })` or `useExisting`.
 *
 * @example
 * ```ts
 * @Injectable()
 * class PaymentsOptions implements PaymentsOptionsFactory {
 *   constructor(private readonly config: ConfigService) {}
 *
 *   createPaymentsOptions() {
 *     return { baseUrl: this.config.getOrThrow('PAYMENTS_BASE_URL'), companies: new MerchantDirectory() };
 *   }
 * }
 * ```
 */
export interface PaymentsOptionsFactory {
  /** Returns the options. Called once, at boot. */
  createPaymentsOptions(): PaymentsModuleOptions | Promise<PaymentsModuleOptions>;
}

/** The checked options, with their defaults. An option without a value is `null`. */
export type ResolvedPaymentsOptions = ReturnType<typeof resolveOptions>;

const NAMES: Readonly<Record<keyof PaymentsModuleOptions, true>> = {
  baseUrl: true,
  clientId: true,
  clientSecret: true,
  webhookSecret: true,
  companies: true,
  allowInsecureHttp: true,
  inbox: true,
  relay: true,
  source: true,
  bodyCodec: true,
  webhook: true,
  worker: true,
  api: true,
  reconcile: true,
  observers: true,
  checkSetup: true,
  runtime: true,
  oncePerTransaction: true,
  deadlineMs: true,
  summary: true,
};

const COMPANY_NAMES: Readonly<Record<keyof Company, true>> = {
  id: true,
  clientId: true,
  clientSecret: true,
  webhookSecret: true,
  baseUrl: true,
};

/** @throws PaymentsError `options_invalid`. The message names the option, its unit and the fix. */
export function resolveOptions(options: PaymentsModuleOptions) {
  if (typeof options !== 'object' || options === null) {
    throw optionsInvalid('the options must be an object with the fields of PaymentsModuleOptions.');
  }
  const early = ['webhookPath', 'isGlobal'].find((name) => Object.hasOwn(options, name));
  if (early !== undefined) {
    throw optionsInvalid(
      `"${early}" must be known before the factory runs: pass it to forRootAsync() itself, next to the factory.`,
    );
  }
  checkNames('', options, NAMES);
  const { inbox = memoryInbox() } = options;
  if (typeof inbox?.create !== 'function') {
    throw optionsInvalid(
      '"inbox" must be the result of memoryInbox(), sqliteInbox() or postgresInbox().',
    );
  }
  const { relay = null, source = null } = options;
  if (relay !== null && typeof relay?.publish !== 'function') {
    throw mustBe('relay', 'an object with the function publish(message, { signal })', relay);
  }
  if (source !== null && typeof source?.consume !== 'function') {
    throw mustBe('source', 'an object with the function consume(store, { signal })', source);
  }
  if (relay !== null && source !== null) {
    throw optionsInvalid(
      'set "relay" or "source", not both. Set "relay" in the application that receives webhook requests, and "source" ' +
        'in an application that takes events from the engine. With both, the application would hand over the events ' +
        'that it has just taken.',
    );
  }
  const { runtime: timers = systemRuntime } = options;
  if (typeof timers?.schedule !== 'function') {
    throw optionsInvalid(
      '"runtime" must be a PaymentsRuntime; leave it out for the clocks and timers of Node.js.',
    );
  }
  // A value from an environment variable may be the string 'false', which is truthy.
  flag(false)('allowInsecureHttp', options.allowInsecureHttp);
  const guarded = createOptionGuard((callback) => runtime.onClose(callback));
  const runtime = new ModuleRuntime(guardRuntime(timers, guarded));
  const reconcile = resolveReconcileOptions(options.reconcile);
  const receive = resolveReceiveOptions(options, reconcile?.eventTypes);
  const webhook = resolveWebhookOptions(options.webhook, receive);
  const codec = resolveBodyCodec(options.bodyCodec);
  const { maxLookupsPerSecond } = webhook;
  const limits = { maxLookupsPerSecond, deadlineMs: receive.deadlineMs };
  return Object.freeze({
    companies: resolveCompanies(options, limits, runtime, guarded),
    inbox,
    relay,
    source,
    bodyCodec: codec && {
      encode: guarded<BodyCodec['encode']>('bodyCodec.encode', (...args) => codec.encode(...args)),
      decode: guarded<BodyCodec['decode']>('bodyCodec.decode', (...args) => codec.decode(...args)),
    },
    receive: { ...receive, summary: guarded('summary', receive.summary) },
    webhook: { ...webhook, before: guarded('webhook.before', webhook.before) },
    worker: resolveWorkerOptions(options.worker),
    api: resolveApiOptions(options.api),
    reconcile: reconcile && {
      ...reconcile,
      interpret: guarded('reconcile.interpret', reconcile.interpret),
      find: guarded('reconcile.find', reconcile.find),
    },
    observers: resolveObservers(options.observers),
    checkSetup: flag(false)('checkSetup', options.checkSetup),
    runtime,
  });
}

function resolveCompanies(
  options: PaymentsModuleOptions,
  limits: LookupLimits,
  runtime: PaymentsRuntime,
  guarded: GuardOption,
): Companies {
  const { companies, clientId, clientSecret, webhookSecret, baseUrl, allowInsecureHttp } = options;
  const defaults = { baseUrl, allowInsecureHttp };
  if (companies === undefined) {
    // The fields may be missing; resolveCompany() checks them.
    const company = { id: DEFAULT_COMPANY, clientId, clientSecret, webhookSecret } as Company;
    return new ListedCompanies([resolveCompany(company, defaults)]);
  }
  if (clientId !== undefined || clientSecret !== undefined || webhookSecret !== undefined) {
    throw optionsInvalid(
      'give either "clientId", "clientSecret" and "webhookSecret", for one company, or "companies", not both.',
    );
  }
  if (isDirectory(companies)) {
    const find = guarded('companies.find', (id: string) => companies.find(id));
    return new DirectoryCompanies({ find }, defaults, limits, runtime);
  }
  if (!Array.isArray(companies) || companies.length === 0) {
    throw optionsInvalid(
      '"companies" must be a list of at least one company, or a directory with a method "find(id)".',
    );
  }
  if (!companies.every((company) => typeof company === 'object' && company !== null)) {
    throw optionsInvalid('"companies" must contain only companies; it contains something else.');
  }
  const resolved = companies.map((company: Company, index) => {
    checkNames(`companies[${index}].`, company, COMPANY_NAMES);
    return resolveCompany(company, defaults);
  });
  const ids = resolved.map(({ id }) => id);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) {
    throw optionsInvalid(`two companies have the id "${twice}". Give each company its own id.`);
  }
  requireOwnSecrets(resolved);
  return new ListedCompanies(resolved);
}

/** @throws PaymentsError `options_invalid` if two companies have the same webhook secret. */
function requireOwnSecrets(companies: readonly ResolvedCompany[]): void {
  const secrets = new SharedSecrets();
  for (const company of companies) {
    const other = secrets.add(company);
    if (other === undefined) continue;
    throw optionsInvalid(
      `the companies "${other}" and "${company.id}" have the same webhook secret, so an event for one company would ` +
        'also be accepted for the other. Give each company the secret that the payments service gave it.',
    );
  }
}

function isDirectory(
  companies: readonly Company[] | CompanyDirectory,
): companies is CompanyDirectory {
  return (
    typeof (companies as CompanyDirectory | null)?.find === 'function' && !Array.isArray(companies)
  );
}

/**
 * Returns a function that calls the function of the option `name`. If this function starts a promise without awaiting
 * it and the promise rejects, the rejection is logged, at most once per minute and option. If `option` is not a
 * function, returns it unchanged.
 */
type GuardOption = <F>(name: string, option: F) => F;

function createOptionGuard(onClose: (callback: () => void) => void): GuardOption {
  let log: ThrottledLog | undefined;
  // The log uses the system's clock, because the clock of the application may be the function that rejects.
  const createLog = (): ThrottledLog =>
    new ThrottledLog(new ModuleLogger('PaymentsModule'), {
      monotonic: () => systemRuntime.monotonic(),
      schedule: (ms, callback) => systemRuntime.schedule(ms, callback),
      onClose,
    });
  return (name, option) => {
    if (typeof option !== 'function') return option;
    const rejected = (reason: unknown): void => {
      log ??= createLog();
      log.error(
        name,
        () =>
          `The option "${name}" did not await a promise, which rejected: ${describeError(reason)}. The module ignores ` +
          `this error. Await the promise.${framesOf(reason)}`,
      );
    };
    const call = (...args: unknown[]): unknown =>
      guard(rejected, () => Reflect.apply(option, undefined, args));
    return call as typeof option;
  };
}

function guardRuntime(runtime: PaymentsRuntime, guardOption: GuardOption): PaymentsRuntime {
  if (runtime === systemRuntime) return runtime;
  const schedule = guardOption('runtime.schedule', (ms: number, callback: () => void) =>
    guardOption('runtime.schedule', runtime.schedule(ms, callback)),
  );
  return {
    now: guardOption('runtime.now', () => runtime.now()),
    monotonic: guardOption('runtime.monotonic', () => runtime.monotonic()),
    random: guardOption('runtime.random', () => runtime.random()),
    schedule: (ms, callback) => {
      const inCallersGuard = callersGuard();
      return schedule(ms, () => inCallersGuard(callback));
    },
    get environment() {
      return runtime.environment;
    },
  };
}
