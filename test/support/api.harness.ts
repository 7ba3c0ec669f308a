import { afterEach, beforeEach, describe } from '@jest/globals';
import type { HttpAdapter } from '../../libs/payments/src/api/http/http-options.js';
import type { PaymentsApiOptions } from '../../libs/payments/src/api/api.options.js';
import { apiApplication, testCompany, type ApiApplication } from './api.application.js';
import { ScriptedService } from './scripted.service.js';

/** A scripted service and applications that call it, new for every test of a `describe`. */
export interface ApiHarness {
  service: ScriptedService;
  /** Boots an application, by default for a company of the service. It is closed after the test. */
  boot(
    options?: Parameters<typeof apiApplication>[1],
    companies?: Parameters<typeof apiApplication>[0],
  ): Promise<ApiApplication>;
}

/** Every value of `api.adapter`. */
export const ADAPTERS: readonly HttpAdapter[] = ['undici', 'http', 'fetch'];

/** Runs the tests once with each adapter: the adapter must not matter to them. */
export function describeWithEachAdapter(
  title: string,
  tests: (harness: ApiHarness, adapter: HttpAdapter) => void,
): void {
  describe.each(ADAPTERS)(`${title}, adapter %s`, (adapter) =>
    tests(apiHarness({ adapter }), adapter),
  );
}

/** Call it in a `describe`. `defaults` are options of every application. */
export function apiHarness(defaults: PaymentsApiOptions = {}): ApiHarness {
  const boot = apiApplications();
  const harness = {
    boot: (options, companies = testCompany(harness.service.baseUrl)) =>
      boot(companies, { ...defaults, ...options }),
  } as ApiHarness;

  beforeEach(async () => {
    harness.service = await ScriptedService.start();
  });

  afterEach(() => harness.service.stop());

  return harness;
}

/** A service that a package answers for which intercepts HTTP: its address, and what it answers. */
export const MOCKED = {
  baseUrl: 'https://payments.example.com',
  tokenPath: '/v1/auth/token',
  token: { access_token: 'mocked', expires_in: '3599', token_type: 'Bearer' },
  /** Of the transaction with the id 1. */
  path: '/v1/transactions/1',
  transaction: { status: 'complete' },
} as const;

/** Call it in a `describe`. The result boots an application for the {@link MOCKED} service and returns its client. */
export function mockedServiceClients(): (
  options: PaymentsApiOptions,
) => Promise<ApiApplication['payments']> {
  const boot = apiApplications();
  return async (options) => (await boot(testCompany(MOCKED.baseUrl), options)).payments;
}

/** Boots applications that are closed after the test. */
function apiApplications(): typeof apiApplication {
  const open: ApiApplication[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((application) => application.close()));
  });
  return async (...args) => {
    const application = await apiApplication(...args);
    open.push(application);
    return application;
  };
}
