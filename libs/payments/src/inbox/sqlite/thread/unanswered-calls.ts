import { PaymentsError } from '../../../errors/payments-error.js';
import { unavailable } from '../sqlite-failure.js';
import { bytesOf } from './messages.js';
import type { Call } from './messages.js';

const MAX_CALLS = 20_000;
const MAX_BYTES = 256 * 1024 ** 2;

/**
 * Calls that the thread has not answered, those included that have timed out: the thread still holds them, with their
 * bodies. Their number and size are bounded, so that they do not fill the memory while the disk hangs.
 */
export class UnansweredCalls {
  readonly #bytes = new Map<number, number>();
  #total = 0;

  /** The error of a call that is one too many; `null` if there is room. */
  refusal(name: Call['name']): PaymentsError | null {
    if (this.#bytes.size < MAX_CALLS && this.#total < MAX_BYTES) return null;
    const error = unavailable(
      `has ${this.#bytes.size} operations waiting for the disk, and accepts no more for now.`,
    );
    // Of a receive, it is certain that nothing was stored.
    return name === 'receive' ? new PaymentsError('inbox_full', error.message) : error;
  }

  add(call: Pick<Call, 'number' | 'name' | 'request'>): void {
    const bytes = bytesOf(call);
    this.#bytes.set(call.number, bytes);
    this.#total += bytes;
  }

  remove(number: number): void {
    this.#total -= this.#bytes.get(number) ?? 0;
    this.#bytes.delete(number);
  }

  /** The thread has ended. */
  clear(): void {
    this.#bytes.clear();
    this.#total = 0;
  }
}
