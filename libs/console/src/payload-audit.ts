import { Inject, Injectable, Logger } from '@nestjs/common';
import { CONSOLE_OPTIONS } from './console-options.js';
import type { ResolvedConsoleOptions } from './console-options.js';
import { printable } from './operator-name.js';

/** Time between two lines about the same operator and event, in milliseconds. An open page requests its event every 2 s. */
const INTERVAL_MS = 60_000;
/** Maximum number of remembered views. Views above this number are logged each time. */
const MAX_REMEMBERED = 1_000;

/**
 * Logs which operator viewed the payload of which event: at most one line per operator and event per minute. A view that
 * is not remembered is logged each time, so no view is missing. No line contains a payload.
 */
@Injectable()
export class PayloadAudit {
  readonly #logger = new Logger('PaymentsConsole');
  /** When each view was logged, the oldest first. */
  readonly #logged = new Map<string, number>();

  constructor(@Inject(CONSOLE_OPTIONS) private readonly options: ResolvedConsoleOptions) {}

  /** Logs a view. Call it before the payload is sent. `who` is `null` if the operator is not known. */
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
