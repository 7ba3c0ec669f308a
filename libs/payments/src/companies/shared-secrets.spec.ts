import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { resolveCompany } from './resolve-company.js';
import { SharedSecrets } from './shared-secrets.js';

const company = (id: string, ...webhookSecret: string[]) =>
  resolveCompany({
    id,
    clientId: 'c',
    clientSecret: 's',
    webhookSecret,
    baseUrl: 'https://payments.example.com',
  });

describe('SharedSecrets', () => {
  it('SE-10 finds another company with any of the secrets', () => {
    const secrets = new SharedSecrets();
    expect(secrets.add(company('acme', 'one', 'two'))).toBeUndefined();
    expect(secrets.add(company('bolt', 'three'))).toBeUndefined();
    expect(secrets.add(company('cafe', 'four', 'two'))).toBe('acme');
    expect(secrets.add(company('dock', 'three', 'five'))).toBe('bolt');
  });

  it('SE-10 accepts one company with a secret twice, and one that is added again', () => {
    const secrets = new SharedSecrets();
    expect(secrets.add(company('acme', 'one', 'one'))).toBeUndefined();
    expect(secrets.add(company('acme', 'one'))).toBeUndefined();
  });

  it('SE-10 forgets the secrets of a company that is removed, and of no other', () => {
    const secrets = new SharedSecrets();
    secrets.add(company('acme', 'one'));
    secrets.add(company('bolt', 'one'));
    secrets.remove(company('bolt', 'one'));
    expect(secrets.add(company('cafe', 'one'))).toBe('acme');
    secrets.remove(company('acme', 'one'));
    expect(secrets.add(company('cafe', 'one'))).toBeUndefined();
  });

  it('SE-12 holds no secret', () => {
    const secrets = new SharedSecrets();
    secrets.add(company('acme', 'a-private-value'));
    expect(inspect(secrets, { depth: 9, showHidden: true })).not.toContain('a-private-value');
  });
});
