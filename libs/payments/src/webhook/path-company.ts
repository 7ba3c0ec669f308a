import { DEFAULT_COMPANY } from '../companies/company.js';
import { isCompanyId } from '../companies/company.options.js';
import { PaymentsError } from '../payments.errors.js';

/** The company in the parameters of a route, `default` if there is none. It may be anything. */
export function companyOf(params: unknown): unknown {
  return (params as Record<string, unknown> | null | undefined)?.['company'] ?? DEFAULT_COMPANY;
}

/**
 * The id, if it can be one.
 *
 * @throws PaymentsError `company_unknown`
 */
export function requireCompanyId(id: unknown): string {
  // A wildcard of the application's own route is a list.
  if (!isCompanyId(id)) throw companyUnknown();
  return id;
}

/** The error for a path that names no company of this application. */
export function companyUnknown(): PaymentsError {
  return new PaymentsError(
    'company_unknown',
    'The path names no company this application receives deliveries for.',
  );
}
