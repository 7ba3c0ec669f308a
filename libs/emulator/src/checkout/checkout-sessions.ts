import { EmulatorError } from '../emulator-errors.js';
import type { EmulatorClock } from '../runtime/emulator-clock.js';
import type { RandomSource } from '../runtime/random-source.js';
import type { Transaction } from '../transactions/transaction.js';
import { isOpen } from '../transactions/transaction.js';
import { normalisePhoneNumber } from '../transactions/transaction-validators.js';
import type { OneTimeCode } from './one-time-code.js';
import { checkCode, issueCode } from './one-time-code.js';

/**
 * The current step of the checkout of an open invoice. `problem` is the error message about the customer's last input.
 */
export type CheckoutStep =
  | { readonly name: 'phone'; readonly typed: string; readonly problem: string | undefined }
  | {
      readonly name: 'code';
      readonly phoneNumber: string;
      readonly code: OneTimeCode;
      readonly problem: string | undefined;
    }
  | { readonly name: 'confirm'; readonly phoneNumber: string }
  | { readonly name: 'cancelled' };

export type CheckoutAction =
  | { readonly type: 'phone'; readonly phoneNumber: string }
  | { readonly type: 'code'; readonly code: string }
  | { readonly type: 'resend' | 'pay' | 'decline' | 'cancel' | 'restart' };

export interface CheckoutDependencies {
  /** @throws EmulatorError `not_found` */
  readonly find: (transactionId: string) => Transaction;
  readonly complete: (transactionId: string) => unknown;
  readonly fail: (transactionId: string) => unknown;
  readonly random: RandomSource;
  readonly clock: EmulatorClock;
  /** Maximum number of unfinished checkouts. If there are more, the oldest checkout restarts at its first step. */
  readonly limit: number;
}

/**
 * The hosted checkout. The customer enters a phone number and a one-time code, and then pays or declines.
 *
 * The emulator keeps the state of each checkout in memory, not in the browser. An action that the current step does not
 * allow, such as a form sent twice or from the browser's history, changes nothing. Therefore an invoice is paid at most
 * once.
 */
export class CheckoutSessions {
  readonly #steps = new Map<string, CheckoutStep>();

  constructor(private readonly dependencies: CheckoutDependencies) {}

  /** @throws EmulatorError `not_found`, also if the transaction is not a checkout invoice */
  find(transactionId: string): Transaction {
    const transaction = this.dependencies.find(transactionId);
    if (transaction.kind === 'checkout-invoice') return transaction;
    throw new EmulatorError('not_found', `transaction ${transactionId} is not a checkout invoice`);
  }

  step(transactionId: string): CheckoutStep {
    return this.#steps.get(transactionId) ?? { name: 'phone', typed: '', problem: undefined };
  }

  /** @throws EmulatorError `not_found` */
  apply(transactionId: string, action: CheckoutAction): void {
    const transaction = this.find(transactionId);
    if (!isOpen(transaction)) return;
    const step = this.step(transactionId);
    const next = this.#next(transactionId, step, action);
    if (next === 'closed') this.#steps.delete(transactionId);
    else if (next) this.#store(transactionId, next);
  }

  clear(): void {
    this.#steps.clear();
  }

  /** Returns the step after an action, or undefined if the current step does not allow the action. */
  #next(
    id: string,
    step: CheckoutStep,
    action: CheckoutAction,
  ): CheckoutStep | 'closed' | undefined {
    const { type } = action;
    if (type === 'cancel') return { name: 'cancelled' };
    if (type === 'restart') return { name: 'phone', typed: '', problem: undefined };
    if (step.name === 'phone' && type === 'phone') return this.#enterPhone(action.phoneNumber);
    if (step.name === 'code' && type === 'resend') return this.#sendCode(step.phoneNumber);
    if (step.name === 'code' && type === 'code') return this.#enterCode(step, action.code);
    if (step.name !== 'confirm' || (type !== 'pay' && type !== 'decline')) return undefined;
    if (type === 'pay') this.dependencies.complete(id);
    else this.dependencies.fail(id);
    return 'closed';
  }

  #enterPhone(typed: string): CheckoutStep {
    const phoneNumber = normalisePhoneNumber(typed);
    if (phoneNumber !== undefined) return this.#sendCode(phoneNumber);
    const problem =
      typed.trim() === ''
        ? 'Enter the phone number that receives the code.'
        : 'This is not a phone number: enter 7 to 15 digits, such as +1 555 010 0123.';
    return { name: 'phone', typed: typed.slice(0, 40), problem };
  }

  #sendCode(phoneNumber: string): CheckoutStep {
    const { random, clock } = this.dependencies;
    const code = issueCode(random, clock.now());
    return { name: 'code', phoneNumber, code, problem: undefined };
  }

  #enterCode(step: CheckoutStep & { name: 'code' }, typed: string): CheckoutStep {
    const checked = checkCode(step.code, typed, this.dependencies.clock.now());
    return checked === 'correct'
      ? { name: 'confirm', phoneNumber: step.phoneNumber }
      : { ...step, ...checked };
  }

  #store(transactionId: string, step: CheckoutStep): void {
    this.#steps.delete(transactionId);
    this.#steps.set(transactionId, step);
    for (const id of this.#steps.keys()) {
      if (this.#steps.size <= this.dependencies.limit) break;
      this.#steps.delete(id);
    }
  }
}
