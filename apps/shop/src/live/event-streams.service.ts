import type { Server } from 'node:http';
import { Injectable, ServiceUnavailableException } from '@nestjs/common';
import type { MessageEvent, OnModuleDestroy } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import {
  catchError,
  defer,
  EMPTY,
  finalize,
  interval,
  map,
  merge,
  of,
  Subject,
  takeUntil,
} from 'rxjs';
import type { Observable } from 'rxjs';

/** Maximum number of open streams. Each stream uses one connection. */
const MAX_STREAMS = 1000;

/**
 * Interval of heartbeats in milliseconds. Heartbeats prevent proxies from closing a stream, and show the page that the
 * shop is reachable.
 */
const HEARTBEAT_MS = 15_000;

/** Time after which a browser connects again when its stream has ended, in milliseconds. */
const RETRY_MS = 1000;

/**
 * The streams of server-sent events for open pages. The number of streams is limited. Heartbeats keep the streams open,
 * and all streams end when the shop closes.
 */
@Injectable()
export class EventStreamsService implements OnModuleDestroy {
  readonly #closing = new Subject<void>();
  #open = 0;
  #closed = false;

  constructor(private readonly host: HttpAdapterHost) {}

  /**
   * Returns the events of an `@Sse()` route: a `state` for each value, and a `heartbeat` at regular intervals. If the
   * values cannot be read, the stream ends, so that the page shows the interruption and connects again.
   *
   * @throws ServiceUnavailableException if too many streams are open, or the shop is closing.
   */
  open<T extends object>(values: Observable<T>): Observable<MessageEvent> {
    if (this.#closed) throw new ServiceUnavailableException('the shop is closing; try again soon');
    if (this.#open >= MAX_STREAMS) {
      throw new ServiceUnavailableException('too many pages are open; try again later');
    }
    const first: MessageEvent = { comment: 'connected', retry: RETRY_MS };
    const heartbeat: MessageEvent = { type: 'heartbeat', data: 'alive' };
    return defer(() => {
      this.#open += 1;
      return merge(
        of(first),
        values.pipe(map((value): MessageEvent => ({ type: 'state', data: value }))),
        interval(HEARTBEAT_MS).pipe(map(() => heartbeat)),
      ).pipe(
        takeUntil(this.#closing),
        catchError(() => EMPTY),
        finalize(() => (this.#open -= 1)),
      );
    });
  }

  /**
   * Ends all streams. Nest calls this method before the server closes, and after the payments module has drained, so
   * that the pages show the last payments.
   */
  onModuleDestroy(): void {
    this.#closed = true;
    // The server closes when all connections have closed. Without this header, a page that reconnects would keep a
    // connection open.
    const server = this.host.httpAdapter.getHttpServer() as Server;
    server.prependListener('request', (_, response) => response.setHeader('connection', 'close'));
    this.#closing.next();
  }
}
