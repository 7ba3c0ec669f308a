import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { ResolvedCompany } from '../companies/company.js';
import { systemRuntime } from '../payments.runtime.js';
import { AccessToken } from './access-token.js';
import { TokenDirectory } from './token.directory.js';

const company = (id: string, baseUrl = 'http://a.test', secret = 'secret-0815'): ResolvedCompany =>
  new ResolvedCompany(id, baseUrl, {
    clientId: 'client',
    clientSecret: secret,
    webhookSecrets: ['w'],
  });

function directory(capacity = 3): TokenDirectory {
  return new TokenDirectory(
    capacity,
    ({ id }) =>
      new AccessToken({
        company: id,
        runtime: systemRuntime,
        logger: { warn: () => {} },
        timeoutMs: 1,
        requestToken: async () => ({ ok: true, value: 't', lifetimeMs: 1_000 }),
      }),
  );
}

describe('TokenDirectory', () => {
  it('gives the same token for the same credentials, in the same object or another', () => {
    const tokens = directory();
    const one = company('a');
    expect(tokens.of(one)).toBe(tokens.of(one));
    expect(tokens.of(company('a'))).toBe(tokens.of(one));
  });

  it('gives another for another company, base URL or secret, however they are cut', () => {
    const tokens = directory(10);
    const all = [
      company('a'),
      company('b'),
      company('a', 'http://b.test'),
      company('a', 'http://a.test', 'other'),
      new ResolvedCompany('a', 'http://a.test', {
        clientId: 'clientsecret',
        clientSecret: '-0815',
        webhookSecrets: ['w'],
      }),
    ];
    expect(new Set(all.map((one) => tokens.of(one))).size).toBe(all.length);
  });

  it('drops the one that was used longest ago when it is full', () => {
    const tokens = directory(2);
    const [a, b] = [tokens.of(company('a')), tokens.of(company('b'))];
    tokens.of(company('a'));
    tokens.of(company('c'));
    expect(tokens.of(company('a'))).toBe(a);
    expect(tokens.of(company('b'))).not.toBe(b);
  });

  it('shares nothing with another directory', () => {
    const one = company('a');
    expect(directory().of(one)).not.toBe(directory().of(one));
  });

  it('shows no secret', () => {
    const tokens = directory();
    tokens.of(company('a'));
    expect(inspect(tokens, { depth: Infinity, showHidden: true })).not.toContain('0815');
  });
});
