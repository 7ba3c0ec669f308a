import type { ResolvedCompany } from '../companies/company.js';

/** Where the outgoing station finds the company a call is made for. */
export interface CompanySource {
  /**
   * The company of that id, or `undefined` where there is none. Asked before every call, so it should answer
   * from memory; what it throws reaches the caller as it is. Asked for `DEFAULT_COMPANY`, it answers the
   * company of that id, or the only company there is.
   */
  find(id: string): Promise<ResolvedCompany | undefined> | ResolvedCompany | undefined;
}

/** Nest injection token of the {@link CompanySource} in use. */
export const COMPANY_SOURCE = Symbol('COMPANY_SOURCE');
