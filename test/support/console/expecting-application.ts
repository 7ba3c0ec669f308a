import type { ServerResponse } from 'node:http';
import { byStatus, PaymentExpectations } from 'nestjs-payments';
import type { PaymentsModuleOptions } from 'nestjs-payments';
import { json, ScriptedService } from '../api/scripted-service.js';
import type { SeenRequest } from '../api/scripted-service.js';

/**
 * A payments service whose transactions have the statuses that a test sets. It responds with 404 for all other
 * transactions.
 */
export class TransactionService implements AsyncDisposable {
  readonly statuses = new Map<string, string>();

  private constructor(private readonly service: ScriptedService) {
    service.onCall = (request, response) => this.#respond(request, response);
  }

  static async start(): Promise<TransactionService> {
    return new TransactionService(await ScriptedService.start());
  }

  /** Options of a module that asks this service about expected payments. */
  get options(): Partial<PaymentsModuleOptions> & Pick<PaymentsModuleOptions, 'reconcile'> {
    return {
      baseUrl: this.service.baseUrl,
      allowInsecureHttp: true,
      reconcile: {
        interpret: byStatus({ complete: 'transaction.completed', failed: 'transaction.declined' }),
      },
    };
  }

  /** Ids of the transactions that were looked up, in order. */
  get lookups(): string[] {
    return this.service.calls.map(({ path }) => path.split('/').at(-1)!);
  }

  #respond({ path }: SeenRequest, response: ServerResponse): void {
    const transactionId = path.split('/').at(-1)!;
    const status = this.statuses.get(transactionId);
    const [code, body] = status === undefined ? [404, {}] : [200, { transactionId, status }];
    json(code, body)({} as SeenRequest, response);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service.stop();
  }
}

export function expectationsOf({
  merchant,
}: {
  merchant: { app: { get: (type: typeof PaymentExpectations) => PaymentExpectations } };
}): PaymentExpectations {
  return merchant.app.get(PaymentExpectations);
}
