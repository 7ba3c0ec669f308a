import type { LoggerService } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  PAYMENTS_API_OPTIONS,
  resolveApiOptions,
  type PaymentsApiOptions,
} from '../../../libs/payments/src/api/api-options.js';
import { COMPANIES, ResolvedCompany } from '../../../libs/payments/src/companies/company.js';
import { PaymentsApiService } from '../../../libs/payments/src/api/payments-api.service.js';
import { PAYMENTS_RUNTIME } from '../../../libs/payments/src/runtime/payments-runtime.js';
import { NO_OBSERVERS, Observers } from '../../../libs/payments/src/telemetry/observers.js';
import { FakeRuntime } from '../time/fake-runtime.js';

/** A Nest application that contains only the API client. */
export interface ApiApplication {
  payments: PaymentsApiService;
  runtime: FakeRuntime;
  /** Every warning and error the application logged. */
  logs: string[];
  module: TestingModule;
  close: () => Promise<void>;
}

/** A company for a test. Its secrets are recognisable, so that a test can detect a leak. */
export function testCompany(
  baseUrl: string,
  given: { id?: string; clientId?: string; clientSecret?: string } = {},
): ResolvedCompany {
  const { id = 'default', clientId = 'the-client-id', clientSecret = 'the-client-secret' } = given;
  return new ResolvedCompany(id, baseUrl, {
    clientId,
    clientSecret,
    webhookSecrets: ['the-webhook-secret'],
  });
}

/** Boots the API client for these companies. A test may change the map while the application runs. */
export async function apiApplication(
  companies: ResolvedCompany | Map<string, ResolvedCompany>,
  options: PaymentsApiOptions = {},
): Promise<ApiApplication> {
  const known = companies instanceof Map ? companies : new Map([[companies.id, companies]]);
  const runtime = new FakeRuntime();
  const logs: string[] = [];
  const log = (...parts: unknown[]): void => void logs.push(parts.map(String).join(' '));
  const logger: LoggerService = { log: () => {}, error: log, warn: log, fatal: log };
  const module = await Test.createTestingModule({
    providers: [
      PaymentsApiService,
      { provide: COMPANIES, useValue: { find: async (id: string) => known.get(id) } },
      { provide: PAYMENTS_API_OPTIONS, useValue: resolveApiOptions(options) },
      { provide: PAYMENTS_RUNTIME, useValue: runtime },
      { provide: Observers, useValue: NO_OBSERVERS },
    ],
  })
    .setLogger(logger)
    .compile();
  await module.init();
  const payments = module.get(PaymentsApiService);
  return { payments, runtime, logs, module, close: () => module.close() };
}
