import { Inject, Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { DEFAULT_COMPANY } from '../companies/company.js';
import { PAYMENTS_RUNTIME, type PaymentsRuntime } from '../runtime/payments-runtime.js';
import { HttpApiClient } from './http-api-client.js';
import { PAYMENTS_API_OPTIONS, type ResolvedApiOptions } from './api-options.js';
import { CompanyApi } from './company-api.js';
import { COMPANIES, type Companies } from '../companies/companies.js';
import type { PaymentsApi } from './payments-api.js';

/**
 * Calls the payments service for the application's company: the company `default`, or the only one configured.
 * `forCompany` returns the same API for another company. See {@link PaymentsApi} for what all methods have in common.
 *
 * @example
 * ```ts
 * constructor(private readonly payments: PaymentsApiService) {}
 *
 * const transaction = await this.payments.getTransaction(id);
 * const other = await this.payments.forCompany('acme').getTransaction(id);
 * ```
 */
@Injectable()
export class PaymentsApiService extends CompanyApi implements OnApplicationShutdown {
  constructor(
    @Inject(COMPANIES) companies: Companies,
    @Inject(PAYMENTS_API_OPTIONS) options: ResolvedApiOptions,
    @Inject(PAYMENTS_RUNTIME) runtime: PaymentsRuntime,
  ) {
    const logger = options.logger ?? new Logger('PaymentsApi');
    super(new HttpApiClient({ companies, options, runtime, logger }), DEFAULT_COMPANY);
  }

  /**
   * Returns the same API for another company. The company is looked up at each call: if it does not exist, the call
   * rejects with `company_unknown`.
   *
   * @throws TypeError if `id` is empty or not a string
   */
  forCompany(id: string): PaymentsApi {
    return new CompanyApi(this.client, id);
  }

  /**
   * Ends the calls under way and closes the connections. Nest calls it in the last stage of shutdown, so handlers that
   * are still running can call the service until then.
   */
  async onApplicationShutdown(): Promise<void> {
    await this.client.close();
  }
}
