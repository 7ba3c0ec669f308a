import type { RandomSource, RandomStream } from '../random/random.source.js';
import type { AnswerFault } from './answer.fault.js';
import { drawAnswerFault } from './answer.fault.js';
import type { AttemptFaults, EventFaults } from './delivery.fault.js';
import { drawAttemptFaults, drawEventFaults } from './delivery.fault.js';
import { FaultDice } from './fault.dice.js';
import type { FaultPlan } from './fault.plan.js';
import { validateFaultPlan } from './fault.validator.js';
import type { IssueFaults } from './issue.fault.js';
import { drawIssueFaults } from './issue.fault.js';

/**
 * The faults of every company. Dice are drawn for each event, attempt, answer and token under its
 * own number, so that what strikes one does not depend on what raced with it.
 */
export class FaultDirectory {
  readonly #dice = new Map<string, FaultDice>();
  readonly #numbers = new Map<string, number>();

  constructor(
    private readonly random: RandomSource,
    private readonly redeliver: readonly number[],
  ) {}

  /** Replaces a company's plan. @throws EmulatorInputError */
  set(companyId: string, plan: unknown): void {
    this.#dice.set(companyId, new FaultDice(validateFaultPlan(plan)));
  }

  /**
   * Sets one fault, or takes it away where `value` is undefined; what is left of the others stays.
   *
   * @throws EmulatorInputError
   */
  change(companyId: string, station: string, name: string, value: unknown): void {
    const plan = this.get(companyId) as Readonly<Record<string, object | undefined>>;
    const faults = Object.entries(plan[station] ?? {}).filter(([each]) => each !== name);
    const rest = Object.entries(plan).filter(([each]) => each !== station);
    // Checked under its own name even where it is to be taken away: a misspelt one does nothing.
    validateFaultPlan(fromPath(station, name, value));
    if (value !== undefined) faults.push([name, value]);
    this.set(
      companyId,
      Object.fromEntries([
        ...rest,
        ...(faults.length > 0 ? [[station, Object.fromEntries(faults)] as const] : []),
      ]),
    );
  }

  /** The plan as it stands, each `next` being what is left of it. */
  get(companyId: string): FaultPlan {
    return this.#of(companyId).remaining();
  }

  onEvent(companyId: string): EventFaults {
    return drawEventFaults(this.#of(companyId), this.#numbered(companyId, 'event'), this.redeliver);
  }

  /** `copy` is 0 for the first delivery of the event; `attempt` counts from 1. */
  onAttempt(companyId: string, event: number, copy: number, attempt: number): AttemptFaults {
    const dice = this.random.stream('attempt', companyId, event, copy, attempt);
    return drawAttemptFaults(this.#of(companyId), dice);
  }

  onAnswer(companyId: string, station: 'token' | 'api'): AnswerFault {
    const dice = this.#of(companyId);
    return drawAnswerFault(dice, dice.plan[station], this.#next(companyId, station));
  }

  onIssue(companyId: string): IssueFaults {
    return drawIssueFaults(this.#of(companyId), this.#next(companyId, 'issue'));
  }

  /** Dice that belong to the next reordering of a company. */
  onReorder(companyId: string): RandomStream {
    return this.#next(companyId, 'reorder');
  }

  clear(): void {
    this.#dice.clear();
    this.#numbers.clear();
  }

  #of(companyId: string): FaultDice {
    return this.#dice.get(companyId) ?? new FaultDice({});
  }

  #next(companyId: string, what: string): RandomStream {
    return this.#numbered(companyId, what).dice;
  }

  #numbered(companyId: string, what: string): { number: number; dice: RandomStream } {
    const key = `${what}/${companyId}`;
    const number = this.#numbers.get(key) ?? 0;
    this.#numbers.set(key, number + 1);
    return { number, dice: this.random.stream('fault', what, companyId, number) };
  }
}

/** A plan of one fault. `defineProperty`'s way, so that `__proto__` is a name like any other. */
function fromPath(station: string, name: string, value: unknown): unknown {
  return Object.fromEntries([[station, Object.fromEntries([[name, value]])]]);
}
