import { Inject, Injectable } from '@nestjs/common';
import type {
  OnApplicationBootstrap,
  OnApplicationShutdown,
  OnModuleDestroy,
} from '@nestjs/common';
import { HandlerExplorer } from './events/handler.explorer.js';
import { StrayRejections } from './events/stray-rejections.js';
import type { InboxStore } from './inbox/inbox.store.js';
import { INBOX_STORE } from './inbox/inbox.tokens.js';
import { InboxWorker } from './inbox/inbox.worker.js';

/** Starts the stations in the order deliveries need them, and stops them in the other. */
@Injectable()
export class PaymentsLifecycle
  implements OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown
{
  constructor(
    @Inject(HandlerExplorer) private readonly explorer: HandlerExplorer,
    @Inject(StrayRejections) private readonly strays: StrayRejections,
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(InboxWorker) private readonly worker: InboxWorker,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    this.explorer.explore();
    await this.store.open();
    this.strays.open();
    this.worker.start();
  }

  /** The first hook of a closing application, while what handlers use is still there. */
  async onModuleDestroy(): Promise<void> {
    await this.worker.drain();
  }

  /** After the server has closed: deliveries were still received until then. */
  async onApplicationShutdown(): Promise<void> {
    await this.store.close();
    this.strays.close();
  }
}
