import type { ResolvedCompany } from '../companies/company.js';

/** Where the API client finds the company that a call is made for. */
export interface CompanySource {
  /**
   * Returns the company with that id, or `undefined` if there is none. It is called before every call of the API, so
   * it should answer from memory; the caller receives what it throws. For `DEFAULT_COMPANY` it returns the company
   * with that id or, if there is only one company, that one.
   */
  find(id: string): Promise<ResolvedCompany | undefined> | ResolvedCompany | undefined;
}

/** Nest injection token of the {@link CompanySource} in use. */
export const COMPANY_SOURCE = Symbol('COMPANY_SOURCE');
