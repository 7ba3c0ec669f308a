import type { PaymentsEmulator } from 'payments-emulator';

/** The credentials and the host to ask for a token. */
export interface TokenRequest {
  readonly baseUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** `Authorization: Basic …` as section 5 of the service's page has it. */
export function basic(clientId: string, clientSecret: string): string {
  return `Basic ${Buffer.from(`${clientId}:${clientSecret}`, 'utf8').toString('base64')}`;
}

/** A token request as section 4 of the service's page has it, with any part of it replaced. */
export function requestToken(
  { baseUrl, clientId, clientSecret }: TokenRequest,
  { headers, body }: { headers?: Record<string, string>; body?: string | null } = {},
): Promise<Response> {
  return fetch(`${baseUrl}/v1/auth/token`, {
    method: 'POST',
    headers: headers ?? {
      authorization: basic(clientId, clientSecret),
      'content-type': 'application/json',
    },
    body: body === undefined ? '{"grant_type":"client_credentials"}' : body,
  });
}

/** Where and with what to ask for a sandbox token. */
export function sandbox(emulator: PaymentsEmulator): TokenRequest {
  return { baseUrl: emulator.baseUrl, ...emulator.company };
}

/** Where and with what to ask for a production token. */
export function production(emulator: PaymentsEmulator): TokenRequest {
  return { baseUrl: emulator.productionBaseUrl, ...emulator.company.production };
}

/** A token, of the first company's sandbox unless told otherwise. */
export async function getToken(
  emulator: PaymentsEmulator,
  request: TokenRequest = sandbox(emulator),
): Promise<string> {
  const response = await requestToken(request);
  const { access_token: token } = (await response.json()) as { access_token: string };
  return token;
}

/** A POST of JSON. */
export function post(
  url: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  return send('POST', url, body, headers);
}

/** A PUT of JSON. */
export function put(url: string, body?: unknown): Promise<Response> {
  return send('PUT', url, body, {});
}

/** A GET with a token. */
export function get(url: string, token?: string): Promise<Response> {
  return fetch(url, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } });
}

/** The JSON of an answer. */
export async function json(response: Response | Promise<Response>): Promise<Record<string, never>> {
  return (await (await response).json()) as Record<string, never>;
}

function send(
  method: string,
  url: string,
  body: unknown,
  headers: Record<string, string>,
): Promise<Response> {
  return fetch(url, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}
