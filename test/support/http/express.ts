import { createRequire } from 'node:module';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** A middleware, as Express and its parsers have them. */
export type Middleware = (
  request: IncomingMessage,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/** A router, as Express has them. */
type Router = Middleware & {
  post(path: string, handler: (request: { params: { company?: string } }) => void): void;
};

interface Express {
  Router(): Router;
  (): { use(...args: [Middleware] | [string, Middleware]): void } & Middleware;
  json(options?: object): Middleware;
  raw(options?: object): Middleware;
}

/** What the tests use of Express, which brings no types. */
export const express = createRequire(import.meta.url)('express') as Express;
