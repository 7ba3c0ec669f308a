import type { RandomSource, RandomStream } from '../runtime/random-source.js';
import { CompanyFaults } from './company-faults.js';
import type { DrawnAttemptFaults, DrawnEventFaults } from './delivery-faults.js';
import { drawAttemptFaults, drawEventFaults } from './delivery-faults.js';
import type { ApiFaults, FaultPlan } from './fault-plan.js';
import { validateFaultPlan } from './fault-plan-validator.js';
import type { DrawnResponseFaults } from './response-faults.js';
import { drawResponseFaults } from './response-faults.js';

export interface DrawnLookupFaults {
  /** Whether the response hides the transaction. */
  readonly notFound: boolean;
  /**
   * The fault that makes the response return another status. Undefined if the response returns the transaction's own
   * status. If the fault has no `status`, the option `failedStatus` applies.
   */
  readonly otherStatus: NonNullable<ApiFaults['otherStatus']> | undefined;
}

export interface DrawnTokenFaults {
  /** Lifetime in seconds. Undefined if the configured lifetime applies. */
  readonly lifetime: number | undefined;
  /** If this field is present, its value replaces `expires_in`. The value undefined omits `expires_in`. */
  readonly expiresIn?: unknown;
  /** Whether to return the previous token again. */
  readonly sameToken: boolean;
}

/**
 * The fault plans of all companies. Each event, attempt, response and token has a number, and a random stream whose
 * name contains this number. Therefore the faults of an event or request do not depend on concurrent events and
 * requests.
 */
export class FaultStore {
  readonly #companies = new Map<string, CompanyFaults>();
  readonly #counters = new Map<string, number>();

  constructor(
    private readonly random: RandomSource,
    private readonly redeliver: readonly number[],
  ) {}

  /** Replaces a company's plan. @throws EmulatorInputError */
  set(companyId: string, plan: unknown): void {
    this.#companies.set(companyId, new CompanyFaults(validateFaultPlan(plan)));
  }

  /** Sets one fault, or removes the fault if `value` is undefined. The other faults keep their remaining counts. */
  change(companyId: string, target: string, name: string, value: unknown): void {
    const plan = this.get(companyId) as Readonly<Record<string, object | undefined>>;
    const faults = Object.entries(plan[target] ?? {}).filter(([each]) => each !== name);
    const rest = Object.entries(plan).filter(([each]) => each !== target);
    // Removing a fault validates its name too, so that a misspelt name is an error.
    validateFaultPlan(planOfOne(target, name, value));
    if (value !== undefined) faults.push([name, value]);
    this.set(
      companyId,
      Object.fromEntries([
        ...rest,
        ...(faults.length > 0 ? [[target, Object.fromEntries(faults)] as const] : []),
      ]),
    );
  }

  /** Returns the current plan, in which the field `next` of a fault contains its remaining count. */
  get(companyId: string): FaultPlan {
    return this.#of(companyId).remaining();
  }

  forEvent(companyId: string): DrawnEventFaults {
    const next = this.#next(companyId, 'event');
    return drawEventFaults(this.#of(companyId), next, this.redeliver);
  }

  deliveriesAreOff(companyId: string): boolean {
    return this.#of(companyId).plan.delivery?.off === true;
  }

  /**
   * Draws the faults of an attempt. `copy` is 0 for the event's first delivery. `attempt` is 1 for the first attempt.
   */
  forAttempt(companyId: string, event: number, copy: number, attempt: number): DrawnAttemptFaults {
    const random = this.random.stream('attempt', companyId, event, copy, attempt);
    return drawAttemptFaults(this.#of(companyId), random);
  }

  forResponse(companyId: string, target: 'token' | 'api'): DrawnResponseFaults {
    const faults = this.#of(companyId);
    return drawResponseFaults(faults, faults.plan[target], this.#next(companyId, target).random);
  }

  /**
   * Draws the faults that apply to one transaction in a response. A fault that cannot apply to the transaction keeps
   * its remaining count.
   *
   * @param age milliseconds since the creation of the transaction, by the emulator's clock
   */
  forLookup(companyId: string, age: number, complete: boolean): DrawnLookupFaults {
    const { random } = this.#next(companyId, 'lookup');
    const company = this.#of(companyId);
    const { notFound, otherStatus } = company.plan.api ?? {};
    if (age < (notFound?.forMs ?? Infinity) && company.applies(notFound, random)) {
      return { notFound: true, otherStatus: undefined };
    }
    const contradicted = complete && company.applies(otherStatus, random);
    return { notFound: false, otherStatus: contradicted ? otherStatus : undefined };
  }

  forToken(companyId: string): DrawnTokenFaults {
    const { random } = this.#next(companyId, 'issue');
    const company = this.#of(companyId);
    const { lifetime, expiresIn, sameToken } = company.plan.token ?? {};
    return {
      lifetime: company.applies(lifetime, random) ? lifetime?.seconds : undefined,
      ...(company.applies(expiresIn, random) ? { expiresIn: expiresIn?.value } : {}),
      sameToken: company.applies(sameToken, random),
    };
  }

  reorderStream(companyId: string): RandomStream {
    return this.#next(companyId, 'reorder').random;
  }

  clear(): void {
    this.#companies.clear();
    this.#counters.clear();
  }

  #of(companyId: string): CompanyFaults {
    return this.#companies.get(companyId) ?? new CompanyFaults({});
  }

  #next(companyId: string, purpose: string): { number: number; random: RandomStream } {
    const key = `${purpose}/${companyId}`;
    const number = this.#counters.get(key) ?? 0;
    this.#counters.set(key, number + 1);
    return { number, random: this.random.stream('fault', purpose, companyId, number) };
  }
}

/** Creates a plan of one fault. Uses `fromEntries`, because `fromEntries` treats `__proto__` as an ordinary name. */
function planOfOne(target: string, name: string, value: unknown): unknown {
  return Object.fromEntries([[target, Object.fromEntries([[name, value]])]]);
}
