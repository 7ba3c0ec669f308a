import type { EmulatorClock } from '../clock/emulator.clock.js';
import { EmulatorError } from '../emulator.errors.js';
import type { RandomSource } from '../random/random.source.js';
import { normalisePhoneNumber } from '../transactions/phone.number.js';
import type { Transaction } from '../transactions/transaction.record.js';
import { isOpen } from '../transactions/transaction.record.js';
import type { OneTimeCode } from './one-time.code.js';
import { checkCode, issueCode } from './one-time.code.js';

/** Where the customer of an open invoice stands. A problem is what to tell about the last try. */
export type CheckoutStep =
  | { readonly at: 'phone'; readonly typed: string; readonly problem: string | undefined }
  | {
      readonly at: 'code';
      readonly phoneNumber: string;
      readonly code: OneTimeCode;
      readonly problem: string | undefined;
    }
  | { readonly at: 'confirm'; readonly phoneNumber: string }
  | { readonly at: 'cancelled' };

/** What the customer does. */
export type CheckoutMove =
  | { readonly do: 'phone'; readonly phoneNumber: string }
  | { readonly do: 'code'; readonly code: string }
  | { readonly do: 'resend' | 'pay' | 'decline' | 'cancel' | 'restart' };

/** What the desk needs of the emulator. */
export interface CheckoutDeskParts {
  /** @throws EmulatorError `not_found` */
  readonly find: (transactionId: string) => Transaction;
  readonly complete: (transactionId: string) => unknown;
  readonly fail: (transactionId: string) => unknown;
  readonly random: RandomSource;
  readonly clock: EmulatorClock;
  /** How many checkouts under way are remembered; the oldest starts over first. */
  readonly limit: number;
}

/**
 * The hosted checkout: phone number, one-time code, then pay or decline. The state is here, not in
 * the browser: a move that its step does not allow (a form sent twice, a page from the back button)
 * changes nothing, and so an invoice is paid once.
 */
export class CheckoutDesk {
  readonly #steps = new Map<string, CheckoutStep>();

  constructor(private readonly parts: CheckoutDeskParts) {}

  /** @throws EmulatorError `not_found`, also for what is no checkout invoice */
  find(transactionId: string): Transaction {
    const transaction = this.parts.find(transactionId);
    if (transaction.kind === 'checkout-invoice') return transaction;
    throw new EmulatorError('not_found', `transaction ${transactionId} is no checkout invoice`);
  }

  /** Where an open invoice stands. */
  step(transactionId: string): CheckoutStep {
    return this.#steps.get(transactionId) ?? { at: 'phone', typed: '', problem: undefined };
  }

  /** @throws EmulatorError `not_found` */
  move(transactionId: string, move: CheckoutMove): void {
    const transaction = this.find(transactionId);
    if (!isOpen(transaction)) return;
    const step = this.step(transactionId);
    const next = this.#next(transactionId, step, move);
    if (next === 'settled') this.#steps.delete(transactionId);
    else if (next) this.#remember(transactionId, next);
  }

  clear(): void {
    this.#steps.clear();
  }

  /** The step a move leads to; undefined where the step does not allow it. */
  #next(id: string, step: CheckoutStep, move: CheckoutMove): CheckoutStep | 'settled' | undefined {
    if (move.do === 'cancel') return { at: 'cancelled' };
    if (move.do === 'restart') return { at: 'phone', typed: '', problem: undefined };
    if (step.at === 'phone' && move.do === 'phone') return this.#takePhone(move.phoneNumber);
    if (step.at === 'code' && move.do === 'resend') return this.#sendCode(step.phoneNumber);
    if (step.at === 'code' && move.do === 'code') return this.#takeCode(step, move.code);
    if (step.at !== 'confirm' || (move.do !== 'pay' && move.do !== 'decline')) return undefined;
    if (move.do === 'pay') this.parts.complete(id);
    else this.parts.fail(id);
    return 'settled';
  }

  #takePhone(typed: string): CheckoutStep {
    const phoneNumber = normalisePhoneNumber(typed);
    if (phoneNumber !== undefined) return this.#sendCode(phoneNumber);
    const problem =
      typed.trim() === ''
        ? 'Enter the phone number the code goes to.'
        : 'That is no phone number: it takes 7 to 15 digits, such as +1 555 010 0123.';
    return { at: 'phone', typed: typed.slice(0, 40), problem };
  }

  #sendCode(phoneNumber: string): CheckoutStep {
    const code = issueCode(this.parts.random, this.parts.clock.now());
    return { at: 'code', phoneNumber, code, problem: undefined };
  }

  #takeCode(step: CheckoutStep & { at: 'code' }, typed: string): CheckoutStep {
    const checked = checkCode(step.code, typed, this.parts.clock.now());
    return checked === 'right'
      ? { at: 'confirm', phoneNumber: step.phoneNumber }
      : { ...step, ...checked };
  }

  #remember(transactionId: string, step: CheckoutStep): void {
    this.#steps.delete(transactionId);
    this.#steps.set(transactionId, step);
    for (const id of this.#steps.keys()) {
      if (this.#steps.size <= this.parts.limit) break;
      this.#steps.delete(id);
    }
  }
}
