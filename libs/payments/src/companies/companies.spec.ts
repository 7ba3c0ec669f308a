import { describe, expect, it } from '@jest/globals';
import { ListedCompanies } from './companies.js';
import { resolveCompany } from './resolve-company.js';
import type { Company } from './company.js';

const ACME: Company = { id: 'acme', clientId: 'c', clientSecret: 's', webhookSecret: 'w' };
const DEFAULTS = { baseUrl: 'https://payments.example.com' };

describe('ListedCompanies', () => {
  const bolt = resolveCompany({ ...ACME, id: 'bolt' }, DEFAULTS);
  const acme = resolveCompany(ACME, DEFAULTS);

  it('finds the only company under "default" too, and each of several under its id only', async () => {
    expect(await new ListedCompanies([acme]).find('default')).toBe(acme);
    expect(await new ListedCompanies([acme, bolt]).find('default')).toBeUndefined();
    expect(await new ListedCompanies([acme, bolt]).find('bolt')).toBe(bolt);
    expect(await new ListedCompanies([acme]).find('__proto__')).toBeUndefined();
  });
});
