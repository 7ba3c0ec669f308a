import type { Logger } from '@nestjs/common';
import type { ConsoleRuntime } from './console-options.js';

/** Time between two lines with the same subject, in milliseconds. */
const INTERVAL_MS = 60_000;

/** Logs at most one warning per subject and minute, with the number of suppressed warnings. Use few different subjects. */
export class ThrottledLog {
  readonly #lines = new Map<string, { readonly at: number; suppressed: number }>();

  constructor(
    private readonly logger: Pick<Logger, 'warn'>,
    private readonly runtime: Pick<ConsoleRuntime, 'monotonic'>,
  ) {}

  warn(subject: string, message: string): void {
    const now = this.runtime.monotonic();
    const last = this.#lines.get(subject);
    if (last !== undefined && now - last.at < INTERVAL_MS) {
      last.suppressed += 1;
      return;
    }
    this.#lines.set(subject, { at: now, suppressed: 0 });
    const more = last?.suppressed ? ` (${last.suppressed} more since the previous line)` : '';
    this.logger.warn(`${message}${more}`);
  }
}
