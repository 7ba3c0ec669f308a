import type { Logger } from '@nestjs/common';
import type { PaymentsRuntime } from '../payments.runtime.js';

/** Between two lines about one thing, so that strangers cannot fill the log. */
const QUIET_MS = 60_000;

/** Tells of what happens again and again: one line a thing and minute, with how many there were. */
export class QuietLog {
  readonly #told = new Map<string, { since: number; untold: number }>();

  constructor(
    private readonly logger: Logger,
    private readonly runtime: PaymentsRuntime,
  ) {}

  /** `thing` is one of a few names, never a stranger's text. */
  warn(thing: string, message: string): void {
    const now = this.runtime.monotonic();
    const told = this.#told.get(thing);
    if (told !== undefined && now - told.since < QUIET_MS) {
      told.untold += 1;
      return;
    }
    this.#told.set(thing, { since: now, untold: 0 });
    const more = told?.untold ? ` (and ${told.untold} more since the line before this one)` : '';
    this.logger.warn(`${message}${more}`);
  }
}
