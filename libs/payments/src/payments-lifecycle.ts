import { Inject, Injectable } from '@nestjs/common';
import type {
  OnApplicationBootstrap,
  OnApplicationShutdown,
  OnModuleDestroy,
} from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { ModuleLogger } from './errors/module-log.js';
import { EngineMonitor } from './engines/engine-monitor.js';
import { EventConsumer } from './engines/event-consumer.js';
import { RelayHandler } from './engines/event-relay.js';
import { prepareDataClasses } from './events/event-dispatcher.js';
import { PaymentExpectations } from './expectations/payment-expectations.js';
import { Poller } from './expectations/poller.js';
import { HandlerExplorer } from './events/handler-explorer.js';
import { HandlerRegistry } from './events/handler-registry.js';
import { UnhandledRejections } from './errors/unhandled-rejections.js';
import { INBOX_STORE } from './inbox/store/inbox-store.js';
import type { InboxStore } from './inbox/store/inbox-store.js';
import { PaymentInbox } from './inbox/payment-inbox.js';
import { InboxMaintenance } from './inbox/operate/inbox-maintenance.js';
import { ProcessReports } from './inbox/operate/process-reports.js';
import { RedriveJobs } from './inbox/operate/redrive-jobs.js';
import { InboxWorker } from './inbox/work/inbox-worker.js';
import { WORKER_OPTIONS } from './inbox/work/worker-options.js';
import type { ResolvedWorkerOptions } from './inbox/work/worker-options.js';
import { hasShutdownHooks, stopFirst } from './nest-internals.js';
import { PAYMENTS_RUNTIME } from './runtime/payments-runtime.js';
import type { ModuleRuntime } from './runtime/payments-runtime.js';
import { PaymentsSetup } from './setup/payments-setup.js';
import { Observers } from './telemetry/observers.js';

/**
 * The check of the shutdown hooks runs this many milliseconds after the start, because an application may call
 * `enableShutdownHooks()` after `listen()`.
 */
const SHUTDOWN_CHECK_MS = 5000;

/**
 * Starts the parts of the module after all other modules have started, in the order in which events pass through these
 * parts. Stops the parts before any other module stops.
 */
@Injectable()
export class PaymentsLifecycle
  implements OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown
{
  readonly #logger = new ModuleLogger('PaymentInbox');
  #cancelShutdownCheck: () => void = () => {};

  constructor(
    private readonly explorer: HandlerExplorer,
    private readonly registry: HandlerRegistry,
    private readonly unhandled: UnhandledRejections,
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(WORKER_OPTIONS) private readonly options: ResolvedWorkerOptions,
    private readonly poller: Poller,
    private readonly relay: RelayHandler,
    private readonly consumer: EventConsumer,
    private readonly worker: InboxWorker,
    private readonly maintenance: InboxMaintenance,
    private readonly reports: ProcessReports,
    private readonly redrives: RedriveJobs,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: ModuleRuntime,
    private readonly observers: Observers,
    private readonly inbox: PaymentInbox,
    private readonly expectations: PaymentExpectations,
    private readonly setup: PaymentsSetup,
    private readonly engine: EngineMonitor,
    modules: ModulesContainer,
  ) {
    stopFirst(modules, PaymentsLifecycle);
  }

  async onApplicationBootstrap(): Promise<void> {
    this.explorer.explore();
    this.poller.register();
    await this.relay.open();
    await this.consumer.open();
    this.explorer.logHandlers();
    await prepareDataClasses(this.registry.all());
    await this.store.open();
    this.unhandled.open();
    // With the memory inbox, the worker runs in every process, because the response to a webhook request is sent after
    // its handlers have run.
    const background = this.options.background || !this.store.capabilities.durable;
    this.worker.start(background);
    if (background) this.maintenance.start();
    this.reports.start();
    this.consumer.start();
    if (this.store.capabilities.durable) this.#checkShutdownHooks();
    this.observers.attach({
      handlers: () => this.inbox.handlers(),
      stats: () => this.inbox.stats(),
      expectations: () => this.expectations.counts(),
      engine: () => this.engine.state(),
    });
    this.setup.logAtBoot();
  }

  /**
   * Runs as the first hook of a closing application. After this hook, a durable inbox only stores events, and the
   * memory inbox rejects them.
   */
  async onModuleDestroy(): Promise<void> {
    this.#cancelShutdownCheck();
    this.observers.detach();
    await this.consumer.stop();
    await Promise.all([
      this.worker.drain(),
      this.maintenance.stop(),
      this.reports.stop(),
      this.redrives.close(),
    ]);
  }

  /** Runs after the server has closed. Webhook requests are received until then. */
  async onApplicationShutdown(): Promise<void> {
    try {
      await Promise.all([this.relay.close(), this.store.close()]);
    } finally {
      this.unhandled.close();
      this.runtime.close();
    }
  }

  /**
   * Logs a warning if SIGTERM would end the process at once, in the middle of running handlers. A durable inbox does
   * not lose these deliveries, but their handlers run again, from the start, when `worker.leaseMs` has passed.
   */
  #checkShutdownHooks(): void {
    this.#cancelShutdownCheck = this.runtime.schedule(SHUTDOWN_CHECK_MS, () => {
      if (hasShutdownHooks()) return;
      this.#logger.warn(
        'The application has no shutdown hooks, so SIGTERM ends the process in the middle of running payment ' +
          'handlers. These handlers run again when "worker.leaseMs" has passed. Call app.enableShutdownHooks() in main.ts.',
      );
    });
  }
}
