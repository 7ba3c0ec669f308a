import type { RandomStream } from '../random/random.source.js';
import type { FaultDelay, FaultPlan, FaultTrigger } from './fault.plan.js';

/** One company's plan, and how often each of its faults is still to strike for certain. */
export class FaultDice {
  readonly #left = new Map<FaultTrigger, number>();

  constructor(readonly plan: FaultPlan) {}

  /** Whether a fault strikes this time. Counts down its `next`. */
  strikes(trigger: FaultTrigger | undefined, dice: RandomStream): boolean {
    if (!trigger) return false;
    const left = this.#left.get(trigger) ?? trigger.next ?? 0;
    if (left > 0) {
      this.#left.set(trigger, left - 1);
      return true;
    }
    if (trigger.probability === undefined) return trigger.next === undefined;
    return dice.float() < trigger.probability;
  }

  /** The plan as it stands now: each `next` is what is left of it. */
  remaining(): FaultPlan {
    const stations = Object.entries(this.plan).map(([station, faults]) => [
      station,
      Object.fromEntries(
        Object.entries(faults as object).map(([name, fault]: [string, FaultTrigger]) => [
          name,
          this.#left.has(fault) ? { ...fault, next: this.#left.get(fault) } : fault,
        ]),
      ),
    ]);
    return structuredClone(Object.fromEntries(stations)) as FaultPlan;
  }
}

/** The milliseconds of a delay: the value, or one drawn from the range. */
export function drawDelay(ms: FaultDelay, dice: RandomStream): number {
  return typeof ms === 'number' ? ms : dice.int(ms[0], ms[1]);
}

/** A copy of `items` in another order; the same where there are fewer than two. */
export function reorder<T>(items: readonly T[], dice: RandomStream): T[] {
  const shuffled = [...items];
  for (let index = shuffled.length - 1; index > 0; index--) {
    const other = dice.int(0, index);
    [shuffled[index], shuffled[other]] = [shuffled[other] as T, shuffled[index] as T];
  }
  // A shuffle may come out as it went in; a reordering must not.
  if (shuffled.every((item, index) => item === items[index]))
    shuffled.push(...shuffled.splice(0, 1));
  return shuffled;
}
