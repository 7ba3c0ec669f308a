import { afterEach, beforeEach, describe } from '@jest/globals';
import type {
  HttpAdapter,
  PaymentsApiOptions,
} from '../../../libs/payments/src/api/api-options.js';
import { apiApplication, testCompany, type ApiApplication } from './api-client-application.js';
import { ScriptedService } from './scripted-service.js';

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

/** Runs the tests once with each adapter, because each test must pass with every adapter. */
export function describeWithEachAdapter(
  title: string,
  tests: (harness: ApiHarness, adapter: HttpAdapter) => void,
): void {
  describe.each(ADAPTERS)(`${title}, adapter %s`, (adapter) =>
    tests(apiHarness({ adapter }), adapter),
  );
}

/** Call this function in a `describe`. `defaults` are options of every application. */
export function apiHarness(defaults: PaymentsApiOptions = {}): ApiHarness {
  const open: ApiApplication[] = [];
  const harness = {
    boot: async (options, companies = testCompany(harness.service.baseUrl)) => {
      const application = await apiApplication(companies, { ...defaults, ...options });
      open.push(application);
      return application;
    },
  } as ApiHarness;

  beforeEach(async () => {
    harness.service = await ScriptedService.start();
  });

  afterEach(async () => {
    await Promise.all(open.splice(0).map((application) => application.close()));
    await harness.service.stop();
  });

  return harness;
}
