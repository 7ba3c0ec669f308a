import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A script, style sheet or picture of the pages. */
export interface Asset {
  readonly type: string;
  readonly body: Buffer;
  /** Hash of the content. */
  readonly etag: string;
}

const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';
const IMAGE = 'image/svg+xml; charset=utf-8';

/** The packages that scripts import by name, and the names of their assets. */
const PACKAGES = {
  preact: 'preact.js',
  'preact/hooks': 'preact-hooks.js',
  htm: 'htm.js',
  'htm/preact': 'htm-preact.js',
} as const;

/** The files in the folder `pages`. */
const FILES = {
  'base.css': STYLE,
  'layout.css': STYLE,
  'catalogue.css': STYLE,
  'order.css': STYLE,
  'ledger.css': STYLE,
  'catalogue.js': SCRIPT,
  'order.js': SCRIPT,
  'ledger.js': SCRIPT,
  'live-updates.js': SCRIPT,
  'format.js': SCRIPT,
  'logo.svg': IMAGE,
  'tea.svg': IMAGE,
  'coffee.svg': IMAGE,
  'mandazi.svg': IMAGE,
  'sugar.svg': IMAGE,
  'milk.svg': IMAGE,
  'bread.svg': IMAGE,
} as const;

/** The import map of every page. */
export const IMPORT_MAP = JSON.stringify({
  imports: Object.fromEntries(
    Object.entries(PACKAGES).map(([name, file]) => [name, `/assets/${file}`]),
  ),
});

/**
 * Content security policy of the pages: they load and run only files of the shop. The import map is the only inline
 * script, so the policy has its hash.
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

/** All assets by name. They are read once, so that no request reads a file. */
export function readAssets(): ReadonlyMap<string, Asset> {
  const files = Object.entries(FILES).map(
    ([name, type]) =>
      [name, toAsset(type, new URL(`../../pages/${name}`, import.meta.url))] as const,
  );
  const packages = Object.entries(PACKAGES).map(
    ([name, file]) => [file, toAsset(SCRIPT, import.meta.resolve(name))] as const,
  );
  return new Map([...files, ...packages]);
}

function toAsset(type: string, url: URL | string): Asset {
  const body = readFileSync(fileURLToPath(url));
  return { type, body, etag: `"${createHash('sha256').update(body).digest('base64url')}"` };
}
