import { createRequire } from 'node:module';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** A middleware, as Express and its parsers have them. */
export type Middleware = (
  request: IncomingMessage,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void;

interface Express {
  (): { use(...args: [Middleware] | [string, Middleware]): void } & Middleware;
  json(options?: object): Middleware;
  raw(options?: object): Middleware;
}

/** What the tests use of Express, which brings no types. */
export const express = createRequire(import.meta.url)('express') as Express;
