import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';

/**
 * Headers of every response. The headers forbid a browser to run scripts of the response, to show the response in a
 * frame, to store the response, to guess its type, and to let other sites read it.
 */
const RESPONSE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-store',
};

/** Headers with which the application's CORS settings may allow other sites to read a response. */
const CORS_HEADERS = [
  'access-control-allow-origin',
  'access-control-allow-credentials',
  'access-control-expose-headers',
];

/** A response of Express, or a reply of Fastify, whose `raw` is Node's response. */
interface HttpResponse {
  removeHeader(name: string): unknown;
  readonly raw?: { removeHeader(name: string): unknown };
}

/**
 * Writes responses through the HTTP adapter, so that no interceptor of the application wraps a response. Writes
 * responses as text, so that no serializer of the application changes a response.
 */
@Injectable()
export class ResponseWriter {
  constructor(private readonly host: HttpAdapterHost) {}

  protect(response: unknown): void {
    if (this.isSent(response)) return;
    const target = response as HttpResponse;
    for (const name of CORS_HEADERS) {
      target.removeHeader(name);
      // In older versions of Fastify, headers that a middleware sets are only on Node's response.
      target.raw?.removeHeader(name);
    }
    this.#set(response, RESPONSE_HEADERS);
  }

  /** Sends JSON. Dates become ISO 8601 text. */
  json(response: unknown, status: number, body: unknown): void {
    const headers = { 'content-type': 'application/json; charset=utf-8' };
    this.text(response, status, headers, JSON.stringify(body));
  }

  /** Sends text. Without `body`, sends only the status and the headers. */
  text(
    response: unknown,
    status: number,
    headers: Readonly<Record<string, string>>,
    body?: string,
  ): void {
    this.#set(response, headers);
    // Fastify returns the reply, which is thenable and must not be awaited.
    void this.host.httpAdapter.reply(response, body, status);
  }

  /** Whether the response was already sent, for example by a guard that redirects or a middleware with a time limit. */
  isSent(response: unknown): boolean {
    return this.host.httpAdapter.isHeadersSent(response);
  }

  #set(response: unknown, headers: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(headers)) {
      this.host.httpAdapter.setHeader(response, name, value);
    }
  }
}
