import { Inject, Injectable, Logger } from '@nestjs/common';
import { ConsoleInbox } from './console-inbox.js';
import type { EventName } from './console-queries.js';
import { seenOnly } from './operator-name.js';

/** The page reads an event every 2 seconds while it is open: one line covers this time, in milliseconds. */
const COVERS_MS = 60_000;
/** How many views are remembered. While there are more within the time, each further one is logged again. */
const REMEMBERED = 1_000;

/**
 * Logs who viewed the payload of which event: one line per operator and event per minute. No line is lost to a bound:
 * what is not remembered is logged once more than necessary. No payload is in it.
 */
@Injectable()
export class PayloadAudit {
  readonly #logger = new Logger('PaymentsConsole');
  /** Times of the lines, the oldest first. */
  readonly #logged = new Map<string, number>();

  constructor(@Inject(ConsoleInbox) private readonly inbox: ConsoleInbox) {}

  /** Call it before the payload is sent. `who` is `null` if the operator is not known. */
  viewed(who: string | null, { company, id }: EventName): void {
    const now = this.inbox.runtime.monotonic();
    for (const [view, at] of this.#logged) {
      if (now - at < COVERS_MS) break;
      this.#logged.delete(view);
    }
    const [operator, event, of] = [who ?? 'unknown', id, company].map((it) => JSON.stringify(it));
    const view = `${operator} ${event} ${of}`;
    if (this.#logged.has(view)) return;
    if (this.#logged.size < REMEMBERED) this.#logged.set(view, now);
    this.#logger.log(seenOnly(`${operator}: viewed event ${event} of company ${of}`));
  }
}
