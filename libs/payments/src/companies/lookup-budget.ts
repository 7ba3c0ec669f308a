import type { ThrottledLog } from '../errors/throttled-log.js';
import { PaymentsError } from '../errors/payments-error.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { RateLimit } from '../runtime/rate-limit.js';

/** Ids that are remembered: about 10 MB. */
const MAX_VERIFIED = 100_000;

/**
 * Limits the lookups that anybody can cause by sending deliveries to invented ids: at most `perSecond` per second,
 * and as many at the same time. An id that a valid signature was seen for is exempt; the ids used least recently
 * lose this first.
 */
export class LookupBudget {
  readonly #rate: RateLimit;
  readonly #verified = new Set<string>();
  #underWay = 0;

  constructor(
    private readonly perSecond: number,
    runtime: Pick<PaymentsRuntime, 'monotonic'>,
    private readonly log: ThrottledLog,
  ) {
    this.#rate = new RateLimit(perSecond, runtime);
  }

  /**
   * Starts a lookup for a delivery that is not verified yet.
   *
   * @throws PaymentsError `directory_unavailable` if the budget is spent.
   */
  spend<T>(id: string, lookUp: () => Promise<T>): Promise<T> {
    if (this.#verified.has(id)) return lookUp();
    if (this.#underWay >= this.perSecond || !this.#rate.take()) {
      this.log.warn('budget', () => tooMany(this.perSecond));
      throw new PaymentsError(
        'directory_unavailable',
        'Too many companies are being looked up. Send the delivery again.',
      );
    }
    this.#underWay += 1;
    const end = () => void (this.#underWay -= 1);
    const answer = lookUp();
    answer.then(end, end);
    return answer;
  }

  /** Exempts an id: a delivery for it had a valid signature. */
  exempt(id: string): void {
    this.#verified.delete(id);
    this.#verified.add(id);
    const [oldest] = this.#verified;
    if (this.#verified.size > MAX_VERIFIED) this.#verified.delete(oldest!);
  }

  /** Ends the exemption of an id: there is no such company any more. */
  revoke(id: string): void {
    this.#verified.delete(id);
  }
}

function tooMany(perSecond: number): string {
  return (
    `Deliveries without a verified signature need more than ${perSecond} company lookups per second. Those above the ` +
    'limit are answered 503 (directory_unavailable). If strangers send them, reject their requests in ' +
    '"webhook.before"; if they are real companies, raise "webhook.maxLookupsPerSecond".'
  );
}
