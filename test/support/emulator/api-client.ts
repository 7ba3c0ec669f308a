import type { PaymentsEmulator } from 'payments-emulator';

/** The host and the credentials of a token request. */
export interface TokenRequest {
  readonly baseUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** Returns the value of a Basic `Authorization` header. */
export function basic(clientId: string, clientSecret: string): string {
  return `Basic ${Buffer.from(`${clientId}:${clientSecret}`, 'utf8').toString('base64')}`;
}

/** Sends a valid token request, or one with replaced headers or body. */
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

/** Returns host and credentials of the sandbox. */
export function sandbox(emulator: PaymentsEmulator): TokenRequest {
  return { baseUrl: emulator.baseUrl, ...emulator.company };
}

/** Returns host and credentials of production. */
export function production(emulator: PaymentsEmulator): TokenRequest {
  return { baseUrl: emulator.productionBaseUrl, ...emulator.company.production };
}

/** Requests a token. Default: of the sandbox, for the company that the emulator started with. */
export async function getToken(
  emulator: PaymentsEmulator,
  request: TokenRequest = sandbox(emulator),
): Promise<string> {
  const response = await requestToken(request);
  const { access_token: token } = (await response.json()) as { access_token: string };
  return token;
}

/** Sends a POST request with JSON. */
export function post(
  url: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  return send('POST', url, body, headers);
}

/** Sends a PUT request with JSON. */
export function put(url: string, body?: unknown): Promise<Response> {
  return send('PUT', url, body, {});
}

/** Sends a GET request, optionally with an access token. */
export function get(url: string, token?: string): Promise<Response> {
  return fetch(url, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } });
}

/** Reads the JSON of a response. */
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
