import { Inject, Injectable, Logger } from '@nestjs/common';
import { CONSOLE_OPTIONS } from './console-options.js';
import type { ResolvedConsoleOptions } from './console-options.js';
import { printable } from './operator-name.js';

/** The page requests an event every 2 seconds while it is open. One line covers this time, in milliseconds. */
const INTERVAL_MS = 60_000;
/** How many views are remembered. Each view above this number is logged again. */
const MAX_REMEMBERED = 1_000;

/**
 * Logs who viewed the payload of which event: one line per operator and event per minute. The bound loses no line: a view
 * that is not remembered is logged more often than necessary. No line contains a payload.
 */
@Injectable()
export class PayloadAudit {
  readonly #logger = new Logger('PaymentsConsole');
  /** When each view was logged, the oldest first. */
  readonly #logged = new Map<string, number>();

  constructor(@Inject(CONSOLE_OPTIONS) private readonly options: ResolvedConsoleOptions) {}

  /** Call it before the payload is sent. `who` is `null` if the operator is not known. */
  viewed(who: string | null, { company, id }: { company: string; id: string }): void {
    const now = this.options.runtime.monotonic();
    for (const [view, at] of this.#logged) {
      if (now - at < INTERVAL_MS) break;
      this.#logged.delete(view);
    }
    const [operator, event, of] = [who ?? 'unknown', id, company].map((it) => JSON.stringify(it));
    const view = `${operator} ${event} ${of}`;
    if (this.#logged.has(view)) return;
    if (this.#logged.size < MAX_REMEMBERED) this.#logged.set(view, now);
    this.#logger.log(printable(`${operator}: viewed event ${event} of company ${of}`));
  }
}
