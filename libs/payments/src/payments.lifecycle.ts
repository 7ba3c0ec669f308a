import { Inject, Injectable } from '@nestjs/common';
import type {
  OnApplicationBootstrap,
  OnApplicationShutdown,
  OnModuleDestroy,
} from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { HandlerExplorer } from './events/handler.explorer.js';
import { StrayRejections } from './events/stray-rejections.js';
import type { InboxStore } from './inbox/store.contract.js';
import { INBOX_STORE } from './inbox/inbox.tokens.js';
import { InboxPruner } from './inbox/inbox.pruner.js';
import { InboxWorker } from './inbox/inbox.worker.js';
import { OrphanReport } from './inbox/orphan.report.js';
import { ShutdownCheck } from './shutdown.check.js';

/**
 * Starts the stations in the order deliveries need them, and stops them in the other: after everything else of
 * the application has started, and before anything else of it stops.
 */
@Injectable()
export class PaymentsLifecycle
  implements OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown
{
  constructor(
    @Inject(HandlerExplorer) private readonly explorer: HandlerExplorer,
    @Inject(StrayRejections) private readonly strays: StrayRejections,
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(InboxWorker) private readonly worker: InboxWorker,
    @Inject(InboxPruner) private readonly pruner: InboxPruner,
    @Inject(OrphanReport) private readonly orphans: OrphanReport,
    @Inject(ShutdownCheck) private readonly shutdown: ShutdownCheck,
    @Inject(ModulesContainer) modules: ModulesContainer,
  ) {
    // Nest starts modules by their distance from the root, the farthest first, and stops them the other way
    // round; a global module counts as the farthest. So the database a running handler uses could be closed
    // before this module was asked to drain. Nearer than the root itself, it is first to stop.
    for (const module of modules.values()) {
      if (module.hasProvider(PaymentsLifecycle)) module.distance = -1;
    }
  }

  async onApplicationBootstrap(): Promise<void> {
    this.explorer.explore();
    await this.store.open();
    this.strays.open();
    this.worker.start();
    this.pruner.start();
    this.shutdown.start();
    // A memory inbox is empty now. A boot waits for nothing that is a hint.
    if (this.store.capabilities.durable) void this.orphans.report();
  }

  /** The first hook of a closing application. Deliveries that come now are refused, or stored. */
  async onModuleDestroy(): Promise<void> {
    this.shutdown.stop();
    await Promise.all([this.worker.drain(), this.pruner.stop()]);
  }

  /** After the server has closed: deliveries were still received until then. */
  async onApplicationShutdown(): Promise<void> {
    await this.store.close();
    this.strays.close();
  }
}
