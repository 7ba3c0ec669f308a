import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { ListedCompanies, resolveCompany, SharedSecrets } from './company.js';
import type { Company } from './company.js';

const ACME: Company = { id: 'acme', clientId: 'c', clientSecret: 's', webhookSecret: 'w' };
const DEFAULTS = { baseUrl: 'https://payments.example.com' };

describe('ListedCompanies', () => {
  const bolt = resolveCompany({ ...ACME, id: 'bolt' }, DEFAULTS);
  const acme = resolveCompany(ACME, DEFAULTS);

  it('ListedCompanies finds a single company by its id and by "default", and one of several companies only by its id', async () => {
    expect(await new ListedCompanies([acme]).find('default')).toBe(acme);
    expect(await new ListedCompanies([acme, bolt]).find('default')).toBeUndefined();
    expect(await new ListedCompanies([acme, bolt]).find('bolt')).toBe(bolt);
    expect(await new ListedCompanies([acme]).find('__proto__')).toBeUndefined();
  });
});

const company = (id: string, ...webhookSecret: string[]) =>
  resolveCompany({
    id,
    clientId: 'c',
    clientSecret: 's',
    webhookSecret,
    baseUrl: 'https://payments.example.com',
  });

describe('SharedSecrets', () => {
  it('SE-10 SharedSecrets.add() returns the id of an earlier company that has a secret of the new company', () => {
    const secrets = new SharedSecrets();
    expect(secrets.add(company('acme', 'one', 'two'))).toBeUndefined();
    expect(secrets.add(company('bolt', 'three'))).toBeUndefined();
    expect(secrets.add(company('cafe', 'four', 'two'))).toBe('acme');
    expect(secrets.add(company('dock', 'three', 'five'))).toBe('bolt');
  });

  it('SE-10 SharedSecrets accepts a company that lists the same secret twice, and a company that is added again', () => {
    const secrets = new SharedSecrets();
    expect(secrets.add(company('acme', 'one', 'one'))).toBeUndefined();
    expect(secrets.add(company('acme', 'one'))).toBeUndefined();
  });

  it('SE-10 SharedSecrets deletes the secrets of a removed company, and of no other company', () => {
    const secrets = new SharedSecrets();
    secrets.add(company('acme', 'one'));
    secrets.add(company('bolt', 'one'));
    secrets.remove(company('bolt', 'one'));
    expect(secrets.add(company('cafe', 'one'))).toBe('acme');
    secrets.remove(company('acme', 'one'));
    expect(secrets.add(company('cafe', 'one'))).toBeUndefined();
  });

  it('SE-12 SharedSecrets shows no secret to util.inspect', () => {
    const secrets = new SharedSecrets();
    secrets.add(company('acme', 'a-private-value'));
    expect(inspect(secrets, { depth: 9, showHidden: true })).not.toContain('a-private-value');
  });
});
