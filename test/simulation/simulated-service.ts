import type { ReconcileOptions } from '../../libs/payments/dist/expectations/reconcile-options.js';
import type { PaymentTransaction } from '../../libs/payments/dist/api/payments-api.js';
import type { Answer, EventPlan } from './scenario.ts';
import { never } from './simulated-process.ts';
import type { SimulatedProcess } from './simulated-process.ts';

/** The event types that a poll can find. */
export const POLLED_TYPES = ['transaction.completed', 'transaction.declined'] as const;

/** The application's reference of the payment of an event. */
export function referenceOf(event: number): string {
  return `r${event}`;
}

/** The payments service, as polls see it: a scenario decides what it responds for each transaction. */
export class SimulatedService {
  readonly #answers = new Map<string, Answer>();
  readonly #events: readonly EventPlan[];

  constructor(events: readonly EventPlan[]) {
    this.#events = events;
  }

  /** The planned event with that index, modulo the number of events. */
  planned(index: number): EventPlan & { readonly index: number } {
    const own = index % this.#events.length;
    return { ...this.#events[own]!, index: own };
  }

  answer({ company, transactionId }: EventPlan, answer: Answer): void {
    this.#answers.set(`${company}/${transactionId}`, answer);
  }

  /** Whether the service reports an event for the payment with the reference. */
  reports(company: string, reference: string): boolean {
    const { transactionId } = this.planned(Number(reference.slice(1)));
    const answer = this.#answers.get(`${company}/${transactionId}`);
    return transactionId !== null && (answer === 'completed' || answer === 'declined');
  }

  /** The options with which the application polls. */
  options(schedule: readonly number[]): ReconcileOptions {
    return {
      eventTypes: POLLED_TYPES,
      schedule,
      interpret: ({ status, scripts, id }: PaymentTransaction) => {
        if (status === 'nonsense') throw new Error('The scenario makes interpret fail.');
        if (status !== 'completed' && status !== 'declined') return 'pending';
        return { eventType: `transaction.${status}`, data: { transactionId: id, scripts } };
      },
      // Only some payments can be found before the service reports their result.
      find: async (reference) => {
        const plan = this.planned(Number(reference.slice(1)));
        return this.reports(plan.company, reference) ? plan.transactionId : null;
      },
    };
  }

  /** The API client of a process; a call takes `slowMs` from time to time. */
  client(process: SimulatedProcess, slowMs: number): unknown {
    const getTransaction = async (company: string, id: string): Promise<unknown> => {
      await (process.oneIn(8) ? process.sleep(slowMs) : process.transfer());
      if (!process.alive) return never();
      const status = this.#answers.get(`${company}/${id}`) ?? 'pending';
      const plan = this.#events.find((one) => one.company === company && one.transactionId === id);
      await process.transfer();
      if (status === 'missing') throw new Error('The service knows no such transaction.');
      const other = status === 'another transaction';
      const shown = other ? 'completed' : status;
      return { id: other ? 'other' : id, status: shown, scripts: plan?.scripts };
    };
    return {
      forCompany: (company: string) => ({
        getTransaction: (id: string) => getTransaction(company, id),
      }),
    };
  }
}
