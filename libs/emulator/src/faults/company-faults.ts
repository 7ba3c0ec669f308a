import type { RandomStream } from '../runtime/random-source.js';
import type { FaultDelay, FaultPlan, FaultTrigger } from './fault-plan.js';

/** The fault plan of one company, with the remaining count of each fault that has the field `next`. */
export class CompanyFaults {
  readonly #remaining = new Map<FaultTrigger, number>();

  constructor(readonly plan: FaultPlan) {}

  /**
   * Returns whether a fault applies now. Reduces the remaining count of a fault that has the field `next`, until the
   * count is 0.
   */
  applies(trigger: FaultTrigger | undefined, random: RandomStream): boolean {
    if (!trigger) return false;
    const remaining = this.#remaining.get(trigger) ?? trigger.next ?? 0;
    if (remaining > 0) {
      this.#remaining.set(trigger, remaining - 1);
      return true;
    }
    if (trigger.probability === undefined) return trigger.next === undefined;
    return random.float() < trigger.probability;
  }

  /** Returns the current plan, in which the field `next` of a fault contains its remaining count. */
  remaining(): FaultPlan {
    const targets = Object.entries(this.plan).map(([target, faults]) => [
      target,
      Object.fromEntries(
        Object.entries(faults as object).map(([name, fault]: [string, FaultTrigger]) => [
          name,
          this.#remaining.has(fault) ? { ...fault, next: this.#remaining.get(fault) } : fault,
        ]),
      ),
    ]);
    return structuredClone(Object.fromEntries(targets)) as FaultPlan;
  }
}

export function drawDelay(ms: FaultDelay, random: RandomStream): number {
  return typeof ms === 'number' ? ms : random.int(ms[0], ms[1]);
}
