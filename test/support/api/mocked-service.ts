import { afterEach } from '@jest/globals';
import type { PaymentsApiOptions } from '../../../libs/payments/src/api/api-options.js';
import type { PaymentsApiService } from '../../../libs/payments/src/api/payments-api.service.js';
import { apiApplication, testCompany } from './api-client-application.js';
import type { ApiApplication } from './api-client-application.js';

/** The address of a payments service that exists only in a mock, and its responses. */
export const BASE_URL = 'https://payments.example.com';
export const TOKEN = { access_token: 'mocked', expires_in: '3599', token_type: 'Bearer' };
export const PATH = '/v1/transactions/1';
export const TRANSACTION = { status: 'complete' };

const open: ApiApplication[] = [];
afterEach(() => Promise.all(open.splice(0).map((application) => application.close())));

/** Boots an application that calls the mocked service. It is closed after the test. */
export async function bootMocked(options: PaymentsApiOptions): Promise<PaymentsApiService> {
  const application = await apiApplication(testCompany(BASE_URL), options);
  open.push(application);
  return application.payments;
}
