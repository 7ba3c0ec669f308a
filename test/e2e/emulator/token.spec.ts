import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ManualClock, PaymentsEmulator } from 'payments-emulator';
import {
  basic,
  get,
  getToken,
  json,
  production,
  requestToken,
  sandbox,
} from '../../support/emulator/api-client.js';

const clock = new ManualClock(Date.parse('2026-11-20T10:00:00.250Z'));
let emulator: PaymentsEmulator;

beforeAll(async () => {
  emulator = await PaymentsEmulator.start({ clock });
});
beforeEach(() => emulator.reset());
afterAll(() => emulator.close());

/**
 * Whether a host accepts a token. A host that accepts the token responds with 404, because the transaction is unknown.
 */
async function isAccepted(token: string, baseUrl = emulator.baseUrl): Promise<boolean> {
  const { status } = await get(`${baseUrl}/v1/transactions/none`, token);
  return status === 404;
}

function claims(token: string): Record<string, unknown> {
  const payload = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8');
  return JSON.parse(payload) as Record<string, unknown>;
}

describe('POST /v1/auth/token', () => {
  it('POST /v1/auth/token returns a Bearer JWT with expires_in as the string "3599"', async () => {
    const response = await requestToken(sandbox(emulator));
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    const body = await json(response);
    expect(body).toEqual({
      access_token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      expires_in: '3599',
      token_type: 'Bearer',
    });
    const issuedAt = Math.floor(clock.now() / 1000);
    expect(claims(body['access_token'] as unknown as string)).toMatchObject({
      company: 'default',
      environment: 'sandbox',
      iat: issuedAt,
      exp: issuedAt + 3599,
    });
  });

  it('POST /v1/auth/token issues a different token for each request, also within one second', async () => {
    expect(await getToken(emulator)).not.toBe(await getToken(emulator));
  });

  const type = { 'content-type': 'application/json' };
  it.each([
    ['a request without Authorization', { ...type }],
    ['an unknown client id', { ...type, authorization: basic('nobody', 'secret') }],
  ])('POST /v1/auth/token responds with 401 to %s', async (_, headers) => {
    expect((await requestToken(sandbox(emulator), { headers })).status).toBe(401);
  });

  it('POST /v1/auth/token responds with 401 to a wrong secret', async () => {
    for (const wrong of ['wrong', '', `${emulator.company.clientSecret} `]) {
      const request = { ...sandbox(emulator), clientSecret: wrong };
      expect((await requestToken(request)).status).toBe(401);
    }
  });

  it.each([
    ['a request without a body', null],
    ['an empty object', '{}'],
    ['another grant type', '{"grant_type":"password"}'],
    ['a grant that is not a string', '{"grant_type":["client_credentials"]}'],
    ['a grant under __proto__', '{"__proto__":{"grant_type":"client_credentials"}}'],
    ['an array', '["client_credentials"]'],
    ['null', 'null'],
    ['a body that is not JSON', 'grant_type=client_credentials'],
  ])('POST /v1/auth/token responds with 401 to %s', async (_, body) => {
    expect((await requestToken(sandbox(emulator), { body })).status).toBe(401);
  });

  it('POST /v1/auth/token responds with 401 to a form', async () => {
    const { clientId, clientSecret } = emulator.company;
    const response = await requestToken(sandbox(emulator), {
      headers: {
        authorization: basic(clientId, clientSecret),
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: 'grant_type=client_credentials',
    });
    expect(response.status).toBe(401);
  });

  it('POST /v1/auth/token responds with 401 to the credentials of the other environment', async () => {
    const { baseUrl } = emulator;
    const crossed = { baseUrl, ...emulator.company.production };
    expect((await requestToken(crossed)).status).toBe(401);
    expect((await requestToken(production(emulator))).status).toBe(200);
  });
});

describe('an access token', () => {
  it('an access token is accepted only by the host of its environment', async () => {
    const ofSandbox = await getToken(emulator);
    const ofProduction = await getToken(emulator, production(emulator));
    expect(await isAccepted(ofSandbox)).toBe(true);
    expect(await isAccepted(ofSandbox, emulator.productionBaseUrl)).toBe(false);
    expect(await isAccepted(ofProduction)).toBe(false);
    expect(await isAccepted(ofProduction, emulator.productionBaseUrl)).toBe(true);
  });

  it('an access token expires after 3599 seconds, and not before', async () => {
    const token = await getToken(emulator);
    clock.advance(3_598_000);
    expect(await isAccepted(token)).toBe(true);
    clock.advance(1_000);
    expect(await isAccepted(token)).toBe(false);
  });

  it('an access token is rejected if it is forged', async () => {
    const [header, , signature] = (await getToken(emulator)).split('.');
    const payload = Buffer.from('{"company":"default","environment":"sandbox","generation":"0.0"}');
    const none = Buffer.from('{"alg":"none"}').toString('base64url');
    const claimed = payload.toString('base64url');
    expect(await isAccepted(`${header}.${claimed}.${signature}`)).toBe(false);
    expect(await isAccepted(`${none}.${claimed}.`)).toBe(false);
  });

  it('an access token is rejected by another emulator', async () => {
    await using other = await PaymentsEmulator.start({ clock });
    expect(await isAccepted(await getToken(emulator), other.baseUrl)).toBe(false);
  });

  it('an access token is rejected after a revocation; a later token is accepted', async () => {
    const before = await getToken(emulator);
    const ofProduction = await getToken(emulator, production(emulator));
    emulator.revokeTokens({ environment: 'sandbox' });
    expect(await isAccepted(before)).toBe(false);
    expect(await isAccepted(await getToken(emulator))).toBe(true);
    expect(await isAccepted(ofProduction, emulator.productionBaseUrl)).toBe(true);
    emulator.revokeTokens();
    expect(await isAccepted(ofProduction, emulator.productionBaseUrl)).toBe(false);
  });

  it('an access token stays valid after a rotation of the client secret, while the old secret is rejected at once', async () => {
    const token = await getToken(emulator);
    const old = sandbox(emulator);
    emulator.rotateClientSecret();
    expect((await requestToken(old)).status).toBe(401);
    expect((await requestToken(sandbox(emulator))).status).toBe(200);
    expect((await requestToken(production(emulator))).status).toBe(200);
    expect(await isAccepted(token)).toBe(true);
  });
});
