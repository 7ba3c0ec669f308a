import type { ReconcileOptions } from '../../libs/payments/dist/expectations/reconcile-options.js';
import type { PaymentTransaction } from '../../libs/payments/dist/api/payments-api.js';
import { PaymentsApiError } from '../../libs/payments/dist/api/api-error.js';
import { PaymentsError } from '../../libs/payments/dist/errors/payments-error.js';
import type { PaymentsErrorCode } from '../../libs/payments/dist/errors/payments-error-code.js';
import type { Answer, EventPlan, RequestEnd } from './scenario.ts';
import { never } from './simulated-process.ts';
import type { SimulatedProcess } from './simulated-process.ts';

/** The event types that a poll can find. */
export const POLLED_TYPES = ['transaction.completed', 'transaction.declined'] as const;

/** The body of a request for a payment. */
interface PaymentRequest {
  readonly reference: string;
  readonly end: RequestEnd;
}

function rejection(company: string): Error {
  const facts = { method: 'POST', path: '/payments', attempts: 1, status: 400 };
  const unknown = { requestId: undefined, retryAfterMs: undefined, reason: undefined, body: null };
  return new PaymentsApiError('request_rejected', 'rejected', { company, ...facts, ...unknown });
}

/** The application's reference of the payment of an event. */
export function referenceOf(event: number): string {
  return `r${event}`;
}

/** The reference in the webhook requests of a planned event. */
export function webhookReference({ sharesReference }: EventPlan, event: number): string {
  return referenceOf(sharesReference ? 0 : event);
}

/** The payments service that polls call. A scenario decides the response for each transaction. */
export class SimulatedService {
  readonly #answers = new Map<string, Answer | 'hangs'>();
  /** The number of payments that the service has created on request, by company and reference. */
  readonly #created = new Map<string, number>();
  readonly #events: readonly EventPlan[];

  constructor(events: readonly EventPlan[]) {
    this.#events = events;
  }

  /** The planned event with that index, modulo the number of events. */
  planned(index: number): EventPlan & { readonly index: number } {
    const own = index % this.#events.length;
    return { ...this.#events[own]!, index: own };
  }

  answer({ company, transactionId }: EventPlan, answer: Answer | 'hangs'): void {
    this.#answers.set(`${company}/${transactionId}`, answer);
  }

  /** Whether the service reports an event for the payment with the reference. */
  reports(company: string, reference: string): boolean {
    const { transactionId } = this.planned(Number(reference.slice(1)));
    const answer = this.#answers.get(`${company}/${transactionId}`);
    return transactionId !== null && (answer === 'completed' || answer === 'declined');
  }

  /** Returns the number of payments that the service has created on request for a reference. */
  created(company: string, reference: string): number {
    return this.#created.get(`${company}/${reference}`) ?? 0;
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
      // Of the payments that were not requested, only some can be found before the service reports their result.
      find: async (reference) => {
        const { company, transactionId } = this.planned(Number(reference.slice(1)));
        const known = this.reports(company, reference) || this.created(company, reference) > 0;
        return known ? transactionId : null;
      },
    };
  }

  /** The API client of a process; a call takes `slowMs` from time to time. */
  client(process: SimulatedProcess, slowMs: number): unknown {
    const getTransaction = async (company: string, id: string): Promise<unknown> => {
      await (process.oneIn(8) ? process.sleep(slowMs) : process.transfer());
      if (!process.alive || this.#answers.get(`${company}/${id}`) === 'hangs') return never();
      const status = this.#answers.get(`${company}/${id}`) ?? 'pending';
      const plan = this.#events.find((one) => one.company === company && one.transactionId === id);
      await process.transfer();
      if (status === 'missing') throw new Error('The service has no such transaction.');
      const other = status === 'another transaction';
      const shown = other ? 'completed' : status;
      return { id: other ? 'other' : id, status: shown, scripts: plan?.scripts };
    };
    const requestPayment = async (company: string, request: PaymentRequest): Promise<unknown> => {
      const { reference, end } = request;
      await process.transfer();
      if (!process.alive) return never();
      const refused = (code: PaymentsErrorCode): Error => new PaymentsError(code, end);
      if (end === 'not sent') throw refused('connection_failed');
      if (end === 'lost') throw refused('outcome_unknown');
      if (end === 'rejected') throw rejection(company);
      this.#created.set(`${company}/${reference}`, this.created(company, reference) + 1);
      await (process.oneIn(4) ? process.sleep(slowMs) : process.transfer());
      if (!process.alive) return never();
      if (end === 'lost after it was accepted') throw refused('outcome_unknown');
      return { transactionId: this.planned(Number(reference.slice(1))).transactionId };
    };
    return {
      forCompany: (company: string) => ({
        getTransaction: (id: string) => getTransaction(company, id),
        post: (_path: string, { body }: { readonly body: PaymentRequest }) =>
          requestPayment(company, body),
      }),
    };
  }
}
