/** The server-sent events of a page, read as a browser does. */
export class PageEvents implements AsyncDisposable {
  /** Resolves when the server or {@link Symbol.asyncDispose} has ended the stream. */
  readonly ended: Promise<void>;
  readonly #states: unknown[] = [];
  readonly #close: AbortController;
  #wake: () => void = () => {};
  #isEnded = false;

  private constructor(body: ReadableStream<Uint8Array>, close: AbortController) {
    this.#close = close;
    this.ended = this.#read(body).catch(() => {});
    void this.ended.then(() => {
      this.#isEnded = true;
      this.#wake();
    });
  }

  /** Opens the stream at an address. */
  static async open(url: string): Promise<PageEvents> {
    const close = new AbortController();
    const response = await fetch(url, { signal: close.signal });
    const type = response.headers.get('content-type');
    if (!type?.startsWith('text/event-stream'))
      throw new Error(`${url}: ${response.status} ${type}`);
    return new PageEvents(response.body!, close);
  }

  /** Resolves with the next state. Rejects if the stream has ended. */
  async next<T = unknown>(): Promise<T> {
    while (this.#states.length === 0) {
      if (this.#isEnded) throw new Error('the events have ended');
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

/** Requests an address repeatedly until `signal` aborts, over the same connection if possible. */
export async function requestRepeatedly(url: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const close = new AbortController();
    try {
      const { status } = await fetch(url, { signal: AbortSignal.any([signal, close.signal]) });
      if (status === 200) close.abort();
    } catch {
      // The server is closing.
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}
