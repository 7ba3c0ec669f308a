import { Inject, Injectable, Logger } from '@nestjs/common';
import { INBOX_STORE } from './inbox/store/inbox-store.js';
import type { InboxStore } from './inbox/store/inbox-store.js';
import { hasShutdownHooks } from './nest-internals.js';
import { PAYMENTS_RUNTIME } from './runtime/payments-runtime.js';
import type { PaymentsRuntime } from './runtime/payments-runtime.js';

/** Time that an application has to call `enableShutdownHooks()`, which it may do after it listens. */
const AFTER_MS = 5000;

/**
 * Logs a warning if SIGTERM would end the process at once. A durable inbox loses nothing by that, but running handlers
 * are cut off: their deliveries run again, from the start, when `worker.leaseMs` has passed.
 */
@Injectable()
export class ShutdownCheck {
  readonly #logger = new Logger('PaymentInbox');
  #cancel: () => void = () => {};

  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
  ) {}

  start(): void {
    if (!this.store.capabilities.durable) return;
    this.#cancel = this.runtime.schedule(AFTER_MS, () => {
      if (hasShutdownHooks()) return;
      this.#logger.warn(
        'The application has no shutdown hooks, so SIGTERM cuts off payment handlers that are running: their deliveries run ' +
          'again when "worker.leaseMs" has passed. Call app.enableShutdownHooks() in main.ts.',
      );
    });
  }

  stop(): void {
    this.#cancel();
  }
}
