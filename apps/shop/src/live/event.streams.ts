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

/** How many pages may watch at once: each holds a connection. */
const MAX_STREAMS = 1000;

/** Keeps proxies from taking a stream for a dead one, and tells the page that it is not, in milliseconds. */
const HEARTBEAT_MS = 15_000;

/** How soon a browser comes back whose stream has ended, in milliseconds. */
const RETRY_MS = 1000;

/** The server-sent events of pages that are open: bounded in number, kept alive, and ended when the shop closes. */
@Injectable()
export class EventStreams implements OnModuleDestroy {
  readonly #closing = new Subject<void>();
  #open = 0;
  #closed = false;

  constructor(private readonly host: HttpAdapterHost) {}

  /**
   * The events of a page, to be returned from an `@Sse()` route: one `state` for each value, and a `heartbeat` in
   * between. It ends where the values can't be read, so that the page says so and comes back.
   *
   * @throws ServiceUnavailableException where too many are open, or the shop is closing.
   */
  open<T extends object>(values: Observable<T>): Observable<MessageEvent> {
    if (this.#closed) throw new ServiceUnavailableException('the shop is closing; come back soon');
    if (this.#open >= MAX_STREAMS) {
      throw new ServiceUnavailableException('too many pages are watching; ask again later');
    }
    const hello: MessageEvent = { comment: 'hello', retry: RETRY_MS };
    const heartbeat: MessageEvent = { type: 'heartbeat', data: 'alive' };
    return defer(() => {
      this.#open += 1;
      return merge(
        of(hello),
        values.pipe(map((value): MessageEvent => ({ type: 'state', data: value }))),
        interval(HEARTBEAT_MS).pipe(map(() => heartbeat)),
      ).pipe(
        takeUntil(this.#closing),
        catchError(() => EMPTY),
        finalize(() => (this.#open -= 1)),
      );
    });
  }

  /** The payments module has drained by now, so its last bookings were seen; the server closes next. */
  onModuleDestroy(): void {
    this.#closed = true;
    // A server closes once its connections have, and a page that tries to come back would never leave its own.
    const server = this.host.httpAdapter.getHttpServer() as Server;
    server.prependListener('request', (_, response) => response.setHeader('connection', 'close'));
    this.#closing.next();
  }
}
