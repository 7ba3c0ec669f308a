import { Inject, Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { ANSWER_HEADERS, CORS_HEADERS } from './console-headers.js';

/** An answer of Express, or a reply of Fastify with Node's own answer in it. */
interface AnswerLike {
  removeHeader(name: string): unknown;
  readonly raw?: { removeHeader(name: string): unknown };
}

/**
 * Writes answers through the HTTP adapter, so that no interceptor of the application wraps them, and as text, so
 * that none of its serializers touches them.
 */
@Injectable()
export class ConsoleAnswers {
  constructor(@Inject(HttpAdapterHost) private readonly host: HttpAdapterHost) {}

  /** Puts the console's headers on an answer, in place of those the application put there. */
  protect(response: unknown): void {
    if (this.isSent(response)) return;
    const answer = response as AnswerLike;
    for (const name of CORS_HEADERS) {
      answer.removeHeader(name);
      // An older Fastify leaves there what a middleware has set.
      answer.raw?.removeHeader(name);
    }
    this.#set(response, ANSWER_HEADERS);
  }

  /** Dates become ISO text. */
  json(response: unknown, status: number, body: unknown): void {
    const headers = { 'content-type': 'application/json; charset=utf-8' };
    this.text(response, status, headers, JSON.stringify(body));
  }

  /** `body` is left out where there is none, as of 304. */
  text(
    response: unknown,
    status: number,
    headers: Readonly<Record<string, string>>,
    body?: string,
  ): void {
    this.#set(response, headers);
    // Of Fastify this is the reply, which would be waited for as a promise.
    void this.host.httpAdapter.reply(response, body, status);
  }

  /** Whether somebody has answered already: a guard that redirects, a limit of time. */
  isSent(response: unknown): boolean {
    return this.host.httpAdapter.isHeadersSent(response);
  }

  #set(response: unknown, headers: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(headers)) {
      this.host.httpAdapter.setHeader(response, name, value);
    }
  }
}
