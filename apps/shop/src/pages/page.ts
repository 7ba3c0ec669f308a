import { applyDecorators, Header } from '@nestjs/common';
import { Html, markup } from './markup.js';
import { IMPORT_MAP, PAGE_POLICY } from './page.assets.js';

/** What Express's answer and Fastify's have in common. */
export interface Answer {
  status(code: number): unknown;
  header(name: string, value: string): unknown;
}

/** The headers of a page. */
export function PageHeaders(): MethodDecorator {
  return applyDecorators(
    Header('content-type', 'text/html; charset=utf-8'),
    Header('content-security-policy', PAGE_POLICY),
    Header('x-content-type-options', 'nosniff'),
    // With `no-referrer` browsers would hide the origin of the shop's own forms from the shop.
    Header('referrer-policy', 'same-origin'),
    Header('cache-control', 'no-store'),
  );
}

/** What differs from page to page. */
export interface PageParts {
  readonly title: string;
  /** The page in the navigation that this is. */
  readonly at?: '/' | '/books';
  /** Its script, an asset. */
  readonly script?: 'shelf.js' | 'order.js' | 'books.js';
  readonly main: Html;
}

/** A whole page. */
export function renderPage({ title, at, script, main }: PageParts): string {
  return markup`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title}</title>
        <link rel="icon" href="/assets/mark.svg" type="image/svg+xml" />
        <link rel="stylesheet" href="/assets/shop.css" />
        <script type="importmap">${new Html(IMPORT_MAP)}</script>
        ${script === undefined ? '' : markup`<script type="module" src="/assets/${script}"></script>`}
      </head>
      <body>
        <a class="skip" href="#main">Skip to the page</a>
        <header class="top">
          <a class="brand" href="/"
            ><img src="/assets/mark.svg" alt="" width="36" height="36" />The Corner Shop</a>
          <nav aria-label="Pages">
            <a href="/" ${at === '/' ? new Html(' aria-current="page"') : ''}>Shelf</a>
            <a href="/books" ${at === '/books' ? new Html(' aria-current="page"') : ''}>Ledger</a>
          </nav>
        </header>
        <main id="main" tabindex="-1">${main}</main>
        <footer>
          <p>Paid through nestjs-payments. A demonstration: nothing is sent to your door.</p>
        </footer>
      </body>
    </html>
`.text;
}
