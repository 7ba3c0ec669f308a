export interface ControlRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** The path under `/emulator/`. */
  readonly control: string;
  /** The body, which is sent as JSON. If undefined, the request has no body. */
  readonly input?: unknown;
}

/** A client of the controls of an emulator in another process. */
export class EmulatorClient {
  private constructor(
    private readonly url: string,
    private readonly controlToken: string | undefined,
  ) {}

  /**
   * Checks that an emulator is running at a URL, and returns a client.
   *
   * @throws Error if no emulator responds, or if the control token is missing or wrong; the message names the fix
   */
  static async connect(url: string, controlToken?: string): Promise<EmulatorClient> {
    const emulator = new EmulatorClient(url.replace(/\/+$/, ''), controlToken);
    const { status, body } = await emulator.#request('GET', '/emulator');
    if (status === 401) {
      throw new Error(
        `the emulator at ${url} requires its control token. With --control-token, pass the token that the emulator printed when it started`,
      );
    }
    if ((body as { emulator?: unknown } | null)?.emulator === 'payments-emulator') return emulator;
    throw new Error(
      `${url} responded with ${status}, but is not a payments-emulator. With --url, pass the address of the emulator`,
    );
  }

  /** @throws Error with the emulator's message, if the emulator rejects the request */
  async send<T>({ method, control, input }: ControlRequest): Promise<T> {
    const { status, body } = await this.#request(method, `/emulator/${control}`, input);
    if (status === 200) return body as T;
    const { message } = (body ?? {}) as { message?: unknown };
    throw new Error(
      typeof message === 'string' ? message : `the emulator responded with ${status}`,
    );
  }

  async #request(method: string, path: string, input?: unknown) {
    if (!/^https?:\/\//.test(this.url) || !URL.canParse(this.url)) {
      throw new Error(`--url takes an address such as http://127.0.0.1:4010, not "${this.url}"`);
    }
    try {
      const response = await fetch(`${this.url}${path}`, {
        method,
        headers: {
          accept: 'application/json',
          ...(input !== undefined && { 'content-type': 'application/json' }),
          ...(this.controlToken && { authorization: `Bearer ${this.controlToken}` }),
        },
        ...(input !== undefined && { body: JSON.stringify(input) }),
      });
      const text = await response.text();
      return { status: response.status, body: parse(text) };
    } catch (error) {
      const { cause } = error as { cause?: { code?: string } };
      throw new Error(
        `no emulator responds at ${this.url} (${cause?.code ?? 'no connection'}). Start it: npx payments-emulator --webhook-url http://127.0.0.1:3000/webhooks/payments. If the emulator listens at another address, pass this address with --url`,
        { cause: error },
      );
    }
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}
