/** An emulator of another process, reached by its controls. */
export class RunningEmulator {
  private constructor(
    private readonly url: string,
    private readonly controlToken: string | undefined,
  ) {}

  /** @throws Error with a fix, if there is no emulator at this address, or it demands another control token */
  static async at(url: string, controlToken?: string): Promise<RunningEmulator> {
    const emulator = new RunningEmulator(url.replace(/\/+$/, ''), controlToken);
    const { status, body } = await emulator.#request('GET', '/emulator');
    if (status === 401) {
      throw new Error(
        `the emulator at ${url} demands its control token. Name the token that it printed at its start with --control-token`,
      );
    }
    if ((body as { emulator?: unknown } | null)?.emulator === 'payments-emulator') return emulator;
    throw new Error(
      `${url} answered ${status}, but is not a payments-emulator. Name the emulator's address with --url`,
    );
  }

  /**
   * Posts to a control.
   *
   * @throws Error with the message of the emulator, if it refuses
   */
  async post<T>(control: string, input: object): Promise<T> {
    const { status, body } = await this.#request('POST', `/emulator/${control}`, input);
    if (status === 200) return body as T;
    const { message } = (body ?? {}) as { message?: unknown };
    throw new Error(typeof message === 'string' ? message : `the emulator answered ${status}`);
  }

  async #request(method: string, path: string, input?: object) {
    if (!/^https?:\/\//.test(this.url) || !URL.canParse(this.url)) {
      throw new Error(`--url takes an address such as http://127.0.0.1:4010, not "${this.url}"`);
    }
    try {
      const response = await fetch(`${this.url}${path}`, {
        method,
        headers: {
          accept: 'application/json',
          'content-type': 'application/json',
          ...(this.controlToken && { authorization: `Bearer ${this.controlToken}` }),
        },
        ...(input && { body: JSON.stringify(input) }),
      });
      const text = await response.text();
      return { status: response.status, body: parse(text) };
    } catch (error) {
      const { cause } = error as { cause?: { code?: string } };
      throw new Error(
        `no emulator answers at ${this.url} (${cause?.code ?? 'no connection'}). Start it: npx payments-emulator --webhook-url http://127.0.0.1:3000/webhooks/payments. If it listens elsewhere, name its address with --url`,
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
