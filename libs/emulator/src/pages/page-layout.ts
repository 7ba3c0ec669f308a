import { createHash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import { Markup, markup } from './markup.js';
import { FILES_PATH, IMPORT_MAP, STYLE_SHEETS } from './page-files.js';

const IMPORT_MAP_HASH = createHash('sha256').update(IMPORT_MAP).digest('base64');

const POLICY = {
  'default-src': "'none'",
  'style-src': "'self'",
  'img-src': "'self' data:",
  'form-action': "'self'",
  'base-uri': "'none'",
  'frame-ancestors': "'none'",
};
const SCRIPTED_POLICY = {
  ...POLICY,
  'script-src': `'self' 'sha256-${IMPORT_MAP_HASH}'`,
  'connect-src': "'self'",
};

/** Headers of every response under `/emulator`. Some of these responses contain credentials. */
export const RESPONSE_HEADERS: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'cross-origin-resource-policy': 'same-origin',
};

export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  ...RESPONSE_HEADERS,
  // No referrer is sent to other origins. With `no-referrer`, a browser would send the pages' own forms with
  // `Origin: null`, which the same-origin guard rejects.
  'referrer-policy': 'same-origin',
};

export interface Page {
  readonly html: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Creates a page that is rendered on the server and has no script. */
export function staticPage(title: string, main: Markup): Page {
  return page(title, markup`<main class="narrow">${main}</main>`, POLICY);
}

/** Creates a page that a script renders in the browser. */
export function scriptedPage(title: string, script: string): Page {
  const body = markup`<div id="page"><p class="quiet narrow">Loading…</p></div>
<noscript><p class="problem narrow">This page requires JavaScript. The controls under /emulator/ work without it.</p></noscript>
<script type="importmap">${new Markup(IMPORT_MAP)}</script>
<script type="module" src="${FILES_PATH}/${script}"></script>`;
  return page(title, body, SCRIPTED_POLICY);
}

const ICON =
  "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><rect width='16' height='16' rx='4' fill='%239a3412'/><path d='M5 12V4h4a2.5 2.5 0 0 1 0 5H5' fill='none' stroke='white' stroke-width='2'/></svg>";

function page(title: string, body: Markup, policy: Readonly<Record<string, string>>): Page {
  const { text } = markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · payments-emulator</title>
<link rel="icon" href="${new Markup(ICON)}">
${STYLE_SHEETS.map((file) => markup`<link rel="stylesheet" href="${FILES_PATH}/${file}">`)}
</head>
<body>
<p class="banner"><strong>Emulator.</strong> Not the payments service: no money moves here.</p>
${body}
</body>
</html>
`;
  const csp = Object.entries(policy)
    .map(([name, value]) => `${name} ${value}`)
    .join('; ');
  return { html: text, headers: { ...PAGE_HEADERS, 'content-security-policy': csp } };
}

/** Sets the headers of a page, and returns the HTML that a handler must return. */
export function sendPage(reply: FastifyReply, { html, headers }: Page): string {
  void reply.headers({ ...headers, 'content-type': 'text/html; charset=utf-8' });
  return html;
}
