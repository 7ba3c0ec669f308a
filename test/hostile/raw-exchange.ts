import { connect } from 'node:net';

/** The responses of the server on one connection. */
export interface ExchangeResult {
  /** Final statuses, in order, without those from 100 to 199. */
  readonly statuses: readonly number[];
  /** `code` of the last JSON body. */
  readonly code: string | undefined;
  /** Whether the time limit passed before all expected responses arrived or the connection ended. */
  readonly hung: boolean;
}

export interface ExchangeOptions {
  /** Number of responses to wait for. Default 1. */
  readonly responses?: number;
  /** Whether to end the sending side after the last piece. Default `false`. */
  readonly end?: boolean;
  /** Milliseconds between two pieces. Default 0. Each piece is sent in a packet of its own. */
  readonly pauseMs?: number;
  /** Milliseconds after which the connection counts as hung. Default 15,000. */
  readonly limitMs?: number;
}

const RESPONSE_HEAD = /HTTP\/1\.[01] ([2-9]\d\d)[^\r\n]*\r\n([^]*?)\r\n\r\n/g;
const MAX_KEPT = 100_000;

/** Opens a connection, sends the pieces and reads the responses. The promise never rejects. */
export function exchange(
  port: number,
  pieces: readonly (string | Uint8Array)[],
  { responses = 1, end = false, pauseMs = 0, limitMs = 15_000 }: ExchangeOptions = {},
): Promise<ExchangeResult> {
  const { promise, resolve } = Promise.withResolvers<ExchangeResult>();
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  let received = '';
  const finish = (hung: boolean): void => {
    clearTimeout(timer);
    // RST avoids TIME_WAIT, which would occupy the port for a minute. There are only 28,000 ports.
    socket.resetAndDestroy();
    const statuses = [...received.matchAll(RESPONSE_HEAD)].map(([, status]) => Number(status));
    const code = [...received.matchAll(/"code":"(\w+)"/g)].at(-1)?.[1];
    resolve({ statuses, code, hung });
  };
  const timer = setTimeout(() => finish(true), limitMs);
  socket.on('error', () => {});
  socket.once('close', () => finish(false));
  socket.on('data', (data: Buffer) => {
    if (received.length < MAX_KEPT) received += data.toString('latin1');
    if (countResponses(received) >= responses) finish(false);
  });
  void (async () => {
    for (const piece of pieces) {
      if (socket.destroyed) return;
      await new Promise<void>((sent) => socket.write(piece, () => sent()));
      await new Promise<void>((go) => (pauseMs > 0 ? setTimeout(go, pauseMs) : setImmediate(go)));
    }
    if (end) socket.end();
  })();
  return promise;
}

/** Number of responses that have arrived with their whole body. */
function countResponses(received: string): number {
  let count = 0;
  for (const match of received.matchAll(RESPONSE_HEAD)) {
    const end = match.index + match[0].length;
    const length = /^content-length: (\d+)/im.exec(match[2]!)?.[1];
    const complete =
      length === undefined
        ? /^transfer-encoding: chunked/im.test(match[2]!) && received.includes('0\r\n\r\n', end)
        : received.length >= end + Number(length);
    if (!complete) return count;
    count += 1;
  }
  return count;
}
