import { Inject, Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { DEFAULT_COMPANY } from '../companies/company.js';
import { PAYMENTS_RUNTIME, type PaymentsRuntime } from '../payments.runtime.js';
import { ApiCaller } from './api.caller.js';
import { PAYMENTS_API_OPTIONS, type ResolvedApiOptions } from './api.options.js';
import { CompanyApi } from './company.api.js';
import { COMPANY_SOURCE, type CompanySource } from './company.source.js';
import type { PaymentsApi } from './payments.api.js';

/**
 * The payments service, as the application's company calls it: the company `default`, or the only one there
 * is. `forCompany` gives the same API for another. See {@link PaymentsApi} for what every method promises.
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
    @Inject(COMPANY_SOURCE) companies: CompanySource,
    @Inject(PAYMENTS_API_OPTIONS) options: ResolvedApiOptions,
    @Inject(PAYMENTS_RUNTIME) runtime: PaymentsRuntime,
  ) {
    const logger = options.logger ?? new Logger('PaymentsApi');
    const caller = new ApiCaller({ companies, options, runtime, logger });
    super(caller, DEFAULT_COMPANY);
  }

  /**
   * The same API, bound to another company. The company is looked up at each call, so one that doesn't exist
   * rejects the call with `company_unknown`, not this.
   *
   * @throws TypeError where `id` is empty or no string
   */
  forCompany(id: string): PaymentsApi {
    return new CompanyApi(this.caller, id);
  }

  /**
   * Ends what is still under way, and closes connections. Run at the last stage of shutdown, so that handlers
   * that are being drained can still call the service.
   */
  async onApplicationShutdown(): Promise<void> {
    await this.caller.close();
  }
}
