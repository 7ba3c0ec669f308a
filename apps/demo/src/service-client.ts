import type { ClientCredentials } from 'payments-emulator';

/** A client of the documented API of the payments service, without `nestjs-payments`. */
export class ServiceClient {
  constructor(
    private readonly url: string,
    private readonly credentials: ClientCredentials,
    private readonly signal: AbortSignal,
  ) {}

  /** Requests an access token with `POST /v1/auth/token`. */
  async token(): Promise<string> {
    const { clientId, clientSecret } = this.credentials;
    const basic = Buffer.from(`${clientId}:${clientSecret}`).toString('base64');
    const response = await this.#call('POST', '/v1/auth/token', `Basic ${basic}`, {
      grant_type: 'client_credentials',
    });
    const { access_token } = (await response.json()) as { access_token: string };
    return access_token;
  }

  /** Calls `POST /v1/webhooks/test`, and returns the status of the response. */
  async sendTestWebhook(token: string): Promise<number> {
    return (await this.#call('POST', '/v1/webhooks/test', `Bearer ${token}`)).status;
  }

  /** Calls `GET /v1/transactions/{id}`, and returns the status of the response. */
  async getTransaction(token: string, id: string): Promise<number> {
    return (await this.#call('GET', `/v1/transactions/${id}`, `Bearer ${token}`)).status;
  }

  #call(method: string, path: string, authorization: string, body?: object): Promise<Response> {
    return fetch(this.url + path, {
      method,
      headers: { authorization, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
      signal: this.signal,
    });
  }
}
