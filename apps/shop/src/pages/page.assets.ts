import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A file that pages are made of. */
export interface Asset {
  readonly type: string;
  readonly body: Buffer;
  /** Changes with the content. */
  readonly etag: string;
}

const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';
const DRAWING = 'image/svg+xml; charset=utf-8';

/** What pages import by name, and the asset it is. */
const MODULES = {
  preact: 'preact.js',
  'preact/hooks': 'preact-hooks.js',
  htm: 'htm.js',
  'htm/preact': 'htm-preact.js',
} as const;

const OWN = {
  'shop.css': STYLE,
  'shelf.js': SCRIPT,
  'order.js': SCRIPT,
  'books.js': SCRIPT,
  'live.js': SCRIPT,
  'format.js': SCRIPT,
  'mark.svg': DRAWING,
  'tea.svg': DRAWING,
  'coffee.svg': DRAWING,
  'mandazi.svg': DRAWING,
  'sugar.svg': DRAWING,
  'milk.svg': DRAWING,
  'bread.svg': DRAWING,
} as const;

/** The import map of every page. */
export const IMPORT_MAP = JSON.stringify({
  imports: Object.fromEntries(
    Object.entries(MODULES).map(([name, file]) => [name, `/assets/${file}`]),
  ),
});

/**
 * What a page may do: run and load what the shop itself serves, and nothing else. The import map is the one script
 * that stands in a page, so it is named by its hash.
 */
export const PAGE_POLICY = [
  "default-src 'none'",
  `script-src 'self' 'sha256-${createHash('sha256').update(IMPORT_MAP).digest('base64')}'`,
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Every asset, by name. Read once: nothing in a request leads to a file. */
export function readAssets(): ReadonlyMap<string, Asset> {
  const own = Object.entries(OWN).map(
    ([name, type]) =>
      [name, toAsset(type, new URL(`../../pages/${name}`, import.meta.url))] as const,
  );
  const modules = Object.entries(MODULES).map(
    ([name, file]) => [file, toAsset(SCRIPT, import.meta.resolve(name))] as const,
  );
  return new Map([...own, ...modules]);
}

function toAsset(type: string, url: URL | string): Asset {
  const body = readFileSync(fileURLToPath(url));
  return { type, body, etag: `"${createHash('sha256').update(body).digest('base64url')}"` };
}
