import { afterEach, beforeEach } from '@jest/globals';
import { apiApplication, testCompany, type ApiApplication } from './api.application.js';
import { ScriptedService } from './scripted.service.js';

/** A scripted service, and applications that call it, fresh for every test of a `describe`. */
export interface ApiHarness {
  service: ScriptedService;
  /** Boots an application; for the service's own company where none is given. It is closed after the test. */
  boot(
    options?: Parameters<typeof apiApplication>[1],
    companies?: Parameters<typeof apiApplication>[0],
  ): Promise<ApiApplication>;
}

/** To be called in a `describe`. */
export function apiHarness(): ApiHarness {
  const open: ApiApplication[] = [];
  const harness = {
    boot: async (options, companies = testCompany(harness.service.baseUrl)) => {
      const application = await apiApplication(companies, options);
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
