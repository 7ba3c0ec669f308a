import { ConfigurableModuleBuilder, Module } from '@nestjs/common';
import type { DynamicModule, FactoryProvider, Provider, ValueProvider } from '@nestjs/common';
import { DiscoveryModule, ModuleRef, ModulesContainer } from '@nestjs/core';
import { PAYMENTS_API_OPTIONS } from './api/api-options.js';
import { PaymentsApiService } from './api/payments-api.service.js';
import { COMPANIES } from './companies/company.js';
import { EngineMonitor } from './engines/engine-monitor.js';
import { EventConsumer, MESSAGE_SOURCE } from './engines/event-consumer.js';
import { EVENT_RELAY, RelayHandler } from './engines/event-relay.js';
import { EventDispatcher } from './events/event-dispatcher.js';
import { HandlerExplorer } from './events/handler-explorer.js';
import { HandlerRegistry } from './events/handler-registry.js';
import { UnhandledRejections } from './errors/unhandled-rejections.js';
import { PaymentExpectations } from './expectations/payment-expectations.js';
import { Poller } from './expectations/poller.js';
import { RECONCILE_OPTIONS } from './expectations/reconcile-options.js';
import { BODY_CODEC, StoredBodies } from './inbox/store/body-codec.js';
import { HandlerCatalogCache } from './inbox/store/handler-catalog-cache.js';
import { InboxMaintenance } from './inbox/operate/inbox-maintenance.js';
import { ProcessReports } from './inbox/operate/process-reports.js';
import { InboxRedrive } from './inbox/operate/inbox-redrive.js';
import { RedriveJobs } from './inbox/operate/redrive-jobs.js';
import { EventReceiver } from './inbox/receive/event-receiver.js';
import { InboxWorker } from './inbox/work/inbox-worker.js';
import { PaymentInbox } from './inbox/payment-inbox.js';
import { INBOX_STORE } from './inbox/store/inbox-store.js';
import type { InboxStore } from './inbox/store/inbox-store.js';
import { MAX_AGE_MS, RECEIVE_OPTIONS, resolveMaxAge } from './inbox/receive/receive-options.js';
import { WORKER_OPTIONS } from './inbox/work/worker-options.js';
import { importersOfSeveral } from './nest-internals.js';
import { PaymentsLifecycle } from './payments-lifecycle.js';
import { resolveOptions } from './payments-options.js';
import type { PaymentsModuleOptions, ResolvedPaymentsOptions } from './payments-options.js';
import { PAYMENTS_RUNTIME } from './runtime/payments-runtime.js';
import { optionsInvalid } from './errors/option-checks.js';
import { PaymentsError } from './errors/payments-error.js';
import { CHECK_AT_BOOT, PaymentsSetup } from './setup/payments-setup.js';
import { Observers } from './telemetry/observers.js';
import { Admission, PendingRequests } from './webhook/admission.js';
import { RawBodyMiddleware } from './webhook/raw-body.middleware.js';
import { WebhookEndpoint, WebhookRoutes } from './webhook/webhook-routes.js';
import {
  DEFAULT_WEBHOOK_PATH,
  resolveWebhookPath,
  WEBHOOK_OPTIONS,
  WEBHOOK_PATH,
} from './webhook/webhook-options.js';
import { RejectionLog } from './webhook/webhook-rejection.js';
import { WebhookVerifier } from './webhook/webhook-verifier.js';
import { WebhookGuard } from './webhook/webhook.guard.js';

/**
 * Arguments of `forRoot` and `forRootAsync` in addition to the options. Nest needs these arguments before it creates
 * the options.
 */
export interface PaymentsModuleExtras {
  /** Whether every module can inject the exported providers without importing the module. Default `false`. */
  isGlobal?: boolean;
  /**
   * Path of the route for webhook requests, without the application's global prefix. The module adds `/:company` for
   * every company except `default`. `false` mounts no route: the application receives webhook requests in its own
   * controller, with `WebhookGuard`. Default `webhooks/payments`.
   */
  webhookPath?: string | false;
}

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } =
  // Without `alwaysTransient`, `moduleIdGeneratorAlgorithm: 'deep-hash'` could not distinguish two imports of this module,
  // because the hash does not contain the resolved options.
  new ConfigurableModuleBuilder<PaymentsModuleOptions>({
    moduleName: 'Payments',
    alwaysTransient: true,
  })
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createPaymentsOptions')
    // Nest removes the extras that are listed here from the options of `forRoot`, so all extras are listed.
    .setExtras<PaymentsModuleExtras>(
      { isGlobal: false, webhookPath: DEFAULT_WEBHOOK_PATH },
      (definition, { isGlobal = false, webhookPath }): DynamicModule => ({
        ...definition,
        global: isGlobal,
        providers: [
          ...(definition.providers ?? []).map((provider) =>
            isOptions(provider) ? resolvingProvider(provider) : provider,
          ),
          { provide: WEBHOOK_PATH, useValue: resolveWebhookPath(webhookPath) },
        ],
      }),
    )
    .build();

function isOptions(provider: Provider): boolean {
  return 'provide' in provider && provider.provide === MODULE_OPTIONS_TOKEN;
}

/**
 * Replaces the provider of the options that Nest's module builder creates. The value of the new provider is the
 * resolved options. `JSON.stringify` and `util.inspect` do not show the secrets of these options.
 */
function resolvingProvider(provider: Provider): Provider {
  const { provide, inject = [], useFactory } = provider as FactoryProvider<PaymentsModuleOptions>;
  // The new provider is a factory, even if the options are a value. Nest prints the definition of a module with its
  // values, but not the results of factories.
  const { useValue } = provider as ValueProvider<PaymentsModuleOptions>;
  return {
    provide,
    inject: [ModulesContainer, ...inject],
    useFactory: async (modules: ModulesContainer, ...dependencies: unknown[]) => {
      assertSingleImport(modules);
      return resolveOptions(useFactory ? await createOptions(useFactory, dependencies) : useValue);
    },
  };
}

/**
 * Throws if the module is imported more than once, because each instance would have its own inbox, webhook route and
 * handlers.
 */
function assertSingleImport(modules: ModulesContainer): void {
  const importers = importersOfSeveral(modules, PaymentsLifecycle);
  if (importers === undefined) return;
  throw optionsInvalid(
    `it is imported more than once in this application: by ${importers.join(' and by ')}. Import it once. Other ` +
      'modules can inject its providers if the importing module exports PaymentsModule, or if it is imported ' +
      'with "isGlobal: true".',
  );
}

/** @throws PaymentsError `options_invalid` with the error of the application's factory as its `cause`. */
async function createOptions(
  useFactory: FactoryProvider<PaymentsModuleOptions>['useFactory'],
  dependencies: unknown[],
): Promise<PaymentsModuleOptions> {
  let options: PaymentsModuleOptions | null | undefined;
  try {
    options = await useFactory(...dependencies);
  } catch (error) {
    if (error instanceof PaymentsError && error.code === 'options_invalid') throw error;
    // The message of another error may contain a secret, so it is in `cause` only.
    throw optionsInvalid(
      'the options factory of PaymentsModule.forRootAsync() failed. The cause of this error is the error of the factory.',
      { cause: error },
    );
  }
  if (options !== undefined && options !== null) return options;
  throw optionsInvalid(
    'the options factory of PaymentsModule.forRootAsync() returned nothing. Return the options from it.',
  );
}

function option(provide: symbol, pick: (options: ResolvedPaymentsOptions) => unknown): Provider {
  return { provide, inject: [MODULE_OPTIONS_TOKEN], useFactory: pick };
}

/**
 * The providers of the options if the module is imported as a class, without options. `forRoot` and `forRootAsync`
 * replace these providers.
 */
const WITHOUT_OPTIONS: Provider[] = [
  resolvingProvider({
    provide: MODULE_OPTIONS_TOKEN,
    useFactory: () => {
      throw optionsInvalid(
        'it is imported without options. Import it once by PaymentsModule.forRoot() or forRootAsync(). In other ' +
          'modules, import the module that imports and exports PaymentsModule, or use "isGlobal: true".',
      );
    },
  }),
  { provide: WEBHOOK_PATH, useValue: null },
];
const OPTIONS: Provider[] = [
  option(PAYMENTS_RUNTIME, ({ runtime }) => runtime),
  option(COMPANIES, ({ companies }) => companies),
  option(PAYMENTS_API_OPTIONS, ({ api }) => api),
  option(RECONCILE_OPTIONS, ({ reconcile }) => reconcile),
  option(WORKER_OPTIONS, ({ worker }) => worker),
  option(RECEIVE_OPTIONS, ({ receive }) => receive),
  option(WEBHOOK_OPTIONS, ({ webhook }) => webhook),
  option(BODY_CODEC, ({ bodyCodec }) => bodyCodec),
  option(EVENT_RELAY, ({ relay }) => relay),
  option(MESSAGE_SOURCE, ({ source }) => source),
  option(CHECK_AT_BOOT, ({ checkSetup }) => checkSetup),
  option(INBOX_STORE, ({ inbox, runtime }) => inbox.create(runtime)),
  {
    provide: Observers,
    inject: [MODULE_OPTIONS_TOKEN, ModuleRef],
    useFactory: ({ observers, runtime }: ResolvedPaymentsOptions, moduleRef: ModuleRef) =>
      new Observers(observers, runtime, moduleRef),
  },
  {
    provide: MAX_AGE_MS,
    inject: [MODULE_OPTIONS_TOKEN, INBOX_STORE],
    useFactory: ({ webhook, worker }: ResolvedPaymentsOptions, store: InboxStore) =>
      resolveMaxAge(webhook.maxAgeMs, worker.retainIdsMs, store.capabilities.durable),
  },
];
const WEBHOOK: Provider[] = [
  RejectionLog,
  PendingRequests,
  Admission,
  RawBodyMiddleware,
  WebhookRoutes,
  WebhookVerifier,
  WebhookGuard,
  WebhookEndpoint,
];
const INBOX: Provider[] = [
  StoredBodies,
  InboxWorker,
  InboxMaintenance,
  ProcessReports,
  InboxRedrive,
  RedriveJobs,
  HandlerCatalogCache,
  EventReceiver,
  PaymentInbox,
];
const ENGINES: Provider[] = [RelayHandler, EventConsumer, EngineMonitor];
const EVENTS: Provider[] = [UnhandledRejections, HandlerRegistry, HandlerExplorer, EventDispatcher];

/**
 * Calls the payments service, receives its signed webhook requests, polls the service about expected payments, and runs
 * the methods with `@OnPaymentEvent`.
 *
 * Import the module once per application, with `forRoot` or `forRootAsync` (`useFactory`, or `useClass` and
 * `useExisting` with a {@link PaymentsOptionsFactory}); a second import is an error at boot. Other modules can inject
 * the module's providers if the importing module exports `PaymentsModule`, or with `isGlobal: true`. If several modules
 * import the same dynamic module from a constant, this counts as one import.
 *
 * @example
 * ```ts
 * @Module({ imports: [PaymentsModule.forRootAsync(paymentsConfig.asProvider())], providers: [Orders] })
 * export class AppModule {}
 * ```
 */
@Module({
  imports: [DiscoveryModule],
  providers: [
    ...WITHOUT_OPTIONS,
    ...OPTIONS,
    ...WEBHOOK,
    ...INBOX,
    ...EVENTS,
    ...ENGINES,
    Poller,
    PaymentExpectations,
    PaymentsApiService,
    PaymentsSetup,
    PaymentsLifecycle,
  ],
  // Nest creates WebhookGuard and PaymentsHealthIndicator in the module that uses them, which must therefore be able to
  // inject WebhookVerifier and EngineMonitor.
  exports: [
    PaymentsApiService,
    PaymentInbox,
    PaymentExpectations,
    PaymentsSetup,
    WebhookGuard,
    WebhookVerifier,
    EngineMonitor,
  ],
})
export class PaymentsModule extends ConfigurableModuleClass {}
