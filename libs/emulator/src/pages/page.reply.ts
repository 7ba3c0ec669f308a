import type { FastifyReply } from 'fastify';
import type { Page } from './page.shell.js';

/** Sets a page's headers and answers its HTML, for a handler to return. */
export function sendPage(reply: FastifyReply, { html, headers }: Page): string {
  void reply.headers({ ...headers, 'content-type': 'text/html; charset=utf-8' });
  return html;
}
