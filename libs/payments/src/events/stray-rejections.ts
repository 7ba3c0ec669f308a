import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable, Logger } from '@nestjs/common';
import { describeThrown } from './thrown.js';

/** The run a stray rejection came from, and the application it belongs to. */
interface Run {
  readonly handler: string;
  readonly company: string;
  readonly owner: StrayRejections;
}

// Shared by every application in the process, so that each can tell the others' runs from no run at all.
const runs = new AsyncLocalStorage<Run>();
const OURS = Symbol('nestjs-payments:unhandled-rejection');

/**
 * Catches promises that a handler started, did not await and that failed: by Node's default one of them ends
 * the process, and every other payment under way with it. It is logged with the handler's name instead.
 *
 * A rejection from anywhere else keeps its consequence: other listeners see it as before, and where there is
 * none it is thrown, as Node does by default.
 */
@Injectable()
export class StrayRejections {
  readonly #logger = new Logger('PaymentHandlers');
  readonly #listener = Object.assign((reason: unknown) => this.#onRejection(reason), {
    [OURS]: true,
  });

  /** Starts listening, until {@link close}. */
  open(): void {
    process.on('unhandledRejection', this.#listener);
  }

  close(): void {
    process.off('unhandledRejection', this.#listener);
  }

  /** Runs the handler so that what it leaves behind is known as its own. */
  watch<T>(run: { handler: string; company: string }, work: () => Promise<T>): Promise<T> {
    return runs.run({ handler: run.handler, company: run.company, owner: this }, work);
  }

  #onRejection(reason: unknown): void {
    const run = runs.getStore();
    if (run?.owner === this) {
      this.#logger.error(
        `Handler ${run.handler} (company ${run.company}) left a promise behind that failed: ` +
          `${describeThrown(reason)}. Its delivery does not know of it: await the promise.`,
      );
    } else if (run === undefined) {
      const listeners = process.listeners('unhandledRejection');
      const alone = listeners.every((listener) => OURS in listener);
      // Of several applications the last one speaks, once.
      if (alone && listeners.at(-1) === this.#listener) throw reason;
    }
  }
}
