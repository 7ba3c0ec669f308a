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
