/** The server-sent events of a page, read as a browser reads them. */
export class ShopEvents implements AsyncDisposable {
  /** Resolves once the server has ended them, or they were closed. */
  readonly ended: Promise<void>;
  readonly #states: unknown[] = [];
  readonly #close: AbortController;
  #wake: () => void = () => {};
  #over = false;

  private constructor(body: ReadableStream<Uint8Array>, close: AbortController) {
    this.#close = close;
    this.ended = this.#read(body).catch(() => {});
    void this.ended.then(() => {
      this.#over = true;
      this.#wake();
    });
  }

  static async open(url: string): Promise<ShopEvents> {
    const close = new AbortController();
    const response = await fetch(url, { signal: close.signal });
    const type = response.headers.get('content-type');
    if (!type?.startsWith('text/event-stream'))
      throw new Error(`${url}: ${response.status} ${type}`);
    return new ShopEvents(response.body!, close);
  }

  /** The next state, once there is one. */
  async next<T = unknown>(): Promise<T> {
    while (this.#states.length === 0) {
      if (this.#over) throw new Error('the events have ended');
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    return this.#states.shift() as T;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close.abort();
    await this.ended;
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of body) {
      const events = (text + decoder.decode(chunk, { stream: true })).split('\n\n');
      text = events.pop()!;
      for (const event of events) {
        const [, data] = /^event: state\n[^]*^data: (.*)$/m.exec(event) ?? [];
        if (data !== undefined) this.#states.push(JSON.parse(data));
      }
      this.#wake();
    }
  }
}

/** Asks for a page over and over, over one connection as long as there is one, until it is told to stop. */
export async function insist(url: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const close = new AbortController();
    try {
      const { status } = await fetch(url, { signal: AbortSignal.any([signal, close.signal]) });
      if (status === 200) close.abort();
    } catch {
      // It is closed, or about to be.
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}
