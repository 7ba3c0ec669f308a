import { applyDecorators, Header } from '@nestjs/common';
import { CURRENCY } from '../amount.js';
import { IMPORT_MAP, PAGE_POLICY } from './page-assets.js';

/** The methods that the responses of Express and of Fastify have in common. */
export interface HttpResponse {
  status(code: number): unknown;
  header(name: string, value: string): unknown;
}

/** Escaped HTML. */
export class Html {
  constructor(readonly text: string) {}
}

/** A template tag for HTML. The tag escapes all values except {@link Html}. */
// The name `html` would make Prettier reformat the templates, including the import map, whose hash is in the policy.
export function markup(
  strings: TemplateStringsArray,
  ...values: readonly (string | number | Html | readonly Html[])[]
): Html {
  return new Html(
    strings.reduce((text, part, index) => text + escapeValue(values[index - 1]!) + part),
  );
}

function escapeValue(value: string | number | Html | readonly Html[]): string {
  if (value instanceof Html) return value.text;
  if (typeof value === 'object') return value.map(({ text }) => text).join('');
  return String(value).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Sets the headers of a page. */
export function PageHeaders(): MethodDecorator {
  return applyDecorators(
    Header('content-type', 'text/html; charset=utf-8'),
    Header('content-security-policy', PAGE_POLICY),
    Header('x-content-type-options', 'nosniff'),
    // With `no-referrer`, browsers would send `Origin: null` with the forms of the shop.
    Header('referrer-policy', 'same-origin'),
    Header('cache-control', 'no-store'),
  );
}

/** The parts of the HTML that differ between the pages of the shop. */
export interface PageParts {
  readonly title: string;
  /** The path of the page, if the navigation contains a link to the page. */
  readonly path?: '/' | '/ledger';
  /** Name of the script and the style sheet of the page. */
  readonly name?: 'catalogue' | 'order' | 'ledger';
  readonly main: Html;
}

/** Renders a complete page. */
export function renderPage({ title, path, name, main }: PageParts): string {
  return markup`<!doctype html>
    <html lang="en" data-currency="${CURRENCY}">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title}</title>
        <link rel="icon" href="/assets/logo.svg" type="image/svg+xml" />
        <link rel="stylesheet" href="/assets/base.css" />
        <link rel="stylesheet" href="/assets/layout.css" />
        <script type="importmap">${new Html(IMPORT_MAP)}</script>
        ${name === undefined ? '' : assetLinks(name)}
      </head>
      <body>
        <a class="skip" href="#main">Skip to content</a>
        <header class="top">
          <a class="brand" href="/"
            ><img src="/assets/logo.svg" alt="" width="36" height="36" />The Corner Shop</a>
          <nav aria-label="Pages">
            ${navigationLink('/', 'Products', path)} ${navigationLink('/ledger', 'Ledger', path)}
          </nav>
        </header>
        <main id="main" tabindex="-1">${main}</main>
        <footer>
          <p>Payments by nestjs-payments. This is a demonstration: no goods are sold.</p>
        </footer>
      </body>
    </html>
`.text;
}

function assetLinks(name: string): Html {
  return markup`<link rel="stylesheet" href="/assets/${name}.css" />
    <script type="module" src="/assets/${name}.js"></script>`;
}

function navigationLink(href: string, text: string, path: string | undefined): Html {
  const current = href === path ? new Html(' aria-current="page"') : '';
  return markup`<a href="${href}"${current}>${text}</a>`;
}
