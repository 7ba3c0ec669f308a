import { expect, it } from '@jest/globals';
import { testCompany } from '../../support/api/api-client-application.js';
import { describeWithEachAdapter } from '../../support/api/api-harness.js';
import { json, ScriptedService } from '../../support/api/scripted-service.js';

describeWithEachAdapter('the token request', (harness) => {
  it('TK-01 the token request is POST /v1/auth/token with Basic credentials in UTF-8 and a JSON grant', async () => {
    const { service } = harness;
    const clientId = 'id%3A:ü';
    const clientSecret = 'p%:ß→😀 secret';
    const { payments } = await harness.boot(
      {},
      testCompany(service.baseUrl, { clientId, clientSecret }),
    );
    await payments.getTransaction('1');

    const [request] = service.tokenRequests;
    expect(request).toMatchObject({ method: 'POST', path: '/v1/auth/token' });
    expect(request?.headers['content-type']).toBe('application/json');
    expect(JSON.parse(request?.body ?? '')).toEqual({ grant_type: 'client_credentials' });
    const [scheme, credentials = ''] = request?.headers.authorization?.split(' ') ?? [];
    expect(scheme).toBe('Basic');
    expect(
      new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(credentials, 'base64')),
    ).toBe(`${clientId}:${clientSecret}`);
    expect(request?.headers).not.toHaveProperty('x-auth-token');
  });

  it('TK-15 two companies, two base URLs or two secrets never share a token', async () => {
    const { service } = harness;
    const other = await ScriptedService.start();
    other.onToken = json(200, other.tokenAnswer({ token: 'other-1' }));
    const companies = new Map([
      ['default', testCompany(service.baseUrl)],
      ['a', testCompany(service.baseUrl, { id: 'a' })],
      ['b', testCompany(service.baseUrl, { id: 'b' })],
    ]);
    const { payments } = await harness.boot({}, companies);
    const tokenOf = async (id: string, at = service): Promise<string | undefined> => {
      await payments.forCompany(id).getTransaction('1');
      return at.calls.at(-1)?.headers.authorization;
    };

    expect(await tokenOf('default')).toBe('Bearer token-1');
    expect(await tokenOf('a')).toBe('Bearer token-2');
    expect(await tokenOf('b')).toBe('Bearer token-3');
    expect(await tokenOf('a')).toBe('Bearer token-2');

    companies.set('a', testCompany(service.baseUrl, { id: 'a', clientSecret: 'rotated' }));
    expect(await tokenOf('a')).toBe('Bearer token-4');
    companies.set('a', testCompany(other.baseUrl, { id: 'a', clientSecret: 'rotated' }));
    expect(await tokenOf('a', other)).toBe('Bearer other-1');
    // A directory returns a new object per lookup. The same credentials in a new object share the token.
    companies.set('b', testCompany(service.baseUrl, { id: 'b' }));
    expect(await tokenOf('b')).toBe('Bearer token-3');
    expect(service.tokenRequests).toHaveLength(4);
    await other.stop();
  });

  it('TK-16 a call sends its token in the header authorization, or in x-auth-token if selected, and never in both', async () => {
    const { service } = harness;
    const first = await harness.boot();
    await first.payments.getTransaction('1');
    const second = await harness.boot({ tokenHeader: 'x-auth-token' });
    await second.payments.post('/v1/things', { body: {} });

    const [byDefault, selected] = service.calls;
    expect(byDefault?.headers.authorization).toBe('Bearer token-1');
    expect(byDefault?.headers).not.toHaveProperty('x-auth-token');
    expect(selected?.headers['x-auth-token']).toBe('Bearer token-2');
    expect(selected?.headers).not.toHaveProperty('authorization');
    for (const name of ['authorization', 'Authorization', 'X-Auth-Token']) {
      const headers = { [name]: 'Bearer mine' };
      await expect(first.payments.get('/v1/things', { headers })).rejects.toThrow(TypeError);
    }
  });
});
