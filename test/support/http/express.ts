import { createRequire } from 'node:module';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** A middleware of Express or of its parsers. */
export type Middleware = (
  request: IncomingMessage,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void;

type Router = Middleware & {
  post(path: string, handler: (request: { params: { company?: string } }) => void): void;
};

interface Express {
  Router(): Router;
  (): { use(...args: [Middleware] | [string, Middleware]): void } & Middleware;
  json(options?: object): Middleware;
  raw(options?: object): Middleware;
}

/** The parts of Express that the tests use. Express has no types of its own. */
export const express = createRequire(import.meta.url)('express') as Express;
