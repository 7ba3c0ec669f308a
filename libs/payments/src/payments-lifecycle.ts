import { Inject, Injectable } from '@nestjs/common';
import type {
  OnApplicationBootstrap,
  OnApplicationShutdown,
  OnModuleDestroy,
} from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { prepareDataClasses } from './events/event-data.js';
import { HandlerExplorer } from './events/handler-explorer.js';
import { HandlerRegistry } from './events/handler-registry.js';
import { UnhandledRejections } from './events/unhandled-rejections.js';
import { INBOX_STORE } from './inbox/store/inbox-store.js';
import type { InboxStore } from './inbox/store/inbox-store.js';
import { InboxMaintenance } from './inbox/recover/inbox-maintenance.js';
import { InboxWorker } from './inbox/work/inbox-worker.js';
import { WORKER_OPTIONS } from './inbox/inbox-options.js';
import type { ResolvedWorkerOptions } from './inbox/inbox-options.js';
import { stopFirst } from './nest-internals.js';
import { ShutdownCheck } from './shutdown-check.js';

/**
 * Starts the parts of the module after everything else in the application has started, in the order in which
 * deliveries need them. Stops them before anything else in the application stops.
 */
@Injectable()
export class PaymentsLifecycle
  implements OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown
{
  constructor(
    private readonly explorer: HandlerExplorer,
    private readonly registry: HandlerRegistry,
    private readonly unhandled: UnhandledRejections,
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(WORKER_OPTIONS) private readonly options: ResolvedWorkerOptions,
    private readonly worker: InboxWorker,
    private readonly maintenance: InboxMaintenance,
    private readonly shutdown: ShutdownCheck,
    modules: ModulesContainer,
  ) {
    stopFirst(modules, PaymentsLifecycle);
  }

  async onApplicationBootstrap(): Promise<void> {
    this.explorer.explore();
    await prepareDataClasses(this.registry.all());
    await this.store.open();
    this.unhandled.open();
    // An inbox in memory runs the handlers before it answers, in any process.
    const background = this.options.background || !this.store.capabilities.durable;
    this.worker.start(background);
    if (background) this.maintenance.start();
    this.shutdown.start();
  }

  /** The first hook of a closing application. From here on, deliveries are rejected, or only stored. */
  async onModuleDestroy(): Promise<void> {
    this.shutdown.stop();
    await Promise.all([this.worker.drain(), this.maintenance.stop()]);
  }

  /** Runs after the server has closed. Until then, deliveries are still received. */
  async onApplicationShutdown(): Promise<void> {
    await this.store.close();
    this.unhandled.close();
  }
}
