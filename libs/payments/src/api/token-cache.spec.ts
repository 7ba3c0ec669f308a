import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { ResolvedCompany } from '../companies/company.js';
import { systemRuntime } from '../runtime/payments-runtime.js';
import { AccessToken, TokenCache } from './access-token.js';

const company = (id: string, baseUrl = 'http://a.test', secret = 'secret-0815'): ResolvedCompany =>
  new ResolvedCompany(id, baseUrl, {
    clientId: 'client',
    clientSecret: secret,
    webhookSecrets: ['w'],
  });

function tokenCache(capacity = 3): TokenCache {
  return new TokenCache(
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

describe('TokenCache', () => {
  it('TokenCache returns the same token for two company objects with the same credentials', () => {
    const tokens = tokenCache();
    const one = company('a');
    expect(tokens.get(one)).toBe(tokens.get(one));
    expect(tokens.get(company('a'))).toBe(tokens.get(one));
  });

  it('TokenCache returns different tokens for another company, base URL or secret, even if the concatenation of the three is equal', () => {
    const tokens = tokenCache(10);
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
    expect(new Set(all.map((company) => tokens.get(company))).size).toBe(all.length);
  });

  it('TokenCache drops the least recently used token when the cache is full', () => {
    const tokens = tokenCache(2);
    const [a, b] = [tokens.get(company('a')), tokens.get(company('b'))];
    tokens.get(company('a'));
    tokens.get(company('c'));
    expect(tokens.get(company('a'))).toBe(a);
    expect(tokens.get(company('b'))).not.toBe(b);
  });

  it('TokenCache shares no token with another cache', () => {
    const one = company('a');
    expect(tokenCache().get(one)).not.toBe(tokenCache().get(one));
  });

  it('TokenCache shows no secret in util.inspect', () => {
    const tokens = tokenCache();
    tokens.get(company('a'));
    expect(inspect(tokens, { depth: Infinity, showHidden: true })).not.toContain('0815');
  });
});
